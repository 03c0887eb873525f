// Attributes of kernels, and occupancy.
#include "replay/recorder/preload/function.h"

#include <cuda_runtime_api.h>

#include "replay/recorder/preload/context.h"
#include "replay/recorder/preload/device.h"

// Only declared for device code.
extern "C" cudaError_t __cudaGetKernel(cudaKernel_t* kernel,
                                       const void* function);

namespace reprise::standin {
namespace {

uint32_t Get(cudaDeviceAttr attribute) {
  return static_cast<uint32_t>(Attribute(attribute));
}

uint64_t Least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// Runs `use` with the resolved function under the mutex.
template <typename Use>
cudaError_t WithFunction(const void* key, const void* result, const Use& use) {
  if (result == nullptr) return Finish(cudaErrorInvalidValue);
  if (key == nullptr) return Finish(cudaErrorInvalidDeviceFunction);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  Function* function = FindFunction(key);
  if (function == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  const cudaError_t error = Resolve(*context, *function);
  return Finish(error != cudaSuccess ? error : use(*function));
}

cudaError_t SetAttribute(Function& function, cudaFuncAttribute attribute,
                         int value) {
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize: {
      const int64_t most =
          int64_t{Get(cudaDevAttrMaxSharedMemoryPerBlockOptin)} -
          function.info.static_shared_bytes;
      if (value < 0 || value > most) return cudaErrorInvalidValue;
      function.max_dynamic_shared_bytes =
          static_cast<uint32_t>(value) + function.info.static_shared_bytes;
      return cudaSuccess;
    }
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      if (value < -1 || value > 100) return cudaErrorInvalidValue;
      function.carveout = value;
      return cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
      return cudaSuccess;  // hints
    default:
      return cudaErrorInvalidValue;
  }
}

void Describe(const Function& function, cudaFuncAttributes* attributes) {
  const wire::HelloReply& hello = TheContext().hello;
  *attributes = {};
  attributes->sharedSizeBytes = function.info.static_shared_bytes;
  attributes->maxThreadsPerBlock =
      static_cast<int>(function.info.max_threads_per_block);
  attributes->maxDynamicSharedSizeBytes =
      static_cast<int>(MaxDynamicSharedBytes(function));
  attributes->preferredShmemCarveout = function.carveout;
  attributes->binaryVersion = attributes->ptxVersion =
      static_cast<int>(hello.compute_major * 10 + hello.compute_minor);
}

}  // namespace

uint32_t MultiprocessorCount() { return Get(cudaDevAttrMultiProcessorCount); }

uint32_t MaxDynamicSharedBytes(const Function& function) {
  const uint32_t fixed = function.info.static_shared_bytes;
  return function.max_dynamic_shared_bytes > fixed
             ? function.max_dynamic_shared_bytes - fixed
             : 0;
}

uint32_t ResidentBlocks(const Function& function, uint32_t threads,
                        uint64_t dynamic_shared_bytes) {
  if (threads > function.info.max_threads_per_block ||
      dynamic_shared_bytes > MaxDynamicSharedBytes(function))
    return 0;
  const uint32_t warps = (threads + 31) / 32;
  const uint64_t by_threads =
      Get(cudaDevAttrMaxThreadsPerMultiProcessor) / (warps * 32);
  const uint64_t shared = function.info.static_shared_bytes +
                          dynamic_shared_bytes +
                          Get(cudaDevAttrReservedSharedMemoryPerBlock);
  const uint64_t by_shared =
      Get(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / shared;
  return static_cast<uint32_t>(Least(Get(cudaDevAttrMaxBlocksPerMultiprocessor),
                                     Least(by_threads, by_shared)));
}

}  // namespace reprise::standin

using namespace reprise::standin;  // NOLINT: this file is its C face

extern "C" {

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* key) {
  if (kernel == nullptr) return Finish(cudaErrorInvalidValue);
  MutexLock lock(TheContext().mutex);
  Function* function = FindFunction(key);
  if (function == nullptr) return Finish(cudaErrorInvalidResourceHandle);
  *kernel = reinterpret_cast<cudaKernel_t>(function);
  return cudaSuccess;
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* key) {
  return __cudaGetKernel(kernel, key);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes,
                                  const void* key) {
  return WithFunction(key, attributes, [&](Function& function) {
    Describe(function, attributes);
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* key, cudaFuncAttribute attribute,
                                 int value) {
  return WithFunction(key, key, [&](Function& function) {
    return SetAttribute(function, attribute, value);
  });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel,
                                            cudaFuncAttribute attribute,
                                            int value, int device) {
  if (device != 0) return Finish(cudaErrorInvalidDevice);
  return cudaFuncSetAttribute(kernel, attribute, value);
}

cudaError_t cudaFuncSetCacheConfig(const void* key, cudaFuncCache config) {
  if (config > cudaFuncCachePreferEqual) return Finish(cudaErrorInvalidValue);
  return WithFunction(key, key, [](Function&) { return cudaSuccess; });
}

cudaError_t cudaFuncSetSharedMemConfig(const void* key,
                                       cudaSharedMemConfig config) {
  if (config > cudaSharedMemBankSizeEightByte)
    return Finish(cudaErrorInvalidValue);
  return WithFunction(key, key, [](Function&) { return cudaSuccess; });
}

cudaError_t cudaFuncGetName(const char** name, const void* key) {
  return WithFunction(key, name, [&](Function& function) {
    *name = function.name;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetParamInfo(const void* key, size_t index, size_t* offset,
                                 size_t* bytes) {
  return WithFunction(key, offset, [&](Function& function) {
    if (index >= function.parameters.size()) return cudaErrorInvalidValue;
    *offset = function.parameters[index].offset;
    if (bytes != nullptr) *bytes = function.parameters[index].bytes;
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* key, int block_threads, size_t shared_bytes,
    unsigned flags) {
  if (block_threads <= 0 || flags > cudaOccupancyDisableCachingOverride)
    return Finish(cudaErrorInvalidValue);
  return WithFunction(key, blocks, [&](Function& function) {
    *blocks = static_cast<int>(ResidentBlocks(
        function, static_cast<uint32_t>(block_threads), shared_bytes));
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                          const void* key,
                                                          int block_threads,
                                                          size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, key, block_threads, shared_bytes, cudaOccupancyDefault);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes,
                                                      const void* key,
                                                      int blocks,
                                                      int block_threads) {
  if (blocks <= 0 || block_threads <= 0) return Finish(cudaErrorInvalidValue);
  return WithFunction(key, bytes, [&](Function& function) {
    const uint32_t share = Get(cudaDevAttrMaxSharedMemoryPerMultiprocessor) /
                           static_cast<uint32_t>(blocks);
    const uint32_t taken = Get(cudaDevAttrReservedSharedMemoryPerBlock) +
                           function.info.static_shared_bytes;
    const uint32_t room = share > taken ? share - taken : 0;
    *bytes = Least(room, MaxDynamicSharedBytes(function));
    return cudaSuccess;
  });
}

}  // extern "C"
