// Sends a unit's bytes through the transfer window: several threads read cells
// from the store while the executor copies earlier ones to its device.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_UNIT_STREAM_H_
#define REPRISE_REPLAY_DEVICE_CUDA_UNIT_STREAM_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "replay/device/cuda/transfer_window.h"
#include "replay/device/cuda/unit_image.h"
#include "reprise/v1/cuda_executor.pb.h"

namespace reprise::cuda {

// Requests to the executor, of which several may be under way.
struct UnitStreamChannel {
  std::function<absl::Status(v1::CudaExecutorRequest)> post;
  // Waits for the oldest request's reply and returns its error. Never waits
  // for ever.
  std::function<absl::Status()> collect;
};

// Loads the unit: its request and all of its cells. Appends the words that hold
// addresses of variables, where the image does not know them. Returns when no
// request is under way, with the first error; the executor may then hold part
// of the unit. Nothing of the reference stays in the window.
absl::Status StreamUnit(const UnitImage& image, TransferWindow& window,
                        const UnitStreamChannel& channel,
                        std::vector<v1::CudaAddressWord>* words);

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_UNIT_STREAM_H_
