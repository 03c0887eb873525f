#include "replay/recorder/session/captured_launch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/recorder/driver/protocol.h"

namespace reprise {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kBlockBytes = driver_wire::kBlockBytes;

uint64_t PageUp(uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// What this host can give without swapping; the largest number where it does
// not say.
uint64_t AvailableMemory() {
  std::ifstream info("/proc/meminfo");
  std::string word;
  uint64_t kib = 0;
  while (info >> word) {
    if (word == "MemAvailable:" && info >> kib) return kib << 10;
  }
  return std::numeric_limits<uint64_t>::max();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CapturedMemory>> CapturedMemory::Create(
    const std::vector<LiveRange>& ranges) {
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
    memory->image_bytes_ += PageUp(range.bytes);
  }
  const uint64_t needed = 2 * memory->image_bytes_;
  const uint64_t available = AvailableMemory();
  if (needed > available) {
    return absl::ResourceExhaustedError(
        absl::StrCat("recording it takes ", needed, " bytes of host memory, ",
                     available, " are available"));
  }
  memory->fd_ = memfd_create("reprise-recording", MFD_CLOEXEC);
  if (memory->fd_ < 0) return ErrnoToStatus(errno, "cannot create a memfd");
  if (needed == 0) return memory;
  if (ftruncate(memory->fd_, static_cast<off_t>(needed)) != 0)
    return ErrnoToStatus(errno, "cannot size a memfd");
  void* mapping = mmap(nullptr, needed, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE, memory->fd_, 0);
  if (mapping == MAP_FAILED) return ErrnoToStatus(errno, "cannot map a memfd");
  memory->mapping_ = static_cast<char*>(mapping);
  return memory;
}

CapturedMemory::~CapturedMemory() {
  if (mapping_ != nullptr) munmap(mapping_, 2 * image_bytes_);
  CloseDescriptor();
}

void CapturedMemory::CloseDescriptor() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

absl::Status CapturedMemory::CompleteEpilogue(std::string_view changed_bits) {
  const uint64_t blocks = (image_bytes_ + kBlockBytes - 1) / kBlockBytes;
  if (changed_bits.size() * 8 < blocks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", changed_bits.size() * 8, " block bits, expected ", blocks));
  }
  for (uint64_t block = 0; block < blocks; ++block) {
    if ((changed_bits[block / 8] >> (block % 8) & 1) != 0) continue;
    const uint64_t at = block * kBlockBytes;
    std::memcpy(mapping_ + image_bytes_ + at, mapping_ + at,
                std::min(kBlockBytes, image_bytes_ - at));
  }
  return absl::OkStatus();
}

const char* CapturedMemory::At(uint64_t address) const {
  const auto range = std::prev(offsets_.upper_bound(address));
  return mapping_ + range->second + (address - range->first);
}

std::string_view CapturedMemory::Prologue(uint64_t address,
                                          uint64_t bytes) const {
  return {At(address), bytes};
}

std::string_view CapturedMemory::Epilogue(uint64_t address,
                                          uint64_t bytes) const {
  return {At(address) + image_bytes_, bytes};
}

IntervalSet CapturedMemory::Differences() const {
  IntervalSet differences;
  for (const auto& [address, range] : live_) {
    for (uint64_t at = 0; at < range.bytes; at += kPageBytes) {
      const uint64_t bytes = std::min(kPageBytes, range.bytes - at);
      const char* before = At(address + at);
      const char* after = before + image_bytes_;
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
