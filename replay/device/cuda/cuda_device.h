// A CUDA device: units resident on one NVIDIA GPU, kernels run by an executor
// of its own (executor_client.h).
//
// A recorded unit is mapped at its recorded addresses and replays the
// application's own machine code (LoadApplicationKernel) and whatever the
// compiler builds for COMPILE_TARGET_CUBIN. Golden copies are not mapped while
// a kernel runs (executor/unit_memory.h says what is where).
//
// Restore and Poison take effect with the next launch, in one request with it.
//
// No library of NVIDIA's is linked: without a driver, creation fails with
// NOT_FOUND.
//
// Thread-safety and lifetime as in device.h.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_CUDA_DEVICE_H_
#define REPRISE_REPLAY_DEVICE_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/device/device.h"

namespace reprise {

struct CudaDeviceOptions {
  int ordinal = 0;
  std::string executor_executable;  // empty: this program
  std::vector<std::string> executor_arguments = {"cuda-executor"};
  // L2_POLICY_WARM where a launch says nothing else; else L2_POLICY_COLD.
  bool warm_l2 = false;
  // Leave golden copies mapped while a kernel runs, at an address it does not
  // know. Saves two calls of the driver in every launch.
  bool keep_golden_mapped = false;
  // The toolkit whose CUPTI counts; empty: $CUDA_HOME or /usr/local/cuda.
  std::string cuda_home;
};

// NOT_FOUND where there is no driver, or no device of this number.
absl::StatusOr<std::unique_ptr<Device>> CreateCudaDevice(
    CudaDeviceOptions options);

// How many devices there are. A child of this program asks, so that this
// process holds no context. NOT_FOUND where there is no driver.
absl::StatusOr<int> CudaDeviceCount(
    const CudaDeviceOptions& options = CudaDeviceOptions());

}  // namespace reprise

#endif  // REPRISE_REPLAY_DEVICE_CUDA_CUDA_DEVICE_H_
