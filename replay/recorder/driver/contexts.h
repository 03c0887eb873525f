// The contexts that the application works in. Entries of destroyed contexts are
// used again. Thread-safe; finding a known context takes no lock.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_CONTEXTS_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_CONTEXTS_H_

#include <cuda.h>
#include <stdint.h>

#include <atomic>

namespace reprise::driver {

struct Context {
  std::atomic<CUcontext> handle{nullptr};
  int device = 0;
  // The error of a failed kernel, which every later call of the context gives.
  std::atomic<int> broken{CUDA_SUCCESS};
};

inline constexpr int kMaxContexts = 128;
inline constexpr int kMaxDevices = 64;

// The calling thread's context. Null: it has none, or too many contexts are
// alive.
Context* CurrentContext();
// The same for a context that need not be current.
Context* FindContext(CUcontext handle);
// The context of an explicit stream.
Context* StreamContext(CUstream stream);
// A device's primary context, once the application has asked for it.
void SetPrimaryContext(int device, CUcontext handle);
CUcontext PrimaryContext(int device);
// The context is gone.
void ForgetContext(CUcontext handle);
// Whether the error is of a failed kernel: its context answers everything with
// it from then on.
bool BreaksContext(CUresult result);
// Notes what a call of the current context came to.
void NoteFailure(CUresult result);
inline CUresult Noted(CUresult result) {
  if (result != CUDA_SUCCESS) NoteFailure(result);
  return result;
}
// The contexts of a device.
int ContextsOf(int device, CUcontext* contexts, int capacity);
// Waits for all work of all known contexts. CUDA_ERROR_TIMEOUT: it did not end
// in time; some never does, such as a kernel that waits for the host.
CUresult SynchronizeContexts(int64_t timeout_ms);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_CONTEXTS_H_
