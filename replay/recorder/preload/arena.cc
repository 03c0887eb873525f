#include "replay/recorder/preload/arena.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace reprise::standin {
namespace {

void* Address(uint64_t address) { return reinterpret_cast<void*>(address); }

bool HostMayTouch(uint32_t origin) {
  return origin == wire::kOriginManaged || origin == wire::kOriginPinned;
}

}  // namespace

bool Arena::Map(int fd, const wire::HelloReply& hello) {
  const uint64_t bytes = hello.arena_bytes;
  void* fixed = mmap(Address(hello.arena_base), bytes, PROT_NONE,
                     MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
  if (fixed == MAP_FAILED) return false;
  if (fixed != Address(hello.arena_base)) {  // a kernel older than the flag
    munmap(fixed, bytes);
    errno = EEXIST;
    return false;
  }
  void* alias = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (alias == MAP_FAILED) {
    munmap(fixed, bytes);
    return false;
  }
  base_ = hello.arena_base;
  bytes_ = bytes;
  globals_bytes_ = hello.globals_bytes;
  limit_bytes_ = hello.device_memory_bytes;
  alias_ = static_cast<char*>(alias);
  return free_.Append(Extent{base_ + globals_bytes_, bytes_ - globals_bytes_});
}

uint64_t Arena::Allocate(uint64_t bytes, uint32_t origin, uint32_t flags,
                         const void* pool) {
  const bool counts = origin != wire::kOriginPinned;
  if (bytes > bytes_ || (counts && bytes > limit_bytes_ - used_bytes_))
    return 0;
  Allocation made{0, bytes, origin, flags, pool};
  const uint64_t needed = made.mapped_bytes() + kPageBytes;
  for (size_t i = 0; i < free_.size(); ++i) {
    Extent& extent = free_[i];
    if (extent.bytes < needed) continue;
    made.address = extent.address;
    if (!allocations_.Insert(IndexAfter(made.address), made)) return 0;
    extent.address += needed;
    extent.bytes -= needed;
    if (extent.bytes == 0) free_.Remove(i);
    if (HostMayTouch(origin)) {
      mprotect(Address(made.address), made.mapped_bytes(),
               PROT_READ | PROT_WRITE);
    }
    if (counts) used_bytes_ += made.mapped_bytes();
    return made.address;
  }
  return 0;
}

void Arena::Release(Allocation* allocation) {
  const Allocation gone = *allocation;
  allocations_.Remove(static_cast<size_t>(allocation - allocations_.data()));
  const uint64_t bytes = gone.mapped_bytes();
  madvise(Alias(gone.address), bytes, MADV_REMOVE);
  if (HostMayTouch(gone.origin))
    mprotect(Address(gone.address), bytes, PROT_NONE);
  if (gone.origin != wire::kOriginPinned) used_bytes_ -= bytes;
  GiveBack(gone.address, bytes + kPageBytes);
}

void Arena::Clear() {
  while (!allocations_.empty()) Release(&allocations_[allocations_.size() - 1]);
}

void Arena::GiveBack(uint64_t address, uint64_t bytes) {
  size_t at = 0;
  for (size_t high = free_.size(); at < high;) {
    const size_t middle = (at + high) / 2;
    if (free_[middle].address < address) {
      at = middle + 1;
    } else {
      high = middle;
    }
  }
  // Out of memory here would only lose address space.
  if (!free_.Insert(at, Extent{address, bytes})) return;
  if (at + 1 < free_.size() &&
      free_[at].address + free_[at].bytes == free_[at + 1].address) {
    free_[at].bytes += free_[at + 1].bytes;
    free_.Remove(at + 1);
  }
  if (at > 0 &&
      free_[at - 1].address + free_[at - 1].bytes == free_[at].address) {
    free_[at - 1].bytes += free_[at].bytes;
    free_.Remove(at);
  }
}

size_t Arena::IndexAfter(uint64_t address) {
  size_t low = 0;
  for (size_t high = allocations_.size(); low < high;) {
    const size_t middle = (low + high) / 2;
    if (allocations_[middle].address <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Allocation* Arena::Find(uint64_t address) {
  const size_t after = IndexAfter(address);
  if (after == 0) return nullptr;
  Allocation& allocation = allocations_[after - 1];
  const uint64_t offset = address - allocation.address;
  return offset == 0 || offset < allocation.bytes ? &allocation : nullptr;
}

bool Arena::IsLive(uint64_t address, uint64_t bytes) {
  if (IsGlobal(address)) return bytes <= base_ + globals_bytes_ - address;
  const Allocation* allocation = Find(address);
  return allocation != nullptr &&
         bytes <= allocation->bytes - (address - allocation->address);
}

}  // namespace reprise::standin
