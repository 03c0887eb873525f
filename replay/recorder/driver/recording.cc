#include "replay/recorder/driver/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/arguments.h"
#include "replay/recorder/driver/contexts.h"
#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/gate.h"
#include "replay/recorder/driver/image_copy.h"
#include "replay/recorder/driver/profile.h"

namespace reprise::driver {
namespace {

namespace wire = driver_wire;

constexpr uint64_t kImageAlignment = 4096;
// Of the names of all variables of a module.
constexpr uint64_t kMaxVariableBytes = 64 << 20;
constexpr int64_t kLeastPatienceMs = 1000;

std::atomic<int> g_vain_waits{0};

// How long to wait for calls of other threads, for work on the devices and for
// the launch. Half as long after each wait in vain: where kernels spin all the
// time, not every recording shall find that out at full length.
int64_t PatienceMs() {
  const int64_t most = static_cast<int64_t>(Hello().patience_ms);
  const int64_t least = most < kLeastPatienceMs ? most : kLeastPatienceMs;
  const int vain = g_vain_waits.load();
  const int64_t halved = most >> (vain < 32 ? vain : 32);
  return halved > least ? halved : least;
}

uint64_t RoundUp(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

// The arguments as one buffer, laid out as the parameters say. False: the
// application passed none.
bool PackArguments(const Kernel& kernel, const LaunchCall& launch,
                   unsigned char* packed) {
  memset(packed, 0, kernel.argument_bytes);
  if (launch.parameters != nullptr) {
    for (uint32_t i = 0; i < kernel.parameter_count; ++i) {
      const wire::Parameter& parameter = kernel.parameters[i];
      memcpy(packed + parameter.offset, launch.parameters[i], parameter.bytes);
    }
    return true;
  }
  if (launch.extra == nullptr) return kernel.argument_bytes == 0;
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (void** at = launch.extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
    if (at[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = at[1];
    if (at[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
      bytes = *static_cast<const size_t*>(at[1]);
  }
  if (buffer == nullptr) return kernel.argument_bytes == 0;
  if (bytes > kernel.argument_bytes) bytes = kernel.argument_bytes;
  memcpy(packed, buffer, bytes);
  return true;
}

// Makes a sorted table disjoint: what an earlier range holds already goes.
void RemoveOverlaps(Array<wire::LiveRange>* ranges) {
  size_t kept = 0;
  for (size_t i = 0; i < ranges->size(); ++i) {
    wire::LiveRange range = (*ranges)[i];
    if (kept > 0) {
      const wire::LiveRange& last = (*ranges)[kept - 1];
      const uint64_t end = last.address + last.bytes;
      if (range.address < end) {
        if (range.address + range.bytes <= end) continue;
        range.bytes -= end - range.address;
        range.address = end;
      }
    }
    if (range.bytes > 0) (*ranges)[kept++] = range;
  }
  while (ranges->size() > kept) ranges->Remove(ranges->size() - 1);
}

void Insert(const wire::LiveRange& range, Array<wire::LiveRange>* ranges) {
  size_t low = 0;
  size_t high = ranges->size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if ((*ranges)[middle].address < range.address)
      low = middle + 1;
    else
      high = middle;
  }
  ranges->Insert(low, range);
}

// Tells the parent why a launch that it wants is not recorded.
void AbandonLaunch(ParentLock& parent, const Kernel& kernel, bool never,
                   const char* why) {
  const wire::AbandonNotice notice{kernel.number, never ? 1u : 0u};
  if (parent.ok() && !parent->Send(wire::kAbandon, notice, {why, strlen(why)}))
    parent.Lost("abandoning a recording");
}

// One recording, from the parent's kRecord to kEpilogue, with the gate held
// exclusively.
class Recording {
 public:
  Recording(Kernel* kernel, const LaunchCall& launch, RealLaunch real,
            int device, const ArgumentHints& hints, const Array<char>& names)
      : kernel_(kernel),
        launch_(launch),
        real_(real),
        device_(device),
        hints_(hints),
        names_(names) {}
  ~Recording();

  // Runs what comes before the launch. False: the launch cannot be recorded.
  bool RunBefore(RealLaunch before);
  CUresult Run();

 private:
  // False: the launch goes unrecorded, and the parent knows.
  bool AwaitQuiet();
  bool Prepare();
  bool FindRanges();
  bool AskForWindow();
  bool SendPrologue();
  CUresult AwaitCompletion(int64_t patience_ms);
  CUresult LaunchTimed(int64_t patience_ms, wire::EpilogueNotice* notice);
  void SendEpilogue(wire::EpilogueNotice* notice);
  // Tells the parent; false.
  bool Abandon(const char* why, int code = 0);
  // The same of something that did not end; later launches are not tried.
  bool AbandonStalled(const char* what, int64_t patience_ms, const char* why);

  Kernel* kernel_;
  const LaunchCall& launch_;
  RealLaunch real_;
  int device_;
  const ArgumentHints hints_;
  const Array<char>& names_;
  ParentLock parent_;
  Array<wire::LiveRange> ranges_;
  uint64_t image_bytes_ = 0;
  ImageCopy copy_;
};

Recording::~Recording() { free(ranges_.data()); }

bool Recording::Abandon(const char* why, int code) {
  char text[256];
  if (code != 0)
    snprintf(text, sizeof(text), "%s (driver error %d)", why, code);
  else
    snprintf(text, sizeof(text), "%s", why);
  AbandonLaunch(parent_, *kernel_, /*never=*/false, text);
  return false;
}

bool Recording::AbandonStalled(const char* what, int64_t patience_ms,
                               const char* why) {
  ++g_vain_waits;
  char text[400];
  snprintf(text, sizeof(text),
           "%s did not end within %g s while the rest of the application stood "
           "still: it may wait for %s; if it only takes long, give it more "
           "with --stall-timeout",
           what, static_cast<double>(patience_ms) / 1000, why);
  AbandonLaunch(parent_, *kernel_, /*never=*/true, text);
  kernel_->wanted = false;
  return false;
}

bool Recording::FindRanges() {
  if (!LiveRanges(device_, &ranges_)) return Abandon("out of host memory");
  for (size_t at = 0; at < names_.size();) {
    const char* name = &names_[at];
    uint64_t address = 0;
    uint64_t bytes = 0;
    if (FindVariable(*kernel_->module, name, &address, &bytes))
      Insert({address, bytes, wire::kOriginGlobal, static_cast<uint32_t>(at)},
             &ranges_);
    at += strlen(name) + 1;
  }
  RemoveOverlaps(&ranges_);
  for (const wire::LiveRange& range : ranges_)
    image_bytes_ += RoundUp(range.bytes, kImageAlignment);
  if (ranges_.size() > wire::kMaxRanges)
    return Abandon("too many allocations are alive");
  return true;
}

bool Recording::AskForWindow() {
  wire::PrologueRequest request;
  request.range_count = static_cast<uint32_t>(ranges_.size());
  request.symbol_bytes = static_cast<uint32_t>(names_.size());
  request.image_bytes = image_bytes_;
  request.hints = hints_.texture ? wire::kHintTexture : 0;
  request.host_pointer = hints_.host_pointer;
  wire::PrologueReply reply;
  int fd = -1;
  if (!parent_->Send(
          wire::kPrologue, request,
          {ranges_.data(), ranges_.size() * sizeof(ranges_[0])},
          {names_.size() > 0 ? &names_[0] : nullptr, names_.size()}) ||
      !parent_->Receive(wire::kPrologue, &reply, nullptr, 0, &fd)) {
    parent_.Lost("recording a launch");
    if (fd >= 0) close(fd);
    return false;
  }
  if (reply.verdict == wire::kNever) kernel_->wanted = false;
  bool ok = reply.verdict == wire::kRecord;
  if (ok && reply.new_window != 0 && !MapWindow(fd, reply.slots)) {
    Abandon("the memory that it should leave through cannot be mapped");
    ok = false;
  }
  if (fd >= 0) close(fd);
  return ok;
}

bool Recording::SendPrologue() {
  CUresult result = copy_.Open(ranges_, image_bytes_);
  const int64_t begin = standin::MonotonicNs();
  if (result == CUDA_SUCCESS) result = copy_.CopyOut(parent_);
  if (result != CUDA_SUCCESS)
    return Abandon("the memory cannot be copied", result);
  const wire::FilledRequest request{
      static_cast<uint64_t>(standin::MonotonicNs() - begin)};
  wire::FilledReply reply;
  if (!parent_->Send(wire::kFilled, request) ||
      !parent_->Receive(wire::kFilled, &reply)) {
    parent_.Lost("recording a launch");
    return false;
  }
  return reply.verdict == wire::kRecord;
}

bool Recording::AwaitQuiet() {
  if (!parent_.ok()) return false;
  const int64_t patience_ms = PatienceMs();
  const CUresult result = SynchronizeContexts(patience_ms);
  if (result == CUDA_ERROR_TIMEOUT)
    return AbandonStalled("work before the launch", patience_ms,
                          "this kernel, another one or the host");
  if (result != CUDA_SUCCESS)
    return Abandon("work before the launch failed", result);
  return true;
}

bool Recording::Prepare() {
  return AwaitQuiet() && FindRanges() && AskForWindow() && SendPrologue();
}

bool Recording::RunBefore(RealLaunch before) {
  if (!AwaitQuiet()) return false;
  const CUresult result = before();
  return result == CUDA_SUCCESS ||
         Abandon("what comes before it in its graph cannot be run by itself",
                 result);
}

// Waits for the launch. Bounded: it may wait for something that the application
// does after it.
CUresult Recording::AwaitCompletion(int64_t patience_ms) {
  const int64_t end = standin::MonotonicNs() + patience_ms * 1000000;
  for (int round = 0;; ++round) {
    const CUresult state = CUDA_CALL(cuStreamQuery, launch_.stream);
    if (state != CUDA_ERROR_NOT_READY) return state;
    if (standin::MonotonicNs() > end) return CUDA_ERROR_TIMEOUT;
    const timespec pause{0, 20000};
    if (round > 100) nanosleep(&pause, nullptr);
  }
}

// Launches, waits, and times. What failed is in the notice; the launch's own
// result is the answer to the application, which meets later errors itself.
CUresult Recording::LaunchTimed(int64_t patience_ms,
                                wire::EpilogueNotice* notice) {
  CUevent begin = nullptr;
  CUevent end = nullptr;
  // The launch is on its way before the first event passes.
  copy_.Delay(launch_.stream);
  const bool timed =
      CUDA_CALL(cuEventCreate, &begin, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
      CUDA_CALL(cuEventCreate, &end, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
      CUDA_CALL(cuEventRecord, begin, launch_.stream) == CUDA_SUCCESS;
  const CUresult result = real_();
  CUresult completion = result;
  if (result == CUDA_SUCCESS) {
    if (timed) CUDA_CALL(cuEventRecord, end, launch_.stream);
    completion = AwaitCompletion(patience_ms);
  }
  float milliseconds = 0;
  if (timed && completion == CUDA_SUCCESS &&
      CUDA_CALL(cuEventElapsedTime, &milliseconds, begin, end) == CUDA_SUCCESS)
    notice->duration_ns = milliseconds * 1e6;
  if (Profiling() && notice->duration_ns > 0)
    AddTiming(kernel_, static_cast<uint64_t>(notice->duration_ns));
  if (begin != nullptr) CUDA_CALL(cuEventDestroy_v2, begin);
  if (end != nullptr) CUDA_CALL(cuEventDestroy_v2, end);
  notice->error = completion;
  return result;
}

void Recording::SendEpilogue(wire::EpilogueNotice* notice) {
  if (notice->error == CUDA_SUCCESS) {
    const int64_t begin = standin::MonotonicNs();
    notice->error = copy_.CopyOut(parent_);
    notice->copy_ns = static_cast<uint64_t>(standin::MonotonicNs() - begin);
  }
  if (parent_.ok() && !parent_->Send(wire::kEpilogue, *notice))
    parent_.Lost("recording a launch");
}

CUresult Recording::Run() {
  if (!Prepare()) return real_();
  wire::EpilogueNotice notice;
  const int64_t patience_ms = PatienceMs();
  const CUresult result = LaunchTimed(patience_ms, &notice);
  if (notice.error == CUDA_ERROR_TIMEOUT) {
    AbandonStalled("it", patience_ms, "another kernel or the host");
    copy_.Leak();
  } else {
    SendEpilogue(&notice);
  }
  return result;
}

bool AskBegin(ParentLock& parent, Kernel* kernel,
              const wire::BeginRequest& request, const void* arguments,
              Array<char>* names) {
  wire::BeginReply reply;
  uint64_t rest = 0;
  bool ok = parent->Send(wire::kBegin, request,
                         {arguments, request.argument_bytes}) &&
            parent->Receive(wire::kBegin, &reply, &rest, kMaxVariableBytes) &&
            rest == reply.name_bytes && names->Reserve(rest + 1);
  if (ok && rest > 0) {
    for (uint64_t i = 0; i < rest; ++i) names->Append(0);
    ok = parent->ReceiveBytes(names->data(), rest) && (*names)[rest - 1] == 0;
  }
  if (!ok) {
    parent.Lost("asking about a launch");
    return false;
  }
  if (reply.verdict == wire::kNever) kernel->wanted = false;
  return reply.verdict == wire::kRecord;
}

// Whether the parent wants this launch; then `hints` tells of its arguments,
// and `names` are the variables to look up.
bool Begin(Kernel* kernel, uint64_t occurrence, int device,
           const LaunchCall& launch, ArgumentHints* hints, Array<char>* names) {
  wire::BeginRequest request;
  request.kernel = kernel->number;
  request.device = static_cast<uint32_t>(device);
  request.occurrence = occurrence;
  for (int i = 0; i < 3; ++i) {
    request.grid[i] = launch.grid[i];
    request.block[i] = launch.block[i];
    request.cluster[i] = launch.cluster[i];
  }
  request.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  request.cooperative = launch.cooperative ? 1 : 0;
  request.argument_bytes = kernel->argument_bytes;
  unsigned char* arguments = static_cast<unsigned char*>(
      malloc(kernel->argument_bytes > 0 ? kernel->argument_bytes : 1));
  if (arguments == nullptr) return false;
  bool wanted = false;
  if (PackArguments(*kernel, launch, arguments)) {
    ParentLock parent;
    wanted = parent.ok() && SendModule(parent, kernel->module) &&
             AskBegin(parent, kernel, request, arguments, names);
  }
  if (wanted) *hints = HintsOf(*kernel, arguments, device);
  free(arguments);
  return wanted;
}

}  // namespace

bool TryRecordLaunch(Kernel* kernel, uint64_t occurrence,
                     const LaunchCall& launch, RealLaunch real,
                     const RealLaunch* before, CUresult* result) {
  // From kBegin to the end of the recording. Not held around a launch that is
  // not recorded: that may wait for another thread's.
  static Mutex one_recording;
  Context* context = StreamContext(launch.stream);
  ArgumentHints hints;
  Array<char> names;
  one_recording.Lock();
  const bool wanted =
      kernel->wanted.load() && !Capturing() && context != nullptr &&
      Begin(kernel, occurrence, context->device, launch, &hints, &names);
  const bool alone = wanted && TheGate().LockExclusive(PatienceMs());
  bool made = false;
  if (alone) {
    {
      WithContext with(context->handle.load());
      RelaxedCapture relaxed;
      Recording recording(kernel, launch, real, context->device, hints, names);
      made = before == nullptr || recording.RunBefore(*before);
      if (made) *result = recording.Run();
    }
    TheGate().UnlockExclusive();
  } else if (wanted) {
    ++g_vain_waits;
    ParentLock parent;
    AbandonLaunch(parent, *kernel, /*never=*/false,
                  "calls of other threads did not end, so that memory could "
                  "not be kept still; give them longer with --stall-timeout");
  }
  one_recording.Unlock();
  free(names.data());
  return made;
}

CUresult RecordLaunch(Kernel* kernel, uint64_t occurrence,
                      const LaunchCall& launch, RealLaunch real) {
  CUresult result = CUDA_SUCCESS;
  if (TryRecordLaunch(kernel, occurrence, launch, real, nullptr, &result))
    return result;
  SharedGate gate;
  return Profiling() && !Capturing() ? LaunchTimed(kernel, launch.stream, real)
                                     : real();
}

}  // namespace reprise::driver
