#include "replay/recorder/driver/arena.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <new>

namespace reprise::driver {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

// At least eight slots, in few pages.
uint64_t ChunkBytes(uint64_t slot_bytes) {
  if (slot_bytes <= (64 << 10)) return kPageBytes;
  return slot_bytes <= (256 << 10) ? 2 * kPageBytes : 4 * kPageBytes;
}

template <typename T>
T* NewZeroed(size_t count) {
  return static_cast<T*>(calloc(count, sizeof(T)));
}

}  // namespace

// Classes: 1 to 8 times 512 bytes, then four to each doubling up to 1 MiB.
uint32_t Arena::ClassOf(uint64_t bytes) {
  const uint64_t units = (bytes + kSlotAlignment - 1) / kSlotAlignment;
  if (units <= 8) return static_cast<uint32_t>(units - 1);
  const uint32_t doubling =
      63 - static_cast<uint32_t>(__builtin_clzll(units - 1));  // 3: 9 to 16
  const uint64_t quarter = uint64_t{1} << (doubling - 2);
  const uint64_t step =
      (units - (uint64_t{1} << doubling) + quarter - 1) / quarter;
  return 8 + (doubling - 3) * 4 + static_cast<uint32_t>(step) - 1;
}

uint64_t Arena::ClassBytes(uint32_t size_class) {
  if (size_class < 8) return (size_class + 1) * kSlotAlignment;
  const uint32_t doubling = 3 + (size_class - 8) / 4;
  const uint64_t step = (size_class - 8) % 4 + 1;
  return ((uint64_t{1} << doubling) + step * (uint64_t{1} << (doubling - 2))) *
         kSlotAlignment;
}

