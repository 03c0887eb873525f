#include "replay/recorder/driver/profile.h"

#include <stdlib.h>

#include "replay/recorder/driver/allocator.h"
#include "replay/recorder/driver/driver.h"

namespace reprise::driver {
namespace {

constexpr uint32_t kPairs = 1024;

struct Pair {
  CUevent begin = nullptr;
  CUevent end = nullptr;
  Kernel* kernel = nullptr;
};

// Pairs [first, next) are recorded and not read.
struct Ring {
  CUcontext context = nullptr;
  uint64_t first = 0;
  uint64_t next = 0;
  Pair pairs[kPairs];
};

Mutex g_mutex;
Array<Ring*> g_rings;

// Requires g_mutex.
Ring* CurrentRing() {
  CUcontext context = nullptr;
  if (CUDA_CALL(cuCtxGetCurrent, &context) != CUDA_SUCCESS ||
      context == nullptr)
    return nullptr;
  Ring* unused = nullptr;
  for (Ring* ring : g_rings) {
    if (ring->context == context) return ring;
    if (ring->context == nullptr) unused = ring;
  }
  if (unused == nullptr) {
    unused = static_cast<Ring*>(calloc(1, sizeof(Ring)));
    if (unused == nullptr) return nullptr;
    if (!g_rings.Append(unused)) {
      free(unused);
      return nullptr;
    }
  }
  unused->context = context;
  return unused;
}

// Reads up to `most` finished pairs. Requires g_mutex.
void Read(Ring* ring, uint64_t most) {
  for (; most > 0 && ring->first < ring->next; --most) {
    const Pair& pair = ring->pairs[ring->first % kPairs];
    const CUresult state = CUDA_CALL(cuEventQuery, pair.end);
    if (state == CUDA_ERROR_NOT_READY) return;
    float milliseconds = 0;
    if (state == CUDA_SUCCESS &&
        CUDA_CALL(cuEventElapsedTime, &milliseconds, pair.begin, pair.end) ==
            CUDA_SUCCESS)
      AddTiming(pair.kernel, static_cast<uint64_t>(milliseconds * 1e6));
    ++ring->first;
  }
}

bool HasEvents(Pair* pair) {
  if (pair->begin == nullptr &&
      CUDA_CALL(cuEventCreate, &pair->begin, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
    pair->begin = nullptr;
  if (pair->end == nullptr &&
      CUDA_CALL(cuEventCreate, &pair->end, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
    pair->end = nullptr;
  return pair->begin != nullptr && pair->end != nullptr;
}

}  // namespace

void AddTiming(Kernel* kernel, uint64_t ns, uint64_t launches) {
  __atomic_fetch_add(&kernel->counter->total_ns, ns, __ATOMIC_RELAXED);
  __atomic_fetch_add(&kernel->counter->timed, launches, __ATOMIC_RELAXED);
}

CUresult LaunchTimed(Kernel* kernel, CUstream stream, RealLaunch real) {
  MutexLock lock(g_mutex);
  Ring* ring = CurrentRing();
  if (ring == nullptr) return real();
  Read(ring, 2);
  Pair* pair = &ring->pairs[ring->next % kPairs];
  if (ring->next - ring->first == kPairs || !HasEvents(pair) ||
      CUDA_CALL(cuEventRecord, pair->begin, stream) != CUDA_SUCCESS)
    return real();
  const CUresult result = real();
  if (result == CUDA_SUCCESS &&
      CUDA_CALL(cuEventRecord, pair->end, stream) == CUDA_SUCCESS) {
    pair->kernel = kernel;
    ++ring->next;
  }
  return result;
}

void ReadTimings() {
  if (Capturing()) return;  // asking about events could break the capture
  MutexLock lock(g_mutex);
  Ring* ring = CurrentRing();
  if (ring != nullptr) Read(ring, kPairs);
}

void ForgetTimings(CUcontext context) {
  MutexLock lock(g_mutex);
  for (Ring* ring : g_rings)
    if (ring->context == context) *ring = Ring();
}

}  // namespace reprise::driver
