// Where one device's allocations lie: bookkeeping over one reserved range of
// addresses, no driver call. Memory is backed chunk by chunk, through Backing.
//
//   small   below kLargeBytes: slots of one size class in a chunk of 2 to 8
//   MiB;
//           slots are multiples of 512 bytes
//   large   one chunk each, whole 2 MiB pages
//
// Freed slots go to a lane: lane 0 is memory that nothing uses any more; other
// lanes are streams, whose work may still use what was freed there, so that
// only allocations on the same stream take it, until Settle says that the
// stream has passed the frees. Freed large chunks stay backed up to a bound.
//
// Not thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_ARENA_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_ARENA_H_

#include <stddef.h>
#include <stdint.h>

#include "replay/recorder/preload/support.h"

namespace reprise::driver {

inline constexpr uint64_t kPageBytes = 2 << 20;
inline constexpr uint64_t kLargeBytes = 1 << 20;
inline constexpr uint64_t kSlotAlignment = 512;
inline constexpr uint32_t kSettledLane = 0;

// Puts physical memory behind addresses and takes it away again.
class Backing {
 public:
  // False: no memory. `handle` is kept for Unmap.
  virtual bool Map(uint64_t address, uint64_t bytes, uint64_t* handle) = 0;
  virtual void Unmap(uint64_t address, uint64_t bytes, uint64_t handle) = 0;

 protected:
  ~Backing() = default;
};

// What a live allocation is.
struct Allocation {
  uint64_t address = 0;
  uint64_t bytes = 0;  // as asked for
  uint64_t owner = 0;  // the context it belongs to
  uint32_t origin = 0;
  uint32_t id = 0;  // never used twice in a process
};

class Arena {
 public:
  constexpr Arena() = default;

  // `bytes` a multiple of kPageBytes. False: memory is exhausted.
  bool Open(uint64_t base, uint64_t bytes, Backing* backing);
  // Freed large chunks are kept backed up to this many bytes.
  void SetCacheBound(uint64_t bytes) { cache_bound_ = bytes; }

  bool Contains(uint64_t address) const {
    return address - base_ < bytes_ && bytes_ != 0;
  }

  // The address, or 0: no memory or no addresses left, or new memory is needed
  // and may_grow is false; settling lanes and trimming may help.
  uint64_t Allocate(uint64_t bytes, uint64_t owner, uint32_t origin,
                    uint32_t lane, bool may_grow);
  // False: no live allocation begins there.
  bool Free(uint64_t address, uint32_t lane);
  // The live allocation that the address lies in.
  bool Find(uint64_t address, Allocation* found) const;

  // What was freed in one lane so far belongs to another.
  void Move(uint32_t lane, uint32_t to_lane);
  void Settle(uint32_t lane) { Move(lane, kSettledLane); }
  // Whether anything freed in the lane is not settled.
  bool HasPending(uint32_t lane) const;
  // Everything of a context that is gone is free and settled.
  void FreeOwner(uint64_t owner);
  // Gives settled memory back: large chunks, and small ones without an
  // allocation.
  void Trim();

  // Backed, but in no allocation and settled or not.
  uint64_t cached_bytes() const { return cached_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t mapped_bytes() const { return mapped_bytes_; }

  // In ascending order.
  template <typename Visitor>
  void ForEachLive(Visitor visit) const {
    for (uint64_t page = 0; page < page_limit_;) {
      const Chunk* chunk = pages_[page];
      if (chunk == nullptr) {
        ++page;
        continue;
      }
      for (uint32_t i = 0; i < chunk->used_slots; ++i)
        if (chunk->slots[i].live) visit(Describe(*chunk, i));
      page += chunk->bytes / kPageBytes;
    }
  }

  // Backed ranges, ascending.
  template <typename Visitor>
  void ForEachChunk(Visitor visit) const {
    for (uint64_t page = 0; page < page_limit_;) {
      const Chunk* chunk = pages_[page];
      if (chunk != nullptr) visit(chunk->address, chunk->bytes, chunk->handle);
      page += chunk != nullptr ? chunk->bytes / kPageBytes : 1;
    }
  }

 private:
  static constexpr uint32_t kClasses = 40;

  struct Chunk;
  struct Slot {
    uint64_t bytes = 0;
    uint64_t owner = 0;
    Slot* next = nullptr;  // in a lane's list
    Chunk* chunk = nullptr;
    uint32_t id = 0;
    uint16_t origin = 0;
    bool live = false;
  };
  struct Chunk {
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint64_t slot_bytes = 0;
    uint64_t handle = 0;
    uint32_t size_class = 0;  // kClasses: large
    uint32_t slot_count = 0;
    uint32_t used_slots = 0;     // slots behind were never given out
    uint32_t lane = 0;           // of a free large chunk
    uint64_t freed_at = 0;       // order of large frees
    uint64_t settled_slots = 0;  // while trimming
    Slot* slots = nullptr;
  };
  struct List {
    Slot* first = nullptr;
    Slot* last = nullptr;
  };
  struct Lane {
    List lists[kClasses];
    uint64_t pending = 0;  // slots and large chunks
  };
  struct Extent {
    uint64_t page = 0;
    uint64_t pages = 0;
  };

  static uint32_t ClassOf(uint64_t bytes);
  static uint64_t ClassBytes(uint32_t size_class);

  Allocation Describe(const Chunk& chunk, uint32_t slot) const;
  Slot* SlotAt(uint64_t address) const;
  Lane* LaneAt(uint32_t lane);
  Slot* TakeSmall(uint32_t size_class, uint32_t lane, bool may_grow);
  Slot* TakeLarge(uint64_t bytes, uint32_t lane, bool may_grow);
  Chunk* NewChunk(uint64_t bytes, uint64_t slot_bytes, uint32_t size_class);
  void Drop(Chunk* chunk);
  void BoundCache();
  uint64_t TakePages(uint64_t pages);
  void ReturnPages(uint64_t page, uint64_t pages);

  uint64_t base_ = 0;
  uint64_t bytes_ = 0;
  Backing* backing_ = nullptr;
  uint64_t cache_bound_ = 0;
  uint64_t cached_bytes_ = 0;  // of free large chunks
  uint64_t used_bytes_ = 0;
  uint64_t mapped_bytes_ = 0;
  uint64_t freed_count_ = 0;
  uint32_t next_id_ = 1;
  Chunk** pages_ = nullptr;        // by 2 MiB page
  uint64_t page_limit_ = 0;        // pages behind were never used
  Chunk* filling_[kClasses] = {};  // chunks with slots never given out
  standin::Array<Lane*> lanes_;
  standin::Array<Chunk*> free_large_;
  standin::Array<Extent> free_pages_;  // by page, never touching
};

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_ARENA_H_
