// What can be asked about the one device there is. It says of itself what an
// NVIDIA H200 says, but for its name, memory size and compute capability, which
// the recorder chooses, and for what the stand-in cannot do.
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "replay/recorder/preload/context.h"
#include "replay/recorder/preload/device.h"

namespace reprise::standin {
namespace {

constexpr int kAttributes[] = {
#include "replay/recorder/preload/h200_attributes.inc"
};
constexpr int kAttributeCount = sizeof(kAttributes) / sizeof(kAttributes[0]);
static_assert(kAttributeCount == 147);
constexpr char kBusId[] = "0000:00:00.0";
constexpr int kCudaVersion = CUDART_VERSION;

// By cudaLimit; as an H200 answers before anybody changed them.
constinit size_t limits[] = {1024, 8650752, 8388608, 0, 2048, 64, 11796480};
constexpr size_t kLimitCount = sizeof(limits) / sizeof(limits[0]);
constexpr size_t kSyncDepth = 3;  // gone since compute capability 9.0

constinit unsigned schedule_flags = 0;
constinit cudaFuncCache cache_config = cudaFuncCachePreferNone;
constinit cudaSharedMemConfig shared_config = cudaSharedMemBankSizeDefault;

bool IsDevice(int device) { return device == 0; }

void FillTextureLimits(cudaDeviceProp* prop) {
  const auto at = [](cudaDeviceAttr a) { return Attribute(a); };
  prop->maxTexture1D = at(cudaDevAttrMaxTexture1DWidth);
  prop->maxTexture1DMipmap = at(cudaDevAttrMaxTexture1DMipmappedWidth);
  prop->maxTexture2D[0] = at(cudaDevAttrMaxTexture2DWidth);
  prop->maxTexture2D[1] = at(cudaDevAttrMaxTexture2DHeight);
  prop->maxTexture2DLinear[0] = at(cudaDevAttrMaxTexture2DLinearWidth);
  prop->maxTexture2DLinear[1] = at(cudaDevAttrMaxTexture2DLinearHeight);
  prop->maxTexture2DLinear[2] = at(cudaDevAttrMaxTexture2DLinearPitch);
  prop->maxTexture3D[0] = at(cudaDevAttrMaxTexture3DWidth);
  prop->maxTexture3D[1] = at(cudaDevAttrMaxTexture3DHeight);
  prop->maxTexture3D[2] = at(cudaDevAttrMaxTexture3DDepth);
  prop->textureAlignment = at(cudaDevAttrTextureAlignment);
  prop->texturePitchAlignment = at(cudaDevAttrTexturePitchAlignment);
  prop->surfaceAlignment = at(cudaDevAttrSurfaceAlignment);
}

void FillLaunchLimits(cudaDeviceProp* prop) {
  const auto at = [](cudaDeviceAttr a) { return Attribute(a); };
  prop->warpSize = at(cudaDevAttrWarpSize);
  prop->maxThreadsPerBlock = at(cudaDevAttrMaxThreadsPerBlock);
  prop->maxThreadsDim[0] = at(cudaDevAttrMaxBlockDimX);
  prop->maxThreadsDim[1] = at(cudaDevAttrMaxBlockDimY);
  prop->maxThreadsDim[2] = at(cudaDevAttrMaxBlockDimZ);
  prop->maxGridSize[0] = at(cudaDevAttrMaxGridDimX);
  prop->maxGridSize[1] = at(cudaDevAttrMaxGridDimY);
  prop->maxGridSize[2] = at(cudaDevAttrMaxGridDimZ);
  prop->sharedMemPerBlock = at(cudaDevAttrMaxSharedMemoryPerBlock);
  prop->sharedMemPerBlockOptin = at(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  prop->sharedMemPerMultiprocessor =
      at(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  prop->reservedSharedMemPerBlock = at(cudaDevAttrReservedSharedMemoryPerBlock);
  prop->regsPerBlock = at(cudaDevAttrMaxRegistersPerBlock);
  prop->regsPerMultiprocessor = at(cudaDevAttrMaxRegistersPerMultiprocessor);
  prop->maxThreadsPerMultiProcessor =
      at(cudaDevAttrMaxThreadsPerMultiProcessor);
  prop->maxBlocksPerMultiProcessor = at(cudaDevAttrMaxBlocksPerMultiprocessor);
  prop->multiProcessorCount = at(cudaDevAttrMultiProcessorCount);
  prop->cooperativeLaunch = at(cudaDevAttrCooperativeLaunch);
  prop->clusterLaunch = at(cudaDevAttrClusterLaunch);
}

void FillMemory(cudaDeviceProp* prop) {
  const auto at = [](cudaDeviceAttr a) { return Attribute(a); };
  prop->totalConstMem = at(cudaDevAttrTotalConstantMemory);
  prop->memPitch = at(cudaDevAttrMaxPitch);
  prop->memoryBusWidth = at(cudaDevAttrGlobalMemoryBusWidth);
  prop->l2CacheSize = at(cudaDevAttrL2CacheSize);
  prop->persistingL2CacheMaxSize = at(cudaDevAttrMaxPersistingL2CacheSize);
  prop->accessPolicyMaxWindowSize = at(cudaDevAttrMaxAccessPolicyWindowSize);
  prop->globalL1CacheSupported = at(cudaDevAttrGlobalL1CacheSupported);
  prop->localL1CacheSupported = at(cudaDevAttrLocalL1CacheSupported);
  prop->ECCEnabled = at(cudaDevAttrEccEnabled);
  prop->canMapHostMemory = at(cudaDevAttrCanMapHostMemory);
  prop->unifiedAddressing = at(cudaDevAttrUnifiedAddressing);
  prop->managedMemory = at(cudaDevAttrManagedMemory);
  prop->concurrentManagedAccess = at(cudaDevAttrConcurrentManagedAccess);
  prop->pageableMemoryAccess = at(cudaDevAttrPageableMemoryAccess);
  prop->canUseHostPointerForRegisteredMem =
      at(cudaDevAttrCanUseHostPointerForRegisteredMem);
  prop->hostRegisterSupported = at(cudaDevAttrHostRegisterSupported);
  prop->memoryPoolsSupported = at(cudaDevAttrMemoryPoolsSupported);
}

void FillProperties(const wire::HelloReply& hello, cudaDeviceProp* prop) {
  *prop = {};
  static_assert(sizeof(prop->name) == sizeof(hello.device_name));
  memcpy(prop->name, hello.device_name, sizeof(prop->name));
  prop->totalGlobalMem = hello.device_memory_bytes;
  prop->major = static_cast<int>(hello.compute_major);
  prop->minor = static_cast<int>(hello.compute_minor);
  prop->concurrentKernels = Attribute(cudaDevAttrConcurrentKernels);
  prop->asyncEngineCount = Attribute(cudaDevAttrAsyncEngineCount);
  prop->streamPrioritiesSupported =
      Attribute(cudaDevAttrStreamPrioritiesSupported);
  prop->computePreemptionSupported =
      Attribute(cudaDevAttrComputePreemptionSupported);
  prop->hostNumaId = Attribute(cudaDevAttrHostNumaId);
  FillLaunchLimits(prop);
  FillMemory(prop);
  FillTextureLimits(prop);
}

}  // namespace

int Attribute(cudaDeviceAttr attribute) {
  const wire::HelloReply& hello = TheContext().hello;
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      return static_cast<int>(hello.compute_major);
    case cudaDevAttrComputeCapabilityMinor:
      return static_cast<int>(hello.compute_minor);
    case cudaDevAttrPciBusId:
    case cudaDevAttrPciDeviceId:
    // Kernels run in another process.
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    // Not in the stand-in.
    case cudaDevAttrSparseCudaArraySupported:
    case cudaDevAttrDeferredMappingCudaArraySupported:
    case cudaDevAttrTimelineSemaphoreInteropSupported:
    case cudaDevAttrGPUDirectRDMASupported:
    case cudaDevAttrMemoryPoolSupportedHandleTypes:
    case cudaDevAttrIpcEventSupport:
    case cudaDevAttrGpuPciDeviceId:
    case cudaDevAttrGpuPciSubsystemId:
      return 0;
    default:
      return kAttributes[attribute - 1];
  }
}

}  // namespace reprise::standin

using namespace reprise::standin;  // NOLINT: this file is its C face

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return Finish(cudaErrorInvalidValue);
  ContextLock context(Context::kDevice);
  *count = context.ok() ? 1 : 0;
  return Finish(context.error());
}

cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return Finish(cudaErrorInvalidValue);
  ContextLock context(Context::kDevice);
  if (context.ok()) *device = 0;
  return Finish(context.error());
}

cudaError_t cudaSetDevice(int device) {
  ContextLock context(Context::kDevice);
  if (!context.ok()) return context.Fail();
  return Finish(IsDevice(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return cudaSetDevice(device);
}

cudaError_t cudaSetValidDevices(int* devices, int count) {
  if (devices == nullptr && count > 0) return Finish(cudaErrorInvalidValue);
  for (int i = 0; i < count; ++i)
    if (!IsDevice(devices[i])) return Finish(cudaErrorInvalidDevice);
  return cudaSuccess;
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* prop) {
  if (device == nullptr || prop == nullptr)
    return Finish(cudaErrorInvalidValue);
  return cudaGetDevice(device);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  if (prop == nullptr) return Finish(cudaErrorInvalidValue);
  ContextLock context(Context::kDevice);
  if (!context.ok()) return context.Fail();
  if (!IsDevice(device)) return Finish(cudaErrorInvalidDevice);
  FillProperties(context->hello, prop);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute,
                                   int device) {
  if (value == nullptr || attribute < 1 || attribute > kAttributeCount)
    return Finish(cudaErrorInvalidValue);
  ContextLock context(Context::kDevice);
  if (!context.ok()) return context.Fail();
  if (!IsDevice(device)) return Finish(cudaErrorInvalidDevice);
  *value = Attribute(attribute);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  if (value == nullptr || static_cast<size_t>(limit) >= kLimitCount)
    return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  if (static_cast<size_t>(limit) == kSyncDepth)
    return Finish(cudaErrorUnsupportedLimit);
  *value = limits[limit];
  return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  if (static_cast<size_t>(limit) >= kLimitCount)
    return Finish(cudaErrorInvalidValue);
  ContextLock context;
  if (!context.ok()) return context.Fail();
  if (static_cast<size_t>(limit) == kSyncDepth)
    return Finish(cudaErrorUnsupportedLimit);
  limits[limit] = value;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  if (config == nullptr) return Finish(cudaErrorInvalidValue);
  *config = cache_config;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  if (config > cudaFuncCachePreferEqual) return Finish(cudaErrorInvalidValue);
  cache_config = config;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  if (config == nullptr) return Finish(cudaErrorInvalidValue);
  *config = shared_config;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  if (config > cudaSharedMemBankSizeEightByte)
    return Finish(cudaErrorInvalidValue);
  shared_config = config;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  if (flags == nullptr) return Finish(cudaErrorInvalidValue);
  *flags = schedule_flags | cudaDeviceMapHost;
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  const unsigned schedule = flags & cudaDeviceScheduleMask;
  const bool one_schedule = (schedule & (schedule - 1)) == 0;
  if ((flags & ~cudaDeviceMask) != 0 || !one_schedule)
    return Finish(cudaErrorInvalidValue);
  schedule_flags = flags;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return Finish(SynchronizeContext()); }

cudaError_t cudaDeviceReset() {
  SynchronizeContext();
  MutexLock lock(TheContext().mutex);
  if (!TheContext().fresh()) TheContext().Reset();
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return Finish(cudaErrorInvalidValue);
  if (!IsDevice(device) || !IsDevice(peer))
    return Finish(cudaErrorInvalidDevice);
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return Finish(IsDevice(peer) ? cudaErrorPeerAccessUnsupported
                               : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return Finish(IsDevice(peer) ? cudaErrorPeerAccessNotEnabled
                               : cudaErrorInvalidDevice);
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return Finish(cudaErrorInvalidValue);
  *version = kCudaVersion;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  return cudaRuntimeGetVersion(version);
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int capacity, int device) {
  if (text == nullptr || capacity < static_cast<int>(sizeof(kBusId)))
    return Finish(cudaErrorInvalidValue);
  if (!IsDevice(device)) return Finish(cudaErrorInvalidDevice);
  strcpy(text, kBusId);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  if (device == nullptr || text == nullptr)
    return Finish(cudaErrorInvalidValue);
  if (strcmp(text, kBusId) != 0) return Finish(cudaErrorInvalidDevice);
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaProfilerStart() { return cudaSuccess; }

cudaError_t cudaProfilerStop() { return cudaSuccess; }

cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }

}  // extern "C"
