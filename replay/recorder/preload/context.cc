#include "replay/recorder/preload/context.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

namespace reprise::standin {
namespace {

constinit Context the_context;
thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

Context& TheContext() { return the_context; }

cudaError_t Finish(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t TakeLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t LastError() { return last_error; }

cudaError_t Context::Enter(Need need) {
  switch (state_) {
    case kFresh:
      return Connect();
    case kReady:
      return cudaSuccess;
    case kNoRecorder:
      return cudaErrorNoDevice;
    case kForked:
      return cudaErrorInitializationError;
    case kBroken:
      return need == kDevice ? cudaSuccess : broken_;
    case kGone:
    case kDead:
      return need == kDevice ? cudaSuccess : cudaErrorDevicesUnavailable;
  }
  return cudaErrorUnknown;
}

cudaError_t Context::Connect() {
  state_ = kNoRecorder;
  const char* path = getenv(wire::kSocketVariable);
  if (path == nullptr || *path == '\0') {
    Say("the CUDA runtime stand-in runs only under a recorder (%s is not set); "
        "start the application with: reprise record -- COMMAND",
        wire::kSocketVariable);
    return cudaErrorNoDevice;
  }
  const wire::HelloRequest request{wire::kProtocolVersion, getpid()};
  uint64_t bytes = 0;
  int fd = -1;
  wire::MessageHeader header;
  if (!channel.Connect(path)) {
    Say("cannot reach the recorder at %s: %s", path, strerror(errno));
    return cudaErrorNoDevice;
  }
  bool heard = channel.Send(wire::kHello, request) &&
               channel.ReceiveWithDescriptor(&header, sizeof(header), &fd);
  bytes = header.bytes;
  heard = heard && header.type == wire::kHello && bytes == sizeof(hello) &&
          channel.Receive(&hello, sizeof(hello));
  if (!heard || hello.version != wire::kProtocolVersion) {
    Say("the recorder at %s is of another version than this library (got "
        "protocol %u, expected %u)",
        path, heard ? hello.version : 0, wire::kProtocolVersion);
    channel.Close();
    return cudaErrorNoDevice;
  }
  if (hello.error != 0 || fd < 0) {
    channel.Close();
    return cudaErrorNoDevice;  // the recorder has said why
  }
  const bool mapped = arena.Map(fd, hello);
  const int error = errno;
  close(fd);
  if (!mapped) {
    Say("cannot map device memory at 0x%llx (%s); choose another place with "
        "--arena-base",
        static_cast<unsigned long long>(hello.arena_base), strerror(error));
    channel.Close();
    return cudaErrorNoDevice;
  }
  pthread_atfork(nullptr, nullptr, &Context::ForgetInChild);
  state_ = kReady;
  return cudaSuccess;
}

void Context::ForgetInChild() {
  the_context.mutex = Mutex();
  the_context.channel.Close();
  the_context.state_ = kForked;
}

void Context::Break(cudaError_t error) {
  if (state_ != kReady) return;
  state_ = kBroken;
  broken_ = error;
}

cudaError_t Context::Lost() {
  if (state_ == kReady) {
    Say("the recorder has ended; no kernel can run any more");
    state_ = kGone;
  }
  return cudaErrorDevicesUnavailable;
}

void Context::Reset() {
  if (state_ == kBroken) state_ = kDead;
  if (state_ != kReady) return;
  arena.Clear();
  ForgetStreamsAndEvents();
  ForgetResolutions();
  if (!channel.Send(wire::kReset, nullptr, 0)) Lost();
}

void Context::Keep(const char* text, size_t size) {
  if (size > wire::kMaxTextBytes) {
    text += size - wire::kMaxTextBytes;
    size = wire::kMaxTextBytes;
  }
  const size_t total = text_.size() + size;
  if (total > wire::kMaxTextBytes)
    text_.RemoveFront(0, total - wire::kMaxTextBytes);
  text_.Append(text, size);
}

Array<char> Context::TakeText() {
  const Array<char> text = text_;
  text_ = Array<char>();
  return text;
}

cudaError_t SynchronizeContext() {
  cudaError_t error = cudaSuccess;
  Array<char> text;
  {
    ContextLock context;
    error = context.error();
    text = context->TakeText();
  }
  if (!text.empty()) fwrite(text.data(), 1, text.size(), stdout);
  free(text.data());
  return error;
}

}  // namespace reprise::standin
