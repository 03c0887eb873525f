#include "replay/recorder/session/connection.h"

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "replay/recorder/preload/protocol.h"
#include "replay/recorder/session/launch_request.h"
#include "replay/recorder/session/socket_message.h"

namespace reprise {
namespace {

// A message may hold a module's images.
constexpr uint64_t kMaxMessageBytes = wire::kMaxImageBytes;
constexpr uint64_t kMaxImages = 1 << 16;

class Connection {
 public:
  Connection(int fd, const ConnectionOptions& options)
      : fd_(fd), options_(options) {}

  void Serve() {
    wire::MessageHeader header;
    while (ReceiveAll(fd_, &header, sizeof(header))) {
      if (header.bytes > kMaxMessageBytes) return;
      std::string bytes;
      if (!ReceiveBytes(fd_, header.bytes, &bytes)) return;
      Payload payload(std::move(bytes));
      if (!Handle(header.type, payload)) return;
    }
  }

 private:
  bool Handle(uint32_t type, Payload& payload);
  bool Hello(Payload& payload);
  bool Allocate(Payload& payload);
  bool Free(Payload& payload);
  bool RegisterModule(Payload& payload);
  bool UnregisterModule(Payload& payload);
  bool Function(Payload& payload);
  bool Variable(Payload& payload);
  bool Launch(Payload& payload);

  // A message of a struct and what follows it.
  template <typename T>
  bool Reply(uint32_t type, const T& body, const std::string& more = "",
             int descriptor = -1) {
    return SendAll(fd_, MessageBytes<wire::MessageHeader>(type, body, more),
                   descriptor);
  }

