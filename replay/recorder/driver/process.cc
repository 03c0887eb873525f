#include "replay/recorder/driver/process.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay/recorder/driver/gate.h"

namespace reprise::driver {

std::atomic<int> g_process_state{kFresh};

namespace {

namespace wire = driver_wire;

struct Process {
  pthread_mutex_t connect_mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_t channel_mutex = PTHREAD_MUTEX_INITIALIZER;
  Channel channel;
  std::atomic<bool> listens{false};
  wire::HelloReply hello;
  wire::ProcessCounters* counters = nullptr;
  wire::KernelCounter dummy;
  Array<uint64_t> said;  // hashes of problems
};

Process g_process;

uint64_t Hash(const char* text) {
  uint64_t hash = 14695981039346656037u;
  for (; *text != 0; ++text)
    hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211u;
  return hash;
}

// In the child of a fork.
void ForgetInChild() {
  Process& p = g_process;
  p.connect_mutex = PTHREAD_MUTEX_INITIALIZER;
  p.channel_mutex = PTHREAD_MUTEX_INITIALIZER;
  p.channel.Close();
  p.listens = false;
  TheGate().Reset();
  // CUDA does not work in the child of a process that has used it.
  if (g_process_state.load() == kConnected) g_process_state = kPassing;
}

bool MapCounters(int fd) {
  constexpr size_t kBytes = sizeof(wire::ProcessCounters);
  if (fd < 0 || lseek(fd, 0, SEEK_END) < static_cast<off_t>(kBytes))
    return false;
  void* counters =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (counters == MAP_FAILED) return false;
  g_process.counters = static_cast<wire::ProcessCounters*>(counters);
  return true;
}

bool SayHello() {
  Process& p = g_process;
  char path[PATH_MAX] = "";
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length < 0) length = 0;
  wire::HelloRequest request;
  request.pid = getpid();
  int fd = -1;
  const bool answered =
      p.channel.Send(wire::kHello, request,
                     {path, static_cast<size_t>(length)}) &&
      p.channel.Receive(wire::kHello, &p.hello, nullptr, 0, &fd);
  const bool ok =
      answered && p.hello.version == wire::kProtocolVersion && MapCounters(fd);
  if (answered && p.hello.version != wire::kProtocolVersion) {
    standin::Say(
        "libreprise_cuda.so speaks protocol %u, reprise record %u: "
        "use both from one installation; nothing is recorded",
        wire::kProtocolVersion, p.hello.version);
  } else if (!ok) {
    standin::Say("reprise record gave no usable answer; nothing is recorded");
  }
  if (fd >= 0) close(fd);
  return ok;
}

bool Connect() {
  Process& p = g_process;
  const char* path = getenv(wire::kSocketVariable);
  if (path == nullptr || *path == 0) return false;
  if (!p.channel.Connect(path)) {
    standin::Say("no recorder at %s (%s); nothing is recorded", path,
                 strerror(errno));
    return false;
  }
  if (!SayHello()) {
    p.channel.Close();
    return false;
  }
  p.listens = true;
  return true;
}

}  // namespace

bool Enabled() {
  // As it was when the process first looked for the driver.
  enum Answer : int { kUnknown, kYes, kNo };
  static std::atomic<int> answer{kUnknown};
  if (answer.load(std::memory_order_relaxed) == kUnknown) {
    const char* path = getenv(driver_wire::kSocketVariable);
    answer.store(path != nullptr && *path != 0 ? kYes : kNo,
                 std::memory_order_relaxed);
  }
  return answer.load(std::memory_order_relaxed) == kYes &&
         g_process_state.load(std::memory_order_relaxed) != kPassing;
}

bool ConnectOnce() {
  Process& p = g_process;
  const int saved_errno = errno;
  pthread_mutex_lock(&p.connect_mutex);
  if (g_process_state.load() == kFresh) {
    pthread_atfork(nullptr, nullptr, ForgetInChild);
    g_process_state = Connect() ? kConnected : kPassing;
  }
  pthread_mutex_unlock(&p.connect_mutex);
  errno = saved_errno;
  return g_process_state.load() == kConnected;
}

const wire::HelloReply& Hello() { return g_process.hello; }

bool ParentListens() {
  return g_process.listens.load(std::memory_order_relaxed);
}

void Problem(const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  const uint64_t hash = Hash(text);
  ParentLock parent;
  for (uint64_t said : g_process.said)
    if (said == hash) return;
  g_process.said.Append(hash);
  const Bytes part{text, strlen(text)};
  if (!parent.ok() || !parent->Send(wire::kProblem, &part, 1))
    standin::Say("%s", text);
}

ParentLock::ParentLock() { pthread_mutex_lock(&g_process.channel_mutex); }
ParentLock::~ParentLock() { pthread_mutex_unlock(&g_process.channel_mutex); }
bool ParentLock::ok() const { return g_process.listens.load(); }
Channel* ParentLock::operator->() const { return &g_process.channel; }

void ParentLock::Lost(const char* doing) {
  Process& p = g_process;
  if (!p.listens.exchange(false)) return;
  p.channel.Close();
  standin::Say("the recorder is gone (while %s); recording ends here", doing);
}

wire::KernelCounter* CounterOf(uint32_t kernel) {
  Process& p = g_process;
  return kernel < wire::kMaxKernels && p.counters != nullptr
             ? &p.counters->kernels[kernel]
             : &p.dummy;
}

void NoteDeviceMemory(int64_t difference) {
  wire::ProcessCounters* counters = g_process.counters;
  if (counters != nullptr)
    counters->device_bytes.fetch_add(static_cast<uint64_t>(difference),
                                     std::memory_order_relaxed);
}

}  // namespace reprise::driver
