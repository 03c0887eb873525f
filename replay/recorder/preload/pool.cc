// Stream-ordered allocation. A pool is a handle and a few numbers; memory comes
// from the one arena and goes back to it when it is freed.
#include <cuda_runtime_api.h>

#include "replay/recorder/preload/context.h"
#include "replay/recorder/preload/memory.h"
#include "replay/recorder/preload/stream.h"

namespace reprise::standin {
namespace {

constexpr int kAttributes = cudaMemPoolAttrUsedMemHigh + 1;

struct Pool {
  bool live = false;
  uint64_t attributes[kAttributes] = {};
};

constinit Pool default_pool;
constinit Pool* current_pool = &default_pool;
constinit Array<Pool*> pools;

// Requires the mutex.
Pool* FindPool(cudaMemPool_t handle) {
  auto* pool = reinterpret_cast<Pool*>(handle);
  if (pool == &default_pool) return pool;
  for (Pool* known : pools)
    if (known == pool && known->live) return pool;
  return nullptr;
}

cudaMemPool_t HandleOf(Pool* pool) {
  return reinterpret_cast<cudaMemPool_t>(pool);
}

uint64_t UsedBytes(Context& context, const Pool* pool) {
  uint64_t bytes = 0;
  for (const Allocation& allocation : context.arena.allocations())
    if (allocation.pool == pool) bytes += allocation.bytes;
  return bytes;
}

// Runs `use` with the pool under the mutex.
template <typename Use>
cudaError_t WithPool(cudaMemPool_t handle, const void* argument,
                     const Use& use) {
  if (argument == nullptr) return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  Pool* pool = FindPool(handle);
  return Finish(pool == nullptr ? cudaErrorInvalidValue : use(*context, *pool));
}

template <typename Use>
cudaError_t WithDevice(int device, const void* argument, const Use& use) {
  if (argument == nullptr) return Finish(cudaErrorInvalidValue);
  if (device != 0) return Finish(cudaErrorInvalidDevice);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  return Finish(use());
}

bool IsFlag(cudaMemPoolAttr attribute) {
  return attribute <= cudaMemPoolReuseAllowInternalDependencies;
}

bool IsAttribute(cudaMemPoolAttr attribute) {
  return attribute >= 1 && attribute < kAttributes;
}

cudaError_t GetAttribute(Context& context, Pool& pool,
                         cudaMemPoolAttr attribute, void* value) {
  if (!IsAttribute(attribute)) return cudaErrorInvalidValue;
  uint64_t& high = pool.attributes[cudaMemPoolAttrUsedMemHigh];
  const uint64_t used = UsedBytes(context, &pool);
  if (used > high) high = used;
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies:
      // Stored inverted: they are on until somebody turns them off.
      *static_cast<int*>(value) = pool.attributes[attribute] == 0 ? 1 : 0;
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
      *static_cast<uint64_t*>(value) = used;
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
      *static_cast<uint64_t*>(value) = high;
      return cudaSuccess;
    default:
      *static_cast<uint64_t*>(value) = pool.attributes[attribute];
      return cudaSuccess;
  }
}

cudaError_t SetAttribute(Pool& pool, cudaMemPoolAttr attribute,
                         const void* value) {
  if (!IsAttribute(attribute)) return cudaErrorInvalidValue;
  if (IsFlag(attribute)) {
    pool.attributes[attribute] = *static_cast<const int*>(value) == 0 ? 1 : 0;
    return cudaSuccess;
  }
  const uint64_t number = *static_cast<const uint64_t*>(value);
  if (attribute == cudaMemPoolAttrReleaseThreshold) {
    pool.attributes[attribute] = number;
    return cudaSuccess;
  }
  const bool high = attribute == cudaMemPoolAttrReservedMemHigh ||
                    attribute == cudaMemPoolAttrUsedMemHigh;
  if (!high || number != 0) return cudaErrorInvalidValue;
  pool.attributes[cudaMemPoolAttrUsedMemHigh] = 0;
  return cudaSuccess;
}

cudaError_t AllocateFrom(const Pool* pool, void** pointer, size_t bytes,
                         cudaStream_t stream) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  if (!IsStream(stream)) return cudaErrorInvalidResourceHandle;
  return Allocate(pointer, bytes, wire::kOriginPool, 0, pool);
}

}  // namespace
}  // namespace reprise::standin

using namespace reprise::standin;  // NOLINT: this file is its C face

extern "C" {

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return Finish(AllocateFrom(current_pool, pointer, bytes, stream));
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes,
                                    cudaMemPool_t pool, cudaStream_t stream) {
  const cudaError_t error =
      WithPool(pool, pool, [](Context&, Pool&) { return cudaSuccess; });
  if (error != cudaSuccess) return error;
  return Finish(AllocateFrom(reinterpret_cast<const Pool*>(pool), pointer,
                             bytes, stream));
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  if (!IsStream(stream)) return Finish(cudaErrorInvalidResourceHandle);
  return Finish(FreeDevice(pointer));
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* handle,
                              const cudaMemPoolProps* props) {
  if (handle == nullptr || props == nullptr ||
      props->allocType != cudaMemAllocationTypePinned)
    return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  auto* pool = static_cast<Pool*>(calloc(1, sizeof(Pool)));
  if (pool == nullptr || !pools.Append(pool))
    return Finish(cudaErrorMemoryAllocation);
  pool->live = true;
  *handle = HandleOf(pool);
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
  return WithPool(handle, handle, [](Context&, Pool& pool) {
    if (&pool == &default_pool) return cudaErrorInvalidValue;
    if (current_pool == &pool) current_pool = &default_pool;
    pool.live = false;
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, size_t) {
  return WithPool(handle, handle, [](Context&, Pool&) { return cudaSuccess; });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle,
                                    cudaMemPoolAttr attribute, void* value) {
  return WithPool(handle, value, [&](Context& context, Pool& pool) {
    return GetAttribute(context, pool, attribute, value);
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle,
                                    cudaMemPoolAttr attribute, void* value) {
  return WithPool(handle, value, [&](Context&, Pool& pool) {
    return SetAttribute(pool, attribute, value);
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* handle, int device) {
  return WithDevice(device, handle, [&] {
    *handle = HandleOf(&default_pool);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* handle, int device) {
  return WithDevice(device, handle, [&] {
    *handle = HandleOf(current_pool);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t handle) {
  return WithDevice(device, handle, [&] {
    Pool* pool = FindPool(handle);
    if (pool == nullptr) return cudaErrorInvalidValue;
    current_pool = pool;
    return cudaSuccess;
  });
}

REPRISE_PTSZ(cudaMallocAsync)
REPRISE_PTSZ(cudaMallocFromPoolAsync)
REPRISE_PTSZ(cudaFreeAsync)

}  // extern "C"