  const int fd_;
  const ConnectionOptions& options_;
  std::unique_ptr<AppDevice> device_;
};

bool Connection::Handle(uint32_t type, Payload& payload) {
  if (type == wire::kStaticRuntime) {
    options_.on_static_runtime(payload.TakeRest());
    return true;
  }
  if (type == wire::kHello) return Hello(payload);
  if (device_ == nullptr) return false;
  switch (type) {
    case wire::kAllocate:
      return Allocate(payload);
    case wire::kFree:
      return Free(payload);
    case wire::kRegisterModule:
      return RegisterModule(payload);
    case wire::kUnregisterModule:
      return UnregisterModule(payload);
    case wire::kFunction:
      return Function(payload);
    case wire::kVariable:
      return Variable(payload);
    case wire::kLaunch:
      return Launch(payload);
    case wire::kReset:
      device_->Reset();
      return true;
    default:
      return false;
  }
}

bool Connection::Hello(Payload& payload) {
  wire::HelloRequest request;
  if (!payload.Take(&request) || device_ != nullptr) return false;
  wire::HelloReply reply;
  if (request.version != wire::kProtocolVersion)
    return Reply(wire::kHello, reply);  // the library says what is wrong
  absl::StatusOr<std::unique_ptr<AppDevice>> device =
      AppDevice::Create(options_.shared);
  if (!device.ok()) {
    std::fprintf(stderr, "reprise: no device memory: %s\n",
                 std::string(device.status().message()).c_str());
    reply.error = kCudaMemoryAllocation;
    return Reply(wire::kHello, reply);
  }
  device_ = *std::move(device);
  options_.on_hello();
  const ArenaMemory::Options& arena = options_.shared.arena;
  reply.arena_base = arena.base;
  reply.arena_bytes = arena.bytes;
  reply.globals_bytes = arena.globals_bytes;
  reply.device_memory_bytes = options_.device_memory_bytes;
  reply.compute_major = 9;
  reply.compute_minor = 0;
  std::snprintf(reply.device_name, sizeof(reply.device_name), "%s",
                options_.device_name.c_str());
  return Reply(wire::kHello, reply, "", device_->memory().fd());
}

bool Connection::Allocate(Payload& payload) {
  wire::AllocateNotice notice;
  if (!payload.Take(&notice)) return false;
  return device_->memory()
      .Add(notice.address, notice.bytes,
           static_cast<v1::MemoryOrigin>(notice.origin))
      .ok();
}

bool Connection::Free(Payload& payload) {
  wire::FreeNotice notice;
  return payload.Take(&notice) && device_->memory().Remove(notice.address).ok();
}

bool Connection::RegisterModule(Payload& payload) {
  wire::RegisterModuleNotice notice;
  if (!payload.Take(&notice) || notice.image_count == 0 ||
      notice.image_count > kMaxImages)
    return false;
  std::vector<uint64_t> sizes(notice.image_count);
  for (uint64_t& size : sizes)
    if (!payload.Take(&size)) return false;
  std::vector<std::string> images(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i)
    if (!payload.Take(sizes[i], &images[i])) return false;
  std::string image = std::move(images.front());
  images.erase(images.begin());
  device_->RegisterModule(notice.module, std::move(image), std::move(images));
  return true;
}

bool Connection::UnregisterModule(Payload& payload) {
  wire::UnregisterModuleNotice notice;
  if (!payload.Take(&notice)) return false;
  device_->UnregisterModule(notice.module);
  return true;
}

uint64_t Nanoseconds(absl::Time since) {
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(absl::Now() - since));
}

bool Connection::Function(Payload& payload) {
  wire::NameRequest request;
  if (!payload.Take(&request)) return false;
  const absl::Time start = absl::Now();
  const AppDevice::Function function =
      device_->FindFunction(request.module, payload.TakeRest());
  wire::FunctionReply reply;
  reply.error = function.error;
  reply.function = function.id;
  std::string parameters;
  if (function.info != nullptr) {
    const v1::CompiledKernelInfo& info = *function.info;
    reply.static_shared_bytes = info.static_shared_bytes();
    reply.max_threads_per_block =
        info.max_threads_per_block() != 0 ? info.max_threads_per_block() : 1024;
    for (int i = 0; i < info.parameter_offsets_size(); ++i) {
      const wire::Parameter parameter{info.parameter_offsets(i),
                                      info.parameter_bytes(i)};
      parameters.append(reinterpret_cast<const char*>(&parameter),
                        sizeof(parameter));
      ++reply.parameter_count;
      reply.argument_bytes =
          std::max(reply.argument_bytes, parameter.offset + parameter.bytes);
    }
  }
  reply.excluded_ns = Nanoseconds(start);
  return Reply(wire::kFunction, reply, parameters);
}

bool Connection::Variable(Payload& payload) {
  wire::NameRequest request;
  if (!payload.Take(&request)) return false;
  const absl::Time start = absl::Now();
  const AppDevice::Variable variable =
      device_->FindVariable(request.module, payload.TakeRest());
  wire::VariableReply reply;
  reply.error = variable.error;
  reply.address = variable.address;
  reply.bytes = variable.bytes;
  reply.excluded_ns = Nanoseconds(start);
  return Reply(wire::kVariable, reply);
}

bool Connection::Launch(Payload& payload) {
  wire::LaunchRequest request;
  if (!payload.Take(&request)) return false;
  const std::string arguments = payload.TakeRest();
  if (arguments.size() != request.argument_bytes) return false;
  AppDevice::LaunchResult result =
      device_->Launch(request.function, ToLaunch(request), arguments);
  wire::LaunchReply reply;
  reply.error = result.error;
  reply.sticky = result.sticky;
  reply.excluded_ns =
      static_cast<uint64_t>(absl::ToInt64Nanoseconds(result.recording_time));
  if (result.text.size() > wire::kMaxTextBytes)
    result.text.erase(0, result.text.size() - wire::kMaxTextBytes);
  reply.text_bytes = result.text.size();
  return Reply(wire::kLaunch, reply, result.text);
}

}  // namespace

void ServeConnection(int fd, const ConnectionOptions& options) {
  Connection(fd, options).Serve();
}

}  // namespace reprise
