// The transfer window as the executor uses it: a slot is registered with the
// driver when it is first used, so that copies run at full speed and without
// waiting. Where that fails, copies go through the driver's own buffers. Not
// thread-safe; lives as long as the process.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_REGISTERED_WINDOW_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_REGISTERED_WINDOW_H_

#include <array>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "replay/device/cuda/executor/gpu.h"
#include "replay/device/cuda/transfer_window.h"
#include "reprise/v1/cuda_executor.pb.h"

namespace reprise::cuda {

class RegisteredWindow {
 public:
  explicit RegisteredWindow(std::unique_ptr<TransferWindow> window)
      : window_(std::move(window)) {}

  // Before the bytes of these pieces are used. INVALID_ARGUMENT unless each
  // lies in one slot.
  absl::Status Open(
      Gpu& gpu,
      const google::protobuf::RepeatedPtrField<v1::CudaPiece>& pieces);
  char* bytes() const { return window_->bytes(); }

 private:
  const std::unique_ptr<TransferWindow> window_;
  std::array<bool, kSlots> tried_ = {};
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_REGISTERED_WINDOW_H_
