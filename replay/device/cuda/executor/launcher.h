// One launch of a recorded kernel, and what became of it. Not thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_LAUNCHER_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_LAUNCHER_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "replay/device/cuda/executor/gpu.h"

namespace reprise::cuda {

struct LaunchResult {
  v1::OutcomeKind kind = v1::OUTCOME_KIND_OK;
  std::string diagnostics;
  double duration_ns = 0;
  // By the host's clock, from before the first event until the whole device has
  // nothing left to do: work that the events do not see shows here.
  double wall_ns = 0;
  bool context_lost = false;
};

// What the L2 cache holds when the kernel begins: what it happens to, other
// bytes, or other bytes that have to be written back.
enum class L2Before { kAsIs, kClean, kDirty };

// Runs the kernel between two events and waits for it. The device is kept busy
// until the launch is submitted, so that the events hold no time of the host's.
// `arguments` is the whole argument buffer. A refused launch is INVALID_LAUNCH;
// an error while it runs DEVICE_FAULT, which ends the context. A Status is an
// error of the device itself.
absl::StatusOr<LaunchResult> RunLaunch(Gpu& gpu, CUfunction kernel,
                                       const v1::LaunchConfig& launch,
                                       std::string arguments, L2Before l2);

// Runs the kernel between two calls, with nothing else between them on the
// device, and waits for it before the second, which follows a launch that was
// OK. Results and errors as above; the duration is 0.
absl::StatusOr<LaunchResult> RunLaunchBetween(
    Gpu& gpu, CUfunction kernel, const v1::LaunchConfig& launch,
    std::string arguments, const std::function<absl::Status()>& before,
    const std::function<absl::Status()>& after);

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_LAUNCHER_H_
