#include "replay/device/cuda/executor/virtual_memory.h"

#include <random>

#include "absl/strings/str_format.h"
#include "replay/base/status_macros.h"

namespace reprise::cuda {
namespace {

// Above the arenas, below where the driver and the host put theirs.
constexpr uint64_t kHiddenBase = 0x500000000000;
constexpr int kHiddenTries = 8;

CUmemLocation Location(const Gpu& gpu) {
  CUmemLocation location = {};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = gpu.device();
  return location;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PhysicalMemory>> PhysicalMemory::Create(
    Gpu& gpu, uint64_t bytes) {
  auto memory = std::unique_ptr<PhysicalMemory>(new PhysicalMemory(gpu, bytes));
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = Location(gpu);
  const CUresult result =
      gpu.driver().MemCreate(&memory->handle_, bytes, &properties, 0);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    gpu.driver().MemGetInfo(&free, &total);
    return absl::ResourceExhaustedError(
        absl::StrFormat("the device has %.2f GiB free of %.2f, but %.2f more "
                        "are needed; load fewer or smaller units",
                        free / 0x1p30, total / 0x1p30, bytes / 0x1p30));
  }
  RETURN_IF_ERROR(gpu.driver().Check(result, "cuMemCreate"));
  return memory;
}

PhysicalMemory::~PhysicalMemory() {
  if (handle_ != 0) gpu_.driver().MemRelease(handle_);
}

absl::StatusOr<std::unique_ptr<AddressRange>> AddressRange::ReserveAt(
    Gpu& gpu, uint64_t address, uint64_t bytes) {
  CUdeviceptr got = 0;
  const CUresult result =
      gpu.driver().MemAddressReserve(&got, bytes, 0, address, 0);
  if (result == CUDA_SUCCESS && got == address) {
    return std::unique_ptr<AddressRange>(new AddressRange(gpu, address, bytes));
  }
  if (result == CUDA_SUCCESS) {
    gpu.driver().MemAddressFree(got, bytes);
    return absl::AlreadyExistsError(absl::StrFormat(
        "cannot map %d bytes at their recorded address 0x%x: the driver gives "
        "0x%x instead, so something else lies there",
        bytes, address, got));
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("cannot map %d bytes at their recorded address 0x%x: %s",
                      bytes, address, gpu.driver().Describe(result)));
}

absl::StatusOr<std::unique_ptr<AddressRange>> AddressRange::ReserveAnywhere(
    Gpu& gpu, uint64_t bytes) {
  std::random_device random;
  for (int i = 0; i < kHiddenTries; ++i) {
    const uint64_t wish =
        kHiddenBase + (static_cast<uint64_t>(random() & 0x3ffff) << 26);
    auto range = ReserveAt(gpu, wish, bytes);
    if (range.ok()) return range;
  }
  CUdeviceptr got = 0;
  CUDA_RETURN_IF_ERROR(gpu.driver(), MemAddressReserve, (&got, bytes, 0, 0, 0));
  return std::unique_ptr<AddressRange>(new AddressRange(gpu, got, bytes));
}

AddressRange::~AddressRange() {
  gpu_.driver().MemAddressFree(address_, bytes_);
}

absl::Status Map(Gpu& gpu, uint64_t address, const PhysicalMemory& memory,
                 bool writable) {
  CUDA_RETURN_IF_ERROR(gpu.driver(), MemMap,
                       (address, memory.bytes(), 0, memory.handle(), 0));
  CUmemAccessDesc access = {};
  access.location = Location(gpu);
  access.flags = writable ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                          : CU_MEM_ACCESS_FLAGS_PROT_READ;
  const absl::Status status = gpu.driver().Check(
      gpu.driver().MemSetAccess(address, memory.bytes(), &access, 1),
      "cuMemSetAccess");
  if (!status.ok()) gpu.driver().MemUnmap(address, memory.bytes());
  return status;
}

absl::Status Unmap(Gpu& gpu, uint64_t address, uint64_t bytes) {
  CUDA_RETURN_IF_ERROR(gpu.driver(), MemUnmap, (address, bytes));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<HiddenMemory>> HiddenMemory::Create(
    Gpu& gpu, uint64_t bytes) {
  ASSIGN_OR_RETURN(auto hidden, Reserve(gpu, bytes));
  RETURN_IF_ERROR(hidden->Fill(bytes));
  return hidden;
}

absl::StatusOr<std::unique_ptr<HiddenMemory>> HiddenMemory::Reserve(
    Gpu& gpu, uint64_t bytes) {
  auto hidden = std::unique_ptr<HiddenMemory>(new HiddenMemory(gpu));
  ASSIGN_OR_RETURN(hidden->range_,
                   AddressRange::ReserveAnywhere(
                       gpu, std::max(GranuleUp(bytes), kReservationBytes)));
  return hidden;
}

absl::Status HiddenMemory::Fill(uint64_t bytes) {
  const uint64_t whole = GranuleUp(std::max<uint64_t>(bytes, 1));
  if (whole > range_->bytes()) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "%d bytes are needed at addresses for %d", whole, range_->bytes()));
  }
  ASSIGN_OR_RETURN(memory_, PhysicalMemory::Create(gpu_, whole));
  return Show();
}

HiddenMemory::~HiddenMemory() { Hide().IgnoreError(); }

absl::Status HiddenMemory::Show() {
  if (shown_) return absl::OkStatus();
  RETURN_IF_ERROR(Map(gpu_, range_->address(), *memory_, true));
  shown_ = true;
  return absl::OkStatus();
}

absl::Status HiddenMemory::Hide() {
  if (!shown_) return absl::OkStatus();
  shown_ = false;
  return Unmap(gpu_, range_->address(), memory_->bytes());
}

}  // namespace reprise::cuda
