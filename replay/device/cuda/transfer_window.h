// Shared memory through which the bytes of units pass between a CUDA device's
// parent and its executor: a ring of cells, several of which make a slot. A
// message of cuda_executor.proto names bytes of one slot.
//
// Its pages come when they are first written and stay: the first touch of
// shared memory costs more than everything else in loading a unit.
//
// Who may write when is said by the messages, not here.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_TRANSFER_WINDOW_H_
#define REPRISE_REPLAY_DEVICE_CUDA_TRANSFER_WINDOW_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "replay/unit/unit_store.h"

namespace reprise::cuda {

inline constexpr uint64_t kCellBytes = kChunkBytes;
// A slot is large enough for a copy to the device to run at full speed.
inline constexpr uint64_t kSlotCells = 8;
inline constexpr uint64_t kSlotBytes = kSlotCells * kCellBytes;
// Several slots travel while others are filled by all threads of the host.
inline constexpr uint64_t kSlots = 8;
inline constexpr uint64_t kWindowCells = kSlots * kSlotCells;
inline constexpr uint64_t kWindowBytes = kSlots * kSlotBytes;

class TransferWindow {
 public:
  static absl::StatusOr<std::unique_ptr<TransferWindow>> Create();
  // Of the descriptor that another process made; closed with the window.
  static absl::StatusOr<std::unique_ptr<TransferWindow>> Open(int fd);
  ~TransferWindow();
  TransferWindow(const TransferWindow&) = delete;
  TransferWindow& operator=(const TransferWindow&) = delete;

  int fd() const { return fd_; }
  char* bytes() const { return bytes_; }  // kWindowBytes

 private:
  explicit TransferWindow(int fd) : fd_(fd) {}
  const int fd_;
  char* bytes_ = nullptr;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_TRANSFER_WINDOW_H_
