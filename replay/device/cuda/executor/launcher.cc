#include "replay/device/cuda/executor/launcher.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"

namespace reprise::cuda {
namespace {

// Dynamic shared memory that needs no opt-in.
constexpr uint32_t kPlainSharedBytes = 48 << 10;
// Larger clusters are not portable and need an opt-in.
constexpr uint64_t kPortableCluster = 8;

bool IsRefusal(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_INVALID_SOURCE:
      return true;
    default:
      return false;
  }
}

// Of the machine, whatever the kernel does.
bool IsHardware(CUresult result) {
  return result == CUDA_ERROR_ECC_UNCORRECTABLE ||
         result == CUDA_ERROR_NVLINK_UNCORRECTABLE ||
         result == CUDA_ERROR_DEVICE_UNAVAILABLE ||
         result == CUDA_ERROR_SYSTEM_NOT_READY;
}

uint64_t Blocks(const v1::Dim3& dim) {
  return uint64_t{dim.x()} * dim.y() * dim.z();
}

// Refusals come back in the result.
CUresult AllowWhatIsAsked(const Driver& d, CUfunction kernel,
                          const v1::LaunchConfig& launch) {
  if (launch.dynamic_shared_bytes() != 0) {
    int fixed = 0;
    CUresult result =
        d.FuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel);
    if (result == CUDA_SUCCESS &&
        launch.dynamic_shared_bytes() + static_cast<uint32_t>(fixed) >
            kPlainSharedBytes) {
      result = d.FuncSetAttribute(
          kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
          static_cast<int>(launch.dynamic_shared_bytes()));
    }
    if (result != CUDA_SUCCESS) return result;
  }
  if (launch.has_cluster() && Blocks(launch.cluster()) > kPortableCluster) {
    return d.FuncSetAttribute(
        kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  }
  return CUDA_SUCCESS;
}

CUresult Submit(Gpu& gpu, CUfunction kernel, const v1::LaunchConfig& launch,
                std::string& arguments) {
  CUlaunchAttribute attributes[2] = {};
  CUlaunchConfig config = {};
  config.gridDimX = launch.grid().x();
  config.gridDimY = launch.grid().y();
  config.gridDimZ = launch.grid().z();
  config.blockDimX = launch.block().x();
  config.blockDimY = launch.block().y();
  config.blockDimZ = launch.block().z();
  config.sharedMemBytes = launch.dynamic_shared_bytes();
  config.hStream = gpu.stream();
  config.attrs = attributes;
  if (launch.has_cluster() && Blocks(launch.cluster()) > 1) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {launch.cluster().x(), launch.cluster().y(),
                                  launch.cluster().z()};
  }
  if (launch.cooperative()) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
  }
  size_t bytes = arguments.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments.data(),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  return gpu.driver().LaunchKernelEx(&config, kernel, nullptr,
                                     bytes == 0 ? nullptr : extra);
}

LaunchResult Refused(const Driver& d, CUresult code) {
  LaunchResult result;
  result.kind = v1::OUTCOME_KIND_INVALID_LAUNCH;
  result.diagnostics =
      absl::StrCat("the driver refuses the launch: ", d.Describe(code));
  return result;
}

// What a launch that was submitted came to. A Status is the machine's error.
absl::StatusOr<LaunchResult> Ended(const Driver& d, CUresult code) {
  if (IsHardware(code)) return d.Check(code, "the launch");
  LaunchResult result;
  if (code == CUDA_SUCCESS) return result;
  result.kind = v1::OUTCOME_KIND_DEVICE_FAULT;
  result.diagnostics = d.Describe(code);
  result.context_lost = true;
  return result;
}

}  // namespace

absl::StatusOr<LaunchResult> RunLaunch(Gpu& gpu, CUfunction kernel,
                                       const v1::LaunchConfig& launch,
                                       std::string arguments, L2Before l2) {
  const Driver& d = gpu.driver();
  std::chrono::steady_clock::time_point start;
  CUresult code = AllowWhatIsAsked(d, kernel, launch);
  if (code == CUDA_SUCCESS) {
    if (l2 != L2Before::kAsIs) RETURN_IF_ERROR(gpu.FlushL2());
    if (l2 == L2Before::kClean) RETURN_IF_ERROR(gpu.CleanL2());
    RETURN_IF_ERROR(gpu.Delay());
    start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(gpu.RecordStart());
    code = Submit(gpu, kernel, launch, arguments);
  }
  if (IsRefusal(code)) return Refused(d, code);
  if (code == CUDA_SUCCESS) code = gpu.RecordStop();
  if (code == CUDA_SUCCESS) code = d.StreamSynchronize(gpu.stream());
  if (code == CUDA_SUCCESS) code = d.CtxSynchronize();
  const double wall_ns = std::chrono::duration<double, std::nano>(
                             std::chrono::steady_clock::now() - start)
                             .count();
  ASSIGN_OR_RETURN(LaunchResult result, Ended(d, code));
  result.wall_ns = wall_ns;
  if (result.kind == v1::OUTCOME_KIND_OK) {
    ASSIGN_OR_RETURN(result.duration_ns, gpu.ElapsedNs());
  }
  return result;
}

absl::StatusOr<LaunchResult> RunLaunchBetween(
    Gpu& gpu, CUfunction kernel, const v1::LaunchConfig& launch,
    std::string arguments, const std::function<absl::Status()>& before,
    const std::function<absl::Status()>& after) {
  const Driver& d = gpu.driver();
  CUresult code = AllowWhatIsAsked(d, kernel, launch);
  if (code == CUDA_SUCCESS) {
    RETURN_IF_ERROR(before());
    code = Submit(gpu, kernel, launch, arguments);
  }
  if (IsRefusal(code)) return Refused(d, code);
  if (code == CUDA_SUCCESS) code = d.StreamSynchronize(gpu.stream());
  if (code == CUDA_SUCCESS) code = d.CtxSynchronize();
  ASSIGN_OR_RETURN(const LaunchResult result, Ended(d, code));
  if (result.kind == v1::OUTCOME_KIND_OK) RETURN_IF_ERROR(after());
  return result;
}

}  // namespace reprise::cuda
