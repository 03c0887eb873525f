// The one CUDA context of the process: connection, memory and error state.
//
// It comes up on the first call that needs it, so that a process which only
// loads the library (a shell on the way to the application) costs nothing. A
// fork before that gives two processes with a context each; after it, the child
// gets cudaErrorInitializationError from every call, as with CUDA.
//
// Errors of a call go to the thread's last error. What a kernel breaks (a wild
// address, a trap) stays with the context: every later call that needs the
// context reports it, the launch itself does not, unless CUDA_LAUNCH_BLOCKING
// is set.
#ifndef REPRISE_REPLAY_RECORDER_PRELOAD_CONTEXT_H_
#define REPRISE_REPLAY_RECORDER_PRELOAD_CONTEXT_H_

#include <cuda_runtime_api.h>

#include "replay/recorder/preload/arena.h"
#include "replay/recorder/preload/channel.h"
#include "replay/recorder/preload/protocol.h"
#include "replay/recorder/preload/support.h"

namespace reprise::standin {

// Notes an error as the thread's last one; returns it.
cudaError_t Finish(cudaError_t error);
cudaError_t TakeLastError();
cudaError_t LastError();

class Context {
 public:
  // What a call needs: that there is a device, or that its context is whole.
  enum Need { kDevice, kWhole };

  constexpr Context() = default;

  // Requires the mutex for everything below.
  cudaError_t Enter(Need need);
  // The kernel's error, from now on everybody's.
  void Break(cudaError_t error);
  // The recorder went away in the middle; says so once.
  cudaError_t Lost();
  // cudaDeviceReset: all memory, modules, streams and events are gone.
  void Reset();
  // cudaGetLastError's: whether the context has come up.
  bool fresh() const { return state_ == kFresh; }

  // Keeps what a kernel printed until the application synchronizes.
  void Keep(const char* text, size_t size);
  Array<char> TakeText();

  // The device's clock, which stands still while the recorder compiles and
  // records.
  int64_t DeviceClockNs() const { return MonotonicNs() - excluded_ns_; }
  void Exclude(uint64_t ns) { excluded_ns_ += static_cast<int64_t>(ns); }

  Mutex mutex;
  Channel channel;
  Arena arena;
  wire::HelloReply hello;

 private:
  enum State { kFresh, kReady, kNoRecorder, kBroken, kForked, kGone, kDead };

  cudaError_t Connect();
  static void ForgetInChild();

  State state_ = kFresh;
  cudaError_t broken_ = cudaSuccess;
  int64_t excluded_ns_ = 0;
  Array<char> text_;
};

Context& TheContext();

// Holds the context's mutex, with the context up.
//   ContextLock context;
//   if (!context.ok()) return context.Fail();
class ContextLock {
 public:
  explicit ContextLock(Context::Need need = Context::kWhole)
      : lock_(TheContext().mutex), error_(TheContext().Enter(need)) {}
  bool ok() const { return error_ == cudaSuccess; }
  cudaError_t error() const { return error_; }
  cudaError_t Fail() const { return Finish(error_); }
  Context* operator->() const { return &TheContext(); }
  Context& operator*() const { return TheContext(); }

 private:
  MutexLock lock_;
  cudaError_t error_;
};

// What every synchronizing call does: device printf goes to the application's
// stdout, the context's error is returned (not noted as the last one). Takes
// the mutex.
cudaError_t SynchronizeContext();

// Drops handles; called by Reset with the mutex held.
void ForgetStreamsAndEvents();
void ForgetResolutions();

}  // namespace reprise::standin

#endif  // REPRISE_REPLAY_RECORDER_PRELOAD_CONTEXT_H_