bool Arena::Open(uint64_t base, uint64_t bytes, Backing* backing) {
  const size_t table = bytes / kPageBytes * sizeof(Chunk*);
  void* pages = mmap(nullptr, table, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return false;
  if (!free_pages_.Append({0, bytes / kPageBytes})) {
    munmap(pages, table);
    return false;
  }
  pages_ = static_cast<Chunk**>(pages);
  base_ = base;
  bytes_ = bytes;
  backing_ = backing;
  return true;
}

uint64_t Arena::TakePages(uint64_t pages) {
  for (size_t i = 0; i < free_pages_.size(); ++i) {
    Extent& extent = free_pages_[i];
    if (extent.pages < pages) continue;
    const uint64_t page = extent.page;
    extent.page += pages;
    extent.pages -= pages;
    if (extent.pages == 0) free_pages_.Remove(i);
    return page;
  }
  return ~uint64_t{0};
}

void Arena::ReturnPages(uint64_t page, uint64_t pages) {
  size_t i = 0;
  while (i < free_pages_.size() && free_pages_[i].page < page) ++i;
  const bool joins_previous =
      i > 0 && free_pages_[i - 1].page + free_pages_[i - 1].pages == page;
  const bool joins_next =
      i < free_pages_.size() && page + pages == free_pages_[i].page;
  if (joins_previous && joins_next) {
    free_pages_[i - 1].pages += pages + free_pages_[i].pages;
    free_pages_.Remove(i);
  } else if (joins_previous) {
    free_pages_[i - 1].pages += pages;
  } else if (joins_next) {
    free_pages_[i].page = page;
    free_pages_[i].pages += pages;
  } else {
    free_pages_.Insert(i, {page, pages});  // else the addresses are lost
  }
}

Arena::Chunk* Arena::NewChunk(uint64_t bytes, uint64_t slot_bytes,
                              uint32_t size_class) {
  const uint64_t pages = bytes / kPageBytes;
  const uint64_t page = TakePages(pages);
  if (page == ~uint64_t{0}) return nullptr;
  Chunk* chunk = NewZeroed<Chunk>(1);
  const uint32_t slots = static_cast<uint32_t>(bytes / slot_bytes);
  if (chunk != nullptr) chunk->slots = NewZeroed<Slot>(slots);
  const uint64_t address = base_ + page * kPageBytes;
  if (chunk == nullptr || chunk->slots == nullptr ||
      !backing_->Map(address, bytes, &chunk->handle)) {
    if (chunk != nullptr) free(chunk->slots);
    free(chunk);
    ReturnPages(page, pages);
    return nullptr;
  }
  chunk->address = address;
  chunk->bytes = bytes;
  chunk->slot_bytes = slot_bytes;
  chunk->size_class = size_class;
  chunk->slot_count = slots;
  for (uint64_t i = page; i < page + pages; ++i) pages_[i] = chunk;
  if (page + pages > page_limit_) page_limit_ = page + pages;
  mapped_bytes_ += bytes;
  return chunk;
}

void Arena::Drop(Chunk* chunk) {
  backing_->Unmap(chunk->address, chunk->bytes, chunk->handle);
  const uint64_t page = (chunk->address - base_) / kPageBytes;
  const uint64_t pages = chunk->bytes / kPageBytes;
  for (uint64_t i = page; i < page + pages; ++i) pages_[i] = nullptr;
  ReturnPages(page, pages);
  mapped_bytes_ -= chunk->bytes;
  free(chunk->slots);
  free(chunk);
}

Arena::Lane* Arena::LaneAt(uint32_t lane) {
  while (lanes_.size() <= lane) {
    Lane* fresh = NewZeroed<Lane>(1);
    if (fresh == nullptr) return nullptr;
    if (!lanes_.Append(fresh)) {
      free(fresh);
      return nullptr;
    }
  }
  return lanes_[lane];
}

Arena::Slot* Arena::TakeSmall(uint32_t size_class, uint32_t lane,
                              bool may_grow) {
  const uint32_t lanes[] = {lane, kSettledLane};
  for (const uint32_t from : lanes) {
    Lane* const source = LaneAt(from);
    if (source == nullptr) return nullptr;
    List& list = source->lists[size_class];
    if (list.first == nullptr) continue;
    Slot* slot = list.first;
    list.first = slot->next;
    if (list.first == nullptr) list.last = nullptr;
    --source->pending;
    return slot;
  }
  Chunk*& chunk = filling_[size_class];
  if (chunk == nullptr) {
    if (!may_grow) return nullptr;
    const uint64_t slot_bytes = ClassBytes(size_class);
    chunk = NewChunk(ChunkBytes(slot_bytes), slot_bytes, size_class);
    if (chunk == nullptr) return nullptr;
  }
  Slot* slot = &chunk->slots[chunk->used_slots++];
  slot->chunk = chunk;
  if (chunk->used_slots == chunk->slot_count) chunk = nullptr;
  return slot;
}

Arena::Slot* Arena::TakeLarge(uint64_t bytes, uint32_t lane, bool may_grow) {
  const uint64_t need = RoundUp(bytes, kPageBytes);
  size_t best = free_large_.size();
  for (size_t i = free_large_.size(); i-- > 0;) {
    const Chunk* chunk = free_large_[i];
    if (chunk->lane != kSettledLane && chunk->lane != lane) continue;
    if (chunk->bytes < need || chunk->bytes - need > need / 8) continue;
    if (best == free_large_.size() || chunk->bytes < free_large_[best]->bytes)
      best = i;
    if (chunk->bytes == need) break;
  }
  if (best < free_large_.size()) {
    Chunk* chunk = free_large_[best];
    free_large_.Remove(best);
    cached_bytes_ -= chunk->bytes;
    Lane* const source = LaneAt(chunk->lane);
    if (source != nullptr) --source->pending;
    return &chunk->slots[0];
  }
  Chunk* chunk = may_grow ? NewChunk(need, need, kClasses) : nullptr;
  if (chunk == nullptr) return nullptr;
  chunk->used_slots = 1;
  chunk->slots[0].chunk = chunk;
  return &chunk->slots[0];
}

uint64_t Arena::Allocate(uint64_t bytes, uint64_t owner, uint32_t origin,
                         uint32_t lane, bool may_grow) {
  if (bytes == 0 || bytes > bytes_) return 0;
  Slot* slot = bytes < kLargeBytes ? TakeSmall(ClassOf(bytes), lane, may_grow)
                                   : TakeLarge(bytes, lane, may_grow);
  if (slot == nullptr) return 0;
  slot->bytes = bytes;
  slot->owner = owner;
  slot->next = nullptr;
  slot->id = next_id_++;
  slot->origin = static_cast<uint16_t>(origin);
  slot->live = true;
  used_bytes_ += slot->chunk->slot_bytes;
  const uint64_t index = static_cast<uint64_t>(slot - slot->chunk->slots);
  return slot->chunk->address + index * slot->chunk->slot_bytes;
}

Arena::Slot* Arena::SlotAt(uint64_t address) const {
  if (!Contains(address)) return nullptr;
  Chunk* chunk = pages_[(address - base_) / kPageBytes];
  if (chunk == nullptr) return nullptr;
  const uint64_t index = (address - chunk->address) / chunk->slot_bytes;
  return index < chunk->used_slots ? &chunk->slots[index] : nullptr;
}

bool Arena::Free(uint64_t address, uint32_t lane) {
  Slot* slot = SlotAt(address);
  if (slot == nullptr || !slot->live) return false;
  Chunk* chunk = slot->chunk;
  if ((address - chunk->address) % chunk->slot_bytes != 0) return false;
  Lane* target = LaneAt(lane);
  if (target == nullptr) return false;
  slot->live = false;
  used_bytes_ -= chunk->slot_bytes;
  ++target->pending;
  if (chunk->size_class == kClasses) {
    chunk->lane = lane;
    chunk->freed_at = ++freed_count_;
    if (free_large_.Append(chunk)) cached_bytes_ += chunk->bytes;
    BoundCache();
    return true;
  }
  List& list = target->lists[chunk->size_class];
  slot->next = list.first;
  if (list.first == nullptr) list.last = slot;
  list.first = slot;
  return true;
}

// Gives back the oldest settled large chunks beyond the bound.
void Arena::BoundCache() {
  while (cached_bytes_ > cache_bound_) {
    size_t oldest = free_large_.size();
    for (size_t i = 0; i < free_large_.size(); ++i) {
      if (free_large_[i]->lane != kSettledLane) continue;
      if (oldest == free_large_.size() ||
          free_large_[i]->freed_at < free_large_[oldest]->freed_at)
        oldest = i;
    }
    if (oldest == free_large_.size()) return;
    Chunk* chunk = free_large_[oldest];
    free_large_.Remove(oldest);
    cached_bytes_ -= chunk->bytes;
    --lanes_[kSettledLane]->pending;
    Drop(chunk);
  }
}

Allocation Arena::Describe(const Chunk& chunk, uint32_t index) const {
  const Slot& slot = chunk.slots[index];
  return {chunk.address + index * chunk.slot_bytes, slot.bytes, slot.owner,
          slot.origin, slot.id};
}

bool Arena::Find(uint64_t address, Allocation* found) const {
  const Slot* slot = SlotAt(address);
  if (slot == nullptr || !slot->live) return false;
  const Chunk& chunk = *slot->chunk;
  *found = Describe(chunk, static_cast<uint32_t>(slot - chunk.slots));
  return address - found->address < found->bytes;
}

bool Arena::HasPending(uint32_t lane) const {
  return lane < lanes_.size() && lanes_[lane]->pending > 0;
}

void Arena::Move(uint32_t lane, uint32_t to_lane) {
  if (lane == to_lane || !HasPending(lane)) return;
  Lane* to = LaneAt(to_lane);
  if (to == nullptr) return;
  Lane* from = lanes_[lane];
  for (uint32_t i = 0; i < kClasses; ++i) {
    List& source = from->lists[i];
    List& target = to->lists[i];
    if (source.first == nullptr) continue;
    source.last->next = target.first;
    if (target.first == nullptr) target.last = source.last;
    target.first = source.first;
    source = {};
  }
  for (Chunk* chunk : free_large_)
    if (chunk->lane == lane) chunk->lane = to_lane;
  to->pending += from->pending;
  from->pending = 0;
  BoundCache();
}

void Arena::FreeOwner(uint64_t owner) {
  for (uint64_t page = 0; page < page_limit_;) {
    Chunk* chunk = pages_[page];
    if (chunk == nullptr) {
      ++page;
      continue;
    }
    page += chunk->bytes / kPageBytes;  // Free may drop the chunk
    for (uint32_t i = 0; i < chunk->used_slots; ++i) {
      Slot& slot = chunk->slots[i];
      if (!slot.live || slot.owner != owner) continue;
      const bool large = chunk->size_class == kClasses;
      Free(chunk->address + i * chunk->slot_bytes, kSettledLane);
      if (large) break;
    }
  }
}

void Arena::Trim() {
  const uint64_t bound = cache_bound_;
  cache_bound_ = 0;
  BoundCache();
  cache_bound_ = bound;
  // Small chunks: count the settled slots of each, then unlink those of chunks
  // that hold nothing else.
  if (lanes_.empty()) return;
  Lane* settled = lanes_[kSettledLane];
  for (uint64_t page = 0; page < page_limit_; ++page)
    if (pages_[page] != nullptr) pages_[page]->settled_slots = 0;
  for (List& list : settled->lists)
    for (Slot* slot = list.first; slot != nullptr; slot = slot->next)
      ++slot->chunk->settled_slots;
  for (List& list : settled->lists) {
    List kept;
    for (Slot* slot = list.first; slot != nullptr;) {
      Slot* next = slot->next;
      if (slot->chunk->settled_slots == slot->chunk->used_slots) {
        --settled->pending;
      } else {
        slot->next = nullptr;
        if (kept.last == nullptr)
          kept.first = slot;
        else
          kept.last->next = slot;
        kept.last = slot;
      }
      slot = next;
    }
    list = kept;
  }
  for (uint64_t page = 0; page < page_limit_;) {
    Chunk* chunk = pages_[page];
    page += chunk != nullptr ? chunk->bytes / kPageBytes : 1;
    if (chunk == nullptr || chunk->size_class == kClasses ||
        chunk->settled_slots != chunk->used_slots)
      continue;
    if (filling_[chunk->size_class] == chunk)
      filling_[chunk->size_class] = nullptr;
    Drop(chunk);
  }
}

}  // namespace reprise::driver
