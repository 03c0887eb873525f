// Device memory as the application's process sees it: one memfd, mapped twice.
//
//   at its own addresses   what a pointer value means. Only managed and pinned
//                          allocations can be touched there; others fault, as
//                          device memory does on a GPU.
//   at an alias            where copies and fills work.
//
// Allocations are whole pages with one page between them that nobody maps, so
// that a kernel which runs over an end faults. Freed pages are given back to
// the system and read as zeros when they are used again.
//
// Not thread-safe: the context's mutex guards it.
#ifndef REPRISE_REPLAY_RECORDER_PRELOAD_ARENA_H_
#define REPRISE_REPLAY_RECORDER_PRELOAD_ARENA_H_

#include <stdint.h>

#include "replay/recorder/preload/protocol.h"
#include "replay/recorder/preload/support.h"

namespace reprise::standin {

inline constexpr uint64_t kPageBytes = 4096;

struct Allocation {
  uint64_t address = 0;
  uint64_t bytes = 0;  // as asked for
  uint32_t origin = 0;
  uint32_t flags = 0;          // cudaHostAlloc's
  const void* pool = nullptr;  // of kOriginPool

  uint64_t mapped_bytes() const {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
};

class Arena {
 public:
  constexpr Arena() = default;

  // Maps the file; does not keep the descriptor. False: an address is taken or
  // memory is short; errno says which.
  bool Map(int fd, const wire::HelloReply& hello);

  // The address, or 0 when memory does not suffice.
  uint64_t Allocate(uint64_t bytes, uint32_t origin, uint32_t flags,
                    const void* pool);
  // `allocation` is what Find returned; it is gone afterwards.
  void Release(Allocation* allocation);
  // Releases everything.
  void Clear();

  // The allocation that `address` lies in (the first byte of an empty one
  // included), or null. Valid until the next Allocate or Release.
  Allocation* Find(uint64_t address);

  bool Contains(uint64_t address) const {
    return address - base_ < bytes_ && base_ != 0;
  }
  bool IsGlobal(uint64_t address) const {
    return Contains(address) && address - base_ < globals_bytes_;
  }
  // Whether all of [address, address + bytes) is one allocation's or globals'.
  bool IsLive(uint64_t address, uint64_t bytes);
  char* Alias(uint64_t address) const { return alias_ + (address - base_); }

  uint64_t used_bytes() const { return used_bytes_; }
  Array<Allocation>& allocations() { return allocations_; }

 private:
  struct Extent {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };

  size_t IndexAfter(uint64_t address);
  void GiveBack(uint64_t address, uint64_t bytes);

  uint64_t base_ = 0;
  uint64_t bytes_ = 0;
  uint64_t globals_bytes_ = 0;
  uint64_t limit_bytes_ = 0;
  uint64_t used_bytes_ = 0;  // without pinned memory
  char* alias_ = nullptr;
  Array<Allocation> allocations_;  // by address
  Array<Extent> free_;             // by address, never touching
};

}  // namespace reprise::standin

#endif  // REPRISE_REPLAY_RECORDER_PRELOAD_ARENA_H_
