#include "replay/recorder/driver/contexts.h"

#include <stdlib.h>

#include <new>

#include "replay/recorder/driver/driver.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/threads.h"

namespace reprise::driver {
namespace {

Context g_contexts[kMaxContexts];
std::atomic<int> g_context_count{0};
std::atomic<CUcontext> g_primary[kMaxDevices];
Mutex g_mutex;

Context* Known(CUcontext handle) {
  const int count = g_context_count.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i) {
    if (g_contexts[i].handle.load(std::memory_order_acquire) == handle)
      return &g_contexts[i];
  }
  return nullptr;
}

Context* Add(CUcontext handle, int device) {
  MutexLock lock(g_mutex);
  Context* entry = Known(handle);
  if (entry != nullptr) return entry;
  entry = Known(nullptr);  // one that is free again
  const int count = g_context_count.load();
  if (entry == nullptr) {
    if (count == kMaxContexts) return nullptr;
    entry = &g_contexts[count];
  }
  entry->device = device;
  entry->broken.store(CUDA_SUCCESS);
  entry->handle.store(handle, std::memory_order_release);
  if (entry == &g_contexts[count]) g_context_count.store(count + 1);
  return entry;
}

CUresult SynchronizeAll() {
  const int count = g_context_count.load(std::memory_order_acquire);
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < count; ++i) {
    const CUcontext handle = g_contexts[i].handle.load();
    if (handle == nullptr) continue;
    WithContext with(handle);
    if (!with.ok()) continue;
    const CUresult one = CUDA_CALL(cuCtxSynchronize);
    if (one != CUDA_SUCCESS) result = one;
  }
  return result;
}

// One wait on a thread of its own, which may outlive it.
struct Wait {
  enum State : uint32_t { kWaiting, kDone, kGivenUp };
  std::atomic<uint32_t> state{kWaiting};
  CUresult result = CUDA_SUCCESS;
};

void* RunWait(void* argument) {
  Wait* wait = static_cast<Wait*>(argument);
  wait->result = SynchronizeAll();
  if (wait->state.exchange(Wait::kDone) == Wait::kGivenUp)
    free(wait);
  else
    WakeAll(&wait->state);
  return nullptr;
}

}  // namespace

Context* CurrentContext() {
  CUcontext handle = nullptr;
  if (CUDA_CALL(cuCtxGetCurrent, &handle) != CUDA_SUCCESS || handle == nullptr)
    return nullptr;
  Context* known = Known(handle);
  if (known != nullptr) return known;
  CUdevice device = 0;
  if (CUDA_CALL(cuCtxGetDevice, &device) != CUDA_SUCCESS) return nullptr;
  return Add(handle, device);
}

Context* FindContext(CUcontext handle) {
  if (handle == nullptr) return nullptr;
  Context* known = Known(handle);
  if (known != nullptr) return known;
  WithContext with(handle);
  return with.ok() ? CurrentContext() : nullptr;
}

Context* StreamContext(CUstream stream) {
  CUcontext handle = nullptr;
  if (stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD &&
      CUDA_CALL(cuStreamGetCtx, stream, &handle) == CUDA_SUCCESS)
    return FindContext(handle);
  return CurrentContext();
}

void SetPrimaryContext(int device, CUcontext handle) {
  if (device >= 0 && device < kMaxDevices) g_primary[device].store(handle);
}

CUcontext PrimaryContext(int device) {
  return device >= 0 && device < kMaxDevices ? g_primary[device].load()
                                             : nullptr;
}

void ForgetContext(CUcontext handle) {
  if (handle == nullptr) return;
  MutexLock lock(g_mutex);
  Context* known = Known(handle);
  if (known != nullptr) known->handle.store(nullptr);
}

bool BreaksContext(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

void NoteFailure(CUresult result) {
  if (!BreaksContext(result)) return;
  Context* context = CurrentContext();
  if (context != nullptr) context->broken.store(result);
}

int ContextsOf(int device, CUcontext* contexts, int capacity) {
  const int count = g_context_count.load(std::memory_order_acquire);
  int found = 0;
  for (int i = 0; i < count && found < capacity; ++i) {
    const CUcontext handle = g_contexts[i].handle.load();
    if (handle != nullptr && g_contexts[i].device == device)
      contexts[found++] = handle;
  }
  return found;
}
CUresult SynchronizeContexts(int64_t timeout_ms) {
  void* memory = malloc(sizeof(Wait));
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  Wait* wait = new (memory) Wait;
  pthread_t thread;
  if (!StartThread(RunWait, wait, &thread)) {
    free(wait);
    return SynchronizeAll();
  }
  const int64_t end = standin::MonotonicNs() + timeout_ms * 1000000;
  for (;;) {
    const int64_t left_ms = (end - standin::MonotonicNs()) / 1000000;
    if (wait->state.load(std::memory_order_acquire) == Wait::kDone) break;
    if (left_ms <= 0) {
      DetachThread(thread);
      if (wait->state.exchange(Wait::kGivenUp) != Wait::kDone)
        return CUDA_ERROR_TIMEOUT;  // the thread frees it
      free(wait);
      return CUDA_ERROR_TIMEOUT;
    }
    WaitWhile(&wait->state, Wait::kWaiting, left_ms);
  }
  JoinThread(thread);
  const CUresult result = wait->result;
  free(wait);
  return result;
}

}  // namespace reprise::driver
