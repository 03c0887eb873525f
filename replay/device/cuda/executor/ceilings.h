// What the present device can do at most, measured by kernels that do nothing
// else: the lines of a roofline. Not thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_CEILINGS_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_CEILINGS_H_

#include "absl/status/statusor.h"
#include "replay/device/cuda/executor/gpu.h"
#include "reprise/v1/types.pb.h"

namespace reprise::cuda {

// The best of a few rounds of each: a ceiling is what has been reached.
// RESOURCE_EXHAUSTED where there is no memory for a buffer of eight times the
// L2 cache, which is given back at once.
absl::StatusOr<v1::DeviceCeilings> MeasureCeilings(Gpu& gpu);

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_CEILINGS_H_
