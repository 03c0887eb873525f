// How fast this device does what every launch needs, for benchmarks. Not
// thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_MEASURE_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_MEASURE_H_

#include "absl/status/status.h"
#include "replay/device/cuda/executor/gpu.h"
#include "replay/device/cuda/executor/unit_memory.h"
#include "reprise/v1/cuda_executor.pb.h"

namespace reprise::cuda {

// Medians over request.rounds. The unit must be active and hold its prologue,
// which should equal its reference: then comparing finds nothing, as it does
// for a good variant.
absl::Status MeasureUnit(Gpu& gpu, UnitMemory& memory,
                         const v1::MeasureCudaRequest& request,
                         v1::CudaMeasurement* measurement);

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_MEASURE_H_
