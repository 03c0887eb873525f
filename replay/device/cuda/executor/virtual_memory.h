// Device memory at chosen addresses: physical pieces, reserved addresses, and
// the two together.
//
// All sizes and addresses are multiples of kGranuleBytes. Objects give back
// what they hold when destroyed, and must not outlive their Gpu. Not
// thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_VIRTUAL_MEMORY_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_VIRTUAL_MEMORY_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/device/cuda/executor/gpu.h"

namespace reprise::cuda {

inline constexpr uint64_t kGranuleBytes = 2 << 20;
// Reservations below 32 MiB come where the driver likes, whatever address was
// asked for (driver 580): ours are made of whole pieces of this size.
inline constexpr uint64_t kReservationBytes = 32 << 20;

inline uint64_t GranuleDown(uint64_t value) {
  return value & ~(kGranuleBytes - 1);
}
inline uint64_t GranuleUp(uint64_t value) {
  return GranuleDown(value + kGranuleBytes - 1);
}

// Memory without an address.
class PhysicalMemory {
 public:
  // RESOURCE_EXHAUSTED where the device has not enough.
  static absl::StatusOr<std::unique_ptr<PhysicalMemory>> Create(Gpu& gpu,
                                                                uint64_t bytes);
  ~PhysicalMemory();
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;
  CUmemGenericAllocationHandle handle() const { return handle_; }
  uint64_t bytes() const { return bytes_; }

 private:
  PhysicalMemory(Gpu& gpu, uint64_t bytes) : gpu_(gpu), bytes_(bytes) {}
  Gpu& gpu_;
  const uint64_t bytes_;
  CUmemGenericAllocationHandle handle_ = 0;
};

// Addresses without memory.
class AddressRange {
 public:
  // Exactly these. ALREADY_EXISTS: this process has something there, another
  // one may not; FAILED_PRECONDITION: the driver never gives them.
  static absl::StatusOr<std::unique_ptr<AddressRange>> ReserveAt(
      Gpu& gpu, uint64_t address, uint64_t bytes);
  // Some that no recording uses and that a kernel cannot foresee.
  static absl::StatusOr<std::unique_ptr<AddressRange>> ReserveAnywhere(
      Gpu& gpu, uint64_t bytes);
  ~AddressRange();
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  uint64_t address() const { return address_; }
  uint64_t bytes() const { return bytes_; }

 private:
  AddressRange(Gpu& gpu, uint64_t address, uint64_t bytes)
      : gpu_(gpu), address_(address), bytes_(bytes) {}
  Gpu& gpu_;
  const uint64_t address_;
  const uint64_t bytes_;
};

// Maps all of `memory` at an address of a reservation.
absl::Status Map(Gpu& gpu, uint64_t address, const PhysicalMemory& memory,
                 bool writable);
absl::Status Unmap(Gpu& gpu, uint64_t address, uint64_t bytes);

// Memory at an address of its own that can be out of reach for a while. Begins
// mapped and writable.
class HiddenMemory {
 public:
  static absl::StatusOr<std::unique_ptr<HiddenMemory>> Create(Gpu& gpu,
                                                              uint64_t bytes);
  // The address first; Fill decides how many of at most `bytes` bytes there
  // are, once.
  static absl::StatusOr<std::unique_ptr<HiddenMemory>> Reserve(Gpu& gpu,
                                                               uint64_t bytes);
  absl::Status Fill(uint64_t bytes);
  ~HiddenMemory();
  HiddenMemory(const HiddenMemory&) = delete;
  HiddenMemory& operator=(const HiddenMemory&) = delete;

  // Constant over hiding and showing.
  uint64_t address() const { return range_->address(); }
  absl::Status Show();
  absl::Status Hide();

 private:
  explicit HiddenMemory(Gpu& gpu) : gpu_(gpu) {}
  Gpu& gpu_;
  std::unique_ptr<PhysicalMemory> memory_;
  std::unique_ptr<AddressRange> range_;
  bool shown_ = false;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_VIRTUAL_MEMORY_H_
