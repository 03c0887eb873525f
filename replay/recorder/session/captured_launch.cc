#include "replay/recorder/session/captured_launch.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replay/base/bytes.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

constexpr uint64_t kPageBytes = 4096;
// Prologue and epilogue are compared, and zeros left out, in blocks of the
// image of this size.
constexpr uint64_t kBlockBytes = 64 << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<CapturedMemory>> CapturedMemory::Create(
    const std::vector<LiveRange>& ranges, HostReserve* reserve,
    HostBudget* budget) {
  std::unique_ptr<CapturedMemory> memory(new CapturedMemory());
  uint64_t free_from = 0;
  constexpr uint64_t kMost = uint64_t{1} << 46;
  for (const LiveRange& range : ranges) {
    if (range.address < free_from || range.bytes == 0 || range.bytes > kMost ||
        memory->image_bytes_ > kMost ||
        range.address > std::numeric_limits<uint64_t>::max() - range.bytes) {
      return absl::InvalidArgumentError(
          absl::StrFormat("got a memory range of %d bytes at 0x%x, expected "
                          "ascending ranges that do not overlap",
                          range.bytes, range.address));
    }
    free_from = range.address + range.bytes;
    memory->live_[range.address] = range;
    memory->offsets_[range.address] = memory->image_bytes_;
    memory->image_bytes_ += RoundUp(range.bytes, kPageBytes);
  }
  const uint64_t image_bytes = memory->image_bytes_;
  const auto map = [reserve](uint64_t bytes) {
    return reserve != nullptr ? reserve->Take(bytes)
                              : HostPages::Map(bytes, /*large=*/true);
  };
  ASSIGN_OR_RETURN(memory->prologue_, map(image_bytes));
  memory->budget_ = budget;
  ASSIGN_OR_RETURN(
      memory->promise_,
      budget->Take(image_bytes -
                   std::min(image_bytes, memory->prologue_.ready())));
  ASSIGN_OR_RETURN(memory->epilogue_,
                   HostPages::Map(image_bytes, /*large=*/false));
  const size_t blocks = (image_bytes + kBlockBytes - 1) / kBlockBytes;
  memory->stored_.resize(blocks);
  memory->differs_.resize(blocks);
  return memory;
}

void CapturedMemory::TakePrologue(uint64_t offset, std::string_view piece) {
  for (uint64_t at = 0; at < piece.size(); at += kBlockBytes) {
    const std::string_view block = piece.substr(at, kBlockBytes);
    // Zeros are there already.
    if (!IsZero(block))
      std::memcpy(prologue_.data() + offset + at, block.data(), block.size());
  }
}

void CapturedMemory::TakeEpilogue(uint64_t offset, std::string_view piece) {
  for (uint64_t at = 0; at < piece.size(); at += kBlockBytes) {
    const std::string_view block = piece.substr(at, kBlockBytes);
    if (std::memcmp(block.data(), prologue_.data() + offset + at,
                    block.size()) == 0)
      continue;
    const auto bytes = static_cast<int64_t>(block.size());
    if (epilogue_room_.fetch_sub(bytes) < bytes) {
      out_of_room_ = true;
      return;
    }
    PopulatePages(epilogue_.data() + offset + at, block.size());
    std::memcpy(epilogue_.data() + offset + at, block.data(), block.size());
    const size_t index = (offset + at) / kBlockBytes;
    stored_[index] = 1;
    differs_[index] = 1;
  }
}

void CapturedMemory::ExpectEpilogue() {
  promise_ = HostBudget::Promise();
  promise_ = budget_->TakeUpTo(image_bytes_);
  epilogue_room_ = static_cast<int64_t>(promise_.bytes());
}

absl::Status CapturedMemory::FinishEpilogue() {
  promise_ = HostBudget::Promise();
  if (!out_of_room_) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("this host has no memory left to hold what it changed of ",
                   image_bytes_, " bytes"));
}

uint64_t CapturedMemory::OffsetOf(uint64_t address) const {
  const auto range = std::prev(offsets_.upper_bound(address));
  return range->second + (address - range->first);
}

std::string_view CapturedMemory::Prologue(uint64_t address,
                                          uint64_t bytes) const {
  return {prologue_.data() + OffsetOf(address), bytes};
}

std::string_view CapturedMemory::Epilogue(uint64_t address,
                                          uint64_t bytes) const {
  const uint64_t offset = OffsetOf(address);
  if (bytes == 0) return {};
  for (uint64_t block = offset / kBlockBytes;
       block <= (offset + bytes - 1) / kBlockBytes; ++block) {
    if (stored_[block] != 0) continue;
    const uint64_t at = block * kBlockBytes;
    std::memcpy(epilogue_.data() + at, prologue_.data() + at,
                std::min(kBlockBytes, image_bytes_ - at));
    stored_[block] = 1;
  }
  return {epilogue_.data() + offset, bytes};
}

bool CapturedMemory::MayDiffer(uint64_t address, uint64_t bytes) const {
  const uint64_t offset = OffsetOf(address);
  const auto first =
      differs_.begin() + static_cast<ptrdiff_t>(offset / kBlockBytes);
  const auto end =
      differs_.begin() +
      static_cast<ptrdiff_t>((offset + bytes + kBlockBytes - 1) / kBlockBytes);
  return std::find(first, end, 1) != end;
}

IntervalSet CapturedMemory::Differences() const {
  IntervalSet differences;
  for (const auto& [address, range] : live_) {
    for (uint64_t at = 0; at < range.bytes; at += kPageBytes) {
      const uint64_t bytes = std::min(kPageBytes, range.bytes - at);
      if (!MayDiffer(address + at, bytes)) continue;
      const char* before = Prologue(address + at, bytes).data();
      const char* after = Epilogue(address + at, bytes).data();
      if (std::memcmp(before, after, bytes) == 0) continue;
      for (uint64_t i = 0; i < bytes; ++i) {
        if (before[i] != after[i])
          differences.Add(address + at + i, address + at + i + 1);
      }
    }
  }
  return differences;
}

}  // namespace reprise
