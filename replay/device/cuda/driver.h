// The CUDA driver, loaded at run time: one binary runs with and without a GPU.
//
// Driver holds the entry points of libcuda.so.1 under their own names, and is
// the one place where a CUresult becomes an absl::Status. Entry points are
// taken by the oldest name that does what is needed.
//
// Thread-safe once loaded; the library is never unloaded.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_DRIVER_H_
#define REPRISE_REPLAY_DEVICE_CUDA_DRIVER_H_

#include <cuda.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// X(member, symbol in the library, declaration in cuda.h that it has the type
// of).
#define REPRISE_CUDA_ENTRY_POINTS(X)                                  \
  X(Init, "cuInit", cuInit)                                           \
  X(DriverGetVersion, "cuDriverGetVersion", cuDriverGetVersion)       \
  X(GetErrorName, "cuGetErrorName", cuGetErrorName)                   \
  X(GetErrorString, "cuGetErrorString", cuGetErrorString)             \
  X(DeviceGet, "cuDeviceGet", cuDeviceGet)                            \
  X(DeviceGetCount, "cuDeviceGetCount", cuDeviceGetCount)             \
  X(DeviceGetName, "cuDeviceGetName", cuDeviceGetName)                \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", cuDeviceGetAttribute) \
  X(DeviceGetPCIBusId, "cuDeviceGetPCIBusId", cuDeviceGetPCIBusId)    \
  X(DeviceGetUuid, "cuDeviceGetUuid_v2", cuDeviceGetUuid)             \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",               \
    cuDevicePrimaryCtxRetain)                                         \
  X(CtxSetCurrent, "cuCtxSetCurrent", cuCtxSetCurrent)                \
  X(CtxSynchronize, "cuCtxSynchronize", cuCtxSynchronize)             \
  X(MemGetInfo, "cuMemGetInfo_v2", cuMemGetInfo)                      \
  X(MemAlloc, "cuMemAlloc_v2", cuMemAlloc)                            \
  X(MemFree, "cuMemFree_v2", cuMemFree)                               \
  X(MemHostRegister, "cuMemHostRegister_v2", cuMemHostRegister)       \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync)       \
  X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync)       \
  X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", cuMemcpyDtoDAsync)       \
  X(MemsetD8Async, "cuMemsetD8Async", cuMemsetD8Async)                \
  X(MemAddressReserve, "cuMemAddressReserve", cuMemAddressReserve)    \
  X(MemAddressFree, "cuMemAddressFree", cuMemAddressFree)             \
  X(MemCreate, "cuMemCreate", cuMemCreate)                            \
  X(MemRelease, "cuMemRelease", cuMemRelease)                         \
  X(MemMap, "cuMemMap", cuMemMap)                                     \
  X(MemUnmap, "cuMemUnmap", cuMemUnmap)                               \
  X(MemSetAccess, "cuMemSetAccess", cuMemSetAccess)                   \
  X(StreamCreate, "cuStreamCreate", cuStreamCreate)                   \
  X(StreamSynchronize, "cuStreamSynchronize", cuStreamSynchronize)    \
  X(EventCreate, "cuEventCreate", cuEventCreate)                      \
  X(EventRecord, "cuEventRecord", cuEventRecord)                      \
  X(EventElapsedTime, "cuEventElapsedTime", cuEventElapsedTime)       \
  X(ModuleLoadData, "cuModuleLoadData", cuModuleLoadData)             \
  X(ModuleUnload, "cuModuleUnload", cuModuleUnload)                   \
  X(ModuleGetFunction, "cuModuleGetFunction", cuModuleGetFunction)    \
  X(ModuleGetGlobal, "cuModuleGetGlobal_v2", cuModuleGetGlobal)       \
  X(FuncGetAttribute, "cuFuncGetAttribute", cuFuncGetAttribute)       \
  X(FuncSetAttribute, "cuFuncSetAttribute", cuFuncSetAttribute)       \
  X(LaunchKernelEx, "cuLaunchKernelEx", cuLaunchKernelEx)

// Of newer drivers; null where the driver has none.
#define REPRISE_CUDA_OPTIONAL_ENTRY_POINTS(X)               \
  X(ModuleGetFunctionCount, "cuModuleGetFunctionCount",     \
    cuModuleGetFunctionCount)                               \
  X(ModuleEnumerateFunctions, "cuModuleEnumerateFunctions", \
    cuModuleEnumerateFunctions)                             \
  X(FuncGetName, "cuFuncGetName", cuFuncGetName)

namespace reprise::cuda {

// Names the library to load instead of libcuda.so.1; for tests.
inline constexpr char kDriverVariable[] = "REPRISE_CUDA_DRIVER";

class Driver {
 public:
  // NOT_FOUND where there is no driver; FAILED_PRECONDITION where it is too
  // old. Does not initialize it.
  static absl::StatusOr<std::unique_ptr<const Driver>> Load();

  // OK, or the error with the call's text. Out of memory is
  // RESOURCE_EXHAUSTED, no device NOT_FOUND, no code for this device
  // UNIMPLEMENTED, an invalid value INVALID_ARGUMENT, all else INTERNAL.
  absl::Status Check(CUresult result, std::string_view call) const;

  // As Check, of a call that loads `image`. Where the driver knows nothing of
  // its kind, the message says for which CUDA both are and what to do.
  absl::Status CheckLoad(CUresult result, std::string_view image) const;

  // "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered".
  std::string Describe(CUresult result) const;

#define REPRISE_CUDA_MEMBER(member, symbol, declaration) \
  decltype(&::declaration) member = nullptr;
  REPRISE_CUDA_ENTRY_POINTS(REPRISE_CUDA_MEMBER)
  REPRISE_CUDA_OPTIONAL_ENTRY_POINTS(REPRISE_CUDA_MEMBER)
#undef REPRISE_CUDA_MEMBER
};

// The CUDA version of this machine's driver, 12040 for 12.4; 0 where there is
// none. Starts nothing.
int DriverCudaVersion();

// What made an image, as "CUDA 13.0" or "PTX 8.8"; empty: it does not say.
// Machine code of CUDA 12 tells no more than "a CUDA before 13".
std::string CodeMaker(std::string_view image);

// "12.4" for 12040.
std::string CudaVersionText(int version);

// Returns from the enclosing function when a driver call fails:
// CUDA_RETURN_IF_ERROR(driver, MemRelease, (handle)).
#define CUDA_RETURN_IF_ERROR(driver, member, arguments) \
  RETURN_IF_ERROR((driver).Check((driver).member arguments, "cu" #member))

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_DRIVER_H_
