#include "replay/device/cuda/executor/registered_window.h"

namespace reprise::cuda {
namespace {

// Fewer bytes are copied sooner than their slot is registered.
constexpr uint64_t kWorthRegistering = 1 << 20;

}  // namespace

absl::Status RegisteredWindow::Open(
    Gpu& gpu, const google::protobuf::RepeatedPtrField<v1::CudaPiece>& pieces) {
  uint64_t bytes_here = 0;
  for (const v1::CudaPiece& piece : pieces)
    bytes_here += piece.zero() ? 0 : piece.bytes();
  for (const v1::CudaPiece& piece : pieces) {
    if (piece.zero()) continue;
    const uint64_t slot = piece.window_offset() / kSlotBytes;
    if (slot >= kSlots ||
        piece.bytes() > (slot + 1) * kSlotBytes - piece.window_offset()) {
      return absl::InvalidArgumentError(
          "a piece of a unit lies in no slot of the window");
    }
    if (tried_[slot] || bytes_here < kWorthRegistering) continue;
    tried_[slot] = true;
    // A slot at a time: a copy may not reach over two registrations.
    gpu.driver().MemHostRegister(bytes() + slot * kSlotBytes, kSlotBytes, 0);
  }
  return absl::OkStatus();
}

}  // namespace reprise::cuda
