// Hints about managed memory: all of it is one memory here, so they only check
// what they are given.
#include <cuda_runtime_api.h>

#include "replay/recorder/preload/context.h"
#include "replay/recorder/preload/stream.h"

namespace {

namespace standin = reprise::standin;

cudaError_t CheckManaged(const void* pointer, size_t bytes) {
  standin::ContextLock context;
  if (!context.ok()) return context.Fail();
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const standin::Allocation* found = context->arena.Find(address);
  const bool managed = found != nullptr &&
                       found->origin == reprise::wire::kOriginManaged &&
                       bytes > 0 && context->arena.IsLive(address, bytes);
  return managed ? cudaSuccess : standin::Finish(cudaErrorInvalidValue);
}

}  // namespace

extern "C" {

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes,
                                 cudaMemLocation, unsigned flags,
                                 cudaStream_t stream) {
  if (flags != 0) return standin::Finish(cudaErrorInvalidValue);
  if (!standin::IsStream(stream))
    return standin::Finish(cudaErrorInvalidResourceHandle);
  return CheckManaged(pointer, bytes);
}

cudaError_t cudaMemAdvise(const void* pointer, size_t bytes,
                          cudaMemoryAdvise advice, cudaMemLocation) {
  if (advice < cudaMemAdviseSetReadMostly ||
      advice > cudaMemAdviseUnsetAccessedBy)
    return standin::Finish(cudaErrorInvalidValue);
  return CheckManaged(pointer, bytes);
}

REPRISE_PTSZ(cudaMemPrefetchAsync)

}  // extern "C"
