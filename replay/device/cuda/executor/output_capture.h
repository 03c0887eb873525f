// What this process writes to standard output, taken piece by piece: device
// printf goes there. Not thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_OUTPUT_CAPTURE_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_OUTPUT_CAPTURE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace reprise::cuda {

class OutputCapture {
 public:
  // From now on standard output is kept in memory.
  static absl::StatusOr<std::unique_ptr<OutputCapture>> Begin();

  // What was written since the last call, at most 1 MiB of it.
  std::string Take();

 private:
  OutputCapture() = default;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_OUTPUT_CAPTURE_H_
