#include "replay/recorder/session/arena_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replay/base/bytes.h"
#include "replay/base/file_util.h"
#include "replay/base/shared_memory.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

uint64_t RoundDown(uint64_t value, uint64_t multiple) {
  return value / multiple * multiple;
}

}  // namespace

ArenaMemory::ArenaMemory(Options options, int fd, char* mapping)
    : options_(options),
      fd_(fd),
      mapping_(mapping),
      next_global_(options.base) {}

absl::StatusOr<std::unique_ptr<ArenaMemory>> ArenaMemory::Create(
    Options options) {
  ASSIGN_OR_RETURN(const int fd,
                   CreateSharedMemory("reprise-device-memory", options.bytes));
  void* mapping = mmap(nullptr, options.bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (mapping == MAP_FAILED) {
    const int error = errno;
    close(fd);
    return ErrnoToStatus(error, "cannot map device memory");
  }
  return std::unique_ptr<ArenaMemory>(
      new ArenaMemory(options, fd, static_cast<char*>(mapping)));
}

ArenaMemory::~ArenaMemory() {
  munmap(mapping_, options_.bytes);
  close(fd_);
}

const LiveRange* ArenaMemory::Find(uint64_t address) const {
  auto after = live_.upper_bound(address);
  if (after == live_.begin()) return nullptr;
  const LiveRange& range = std::prev(after)->second;
  return address - range.address < range.bytes ? &range : nullptr;
}

absl::Status ArenaMemory::Add(uint64_t address, uint64_t bytes,
                              v1::MemoryOrigin origin) {
  const uint64_t first = options_.base + options_.globals_bytes;
  const uint64_t end = options_.base + options_.bytes;
  if (address < first || address >= end || bytes == 0 ||
      bytes > end - address || address % kPageBytes != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "an allocation of %d bytes at 0x%x lies outside the arena", bytes,
        address));
  }
  const auto next = live_.lower_bound(address);
  const bool overlaps =
      (next != live_.end() && next->first < address + bytes) ||
      Find(address) != nullptr;
  if (overlaps) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "an allocation of %d bytes at 0x%x overlaps another", bytes, address));
  }
  live_[address] = {address, bytes, origin, ""};
  ++generation_;
  return absl::OkStatus();
}

absl::Status ArenaMemory::Remove(uint64_t address) {
  const auto found = live_.find(address);
  if (found == live_.end() || !found->second.symbol.empty()) {
    return absl::NotFoundError(
        absl::StrFormat("no allocation begins at 0x%x", address));
  }
  live_.erase(found);
  ++generation_;
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ArenaMemory::AddGlobal(
    const v1::ModuleGlobal& global) {
  // Each has pages of its own: running over its end is seen.
  const uint64_t alignment = std::max<uint64_t>(kPageBytes, global.alignment());
  const uint64_t address = RoundUp(next_global_, alignment);
  const uint64_t bytes = std::max<uint64_t>(global.bytes(), 1);
  const uint64_t end = options_.base + options_.globals_bytes;
  if (address >= end || bytes > end - address) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for device variable ", global.symbol(), " of ",
                     bytes, " bytes in an area of ", options_.globals_bytes));
  }
  next_global_ = RoundUp(address + bytes, kPageBytes) + kPageBytes;
  live_[address] = {
      address, bytes,
      global.constant() ? v1::MEMORY_ORIGIN_CONSTANT : v1::MEMORY_ORIGIN_GLOBAL,
      global.symbol()};
  ++generation_;
  return address;
}

void ArenaMemory::RemoveGlobal(uint64_t address) {
  live_.erase(address);
  ++generation_;
}

void ArenaMemory::CopyFrom(const ArenaMemory& other) {
  madvise(mapping_, options_.bytes, MADV_REMOVE);  // reads as zeros now
  for (const auto& [address, range] : other.live_) {
    const off_t end = static_cast<off_t>(address + range.bytes - options_.base);
    off_t at = static_cast<off_t>(address - options_.base);
    // Only what was ever written has pages.
    while (at < end) {
      const off_t data = lseek(other.fd_, at, SEEK_DATA);
      if (data < 0 || data >= end) break;
      off_t hole = lseek(other.fd_, data, SEEK_HOLE);
      if (hole < 0 || hole > end) hole = end;
      std::memcpy(mapping_ + data, other.mapping_ + data,
                  static_cast<size_t>(hole - data));
      at = hole;
    }
  }
  live_ = other.live_;
  ++generation_;
}

void ArenaMemory::Clear() {
  live_.clear();
  ++generation_;
  // Variables come up with their initial values again.
  madvise(mapping_, options_.globals_bytes, MADV_REMOVE);
  next_global_ = options_.base;
}

std::vector<v1::MemoryMapping> ArenaMemory::Mappings() const {
  std::vector<v1::MemoryMapping> mappings;
  for (const auto& [address, range] : live_) {
    v1::MemoryMapping mapping;
    const uint64_t begin = RoundDown(address, kPageBytes);
    mapping.set_address(begin);
    mapping.set_bytes(RoundUp(address + range.bytes, kPageBytes) - begin);
    mapping.set_file_offset(begin - options_.base);
    mapping.set_writable(true);
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

}  // namespace reprise
