// What instrumented device code calls: marks accesses in the planes of
// AccessNotes and sums operations and bytes. Compiled to bitcode at build time
// and linked into instrumented modules (note_accesses.h); its test compiles it
// for the host.
//
// Any number of threads call these at once, converged or not. A mark is looked
// at before it is set: that costs less than setting it again.
#include "replay/device/cuda/access_notes.h"

#ifdef __CUDA__
#define REPRISE_DEVICE __attribute__((device))
#define REPRISE_GLOBAL __attribute__((address_space(1)))
#else
// Marks are looked at while others set them.
#define REPRISE_DEVICE __attribute__((no_sanitize("thread")))
#define REPRISE_GLOBAL
#endif

extern "C" {
REPRISE_DEVICE reprise::cuda::AccessNotes __reprise_access_notes;
#ifdef __CUDA__
// 90 for sm_90. Set where this is linked in; branches on it go.
extern REPRISE_DEVICE const int __reprise_architecture;
#endif
// Apart, as its assembly means nothing to other targets.
__attribute__((noinline)) REPRISE_DEVICE bool __reprise_note_is_parameter(
    uint64_t address);
}

namespace reprise::cuda {
namespace {

// Memory at an address.
template <typename T>
REPRISE_DEVICE const REPRISE_GLOBAL T& At(uint64_t address) {
  return *reinterpret_cast<const REPRISE_GLOBAL T*>(address);
}

REPRISE_DEVICE void Add(uint64_t* total, uint64_t value) {
  __scoped_atomic_fetch_add(total, value, __ATOMIC_RELAXED,
                            __MEMORY_SCOPE_DEVICE);
}

#ifdef __CUDA__
// For a launch of many threads, one addition a warp and not one a thread.
REPRISE_DEVICE void AddOverWarp(uint64_t* total, uint64_t value) {
  if (__reprise_architecture < 80) {  // no redux
    if (value != 0) Add(total, value);
    return;
  }
  // Those who run this together; in parts whose sums over 32 threads fit.
  const int mask = static_cast<int>(__nvvm_activemask());
  constexpr uint64_t kPart = (1u << 24) - 1;
  uint64_t sum = 0;
  for (int shift = 0; shift < 64; shift += 24) {
    const auto part = static_cast<int>(value >> shift & kPart);
    sum += static_cast<uint64_t>(
               static_cast<uint32_t>(__nvvm_redux_sync_add(part, mask)))
           << shift;
  }
  const int leader = __builtin_ctz(static_cast<unsigned>(mask));
  if (sum != 0 && __nvvm_read_ptx_sreg_laneid() == leader) Add(total, sum);
}
// A slow question.
REPRISE_DEVICE bool IsPrivate(uint64_t address) {
  void* pointer = reinterpret_cast<void*>(address);
  const bool shared = __reprise_architecture >= 90
                          ? __nvvm_isspacep_shared_cluster(pointer)
                          : __nvvm_isspacep_shared(pointer);
  return shared | __nvvm_isspacep_local(pointer);
}
#else
void AddOverWarp(uint64_t* total, uint64_t value) { Add(total, value); }
bool IsPrivate(uint64_t) { return false; }
#endif

// How many ranges begin at or below the address.
REPRISE_DEVICE uint32_t RangesUpTo(uint64_t address) {
  const uint64_t ranges = __reprise_access_notes.ranges;
  uint32_t low = 0;
  auto high = static_cast<uint32_t>(__reprise_access_notes.range_count);
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (At<NotedRange>(ranges + middle * sizeof(NotedRange)).begin <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}
REPRISE_DEVICE const REPRISE_GLOBAL NotedRange& RangeAt(uint32_t index) {
  return At<NotedRange>(__reprise_access_notes.ranges +
                        index * sizeof(NotedRange));
}

REPRISE_DEVICE void Outside(uint64_t address) {
  if (__reprise_note_is_parameter(address)) return;
  AddOverWarp(&__reprise_access_notes.outside_count, 1);
  volatile uint64_t& first = __reprise_access_notes.first_outside;
  if (first == 0) first = address;
}

// What a page is noted as when more is seen. Untyped accesses (1) take no
// part where others are.
REPRISE_DEVICE uint32_t MergeTypes(uint32_t seen, uint32_t now) {
  if (seen <= 1) return now;
  return now == 1 || seen == now ? seen : kMixedTypes;
}

// A byte's neighbours change at the same time, by other threads.
REPRISE_DEVICE void StoreType(uint64_t place, uint32_t now) {
  auto* word = reinterpret_cast<uint32_t*>(place & ~uint64_t{3});
  const uint32_t shift = 8 * (place & 3);
  uint32_t old = *const_cast<volatile uint32_t*>(word);
  while (true) {
    const uint32_t seen = old >> shift & 0xff;
    const uint32_t merged = MergeTypes(seen, now);
    if (merged == seen) return;
    const uint32_t next = (old & ~(0xffu << shift)) | merged << shift;
    if (__scoped_atomic_compare_exchange_n(word, &old, next, false,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                           __MEMORY_SCOPE_DEVICE))
      return;
  }
}

// The pages of a piece of a range.
REPRISE_DEVICE void NoteTypes(const REPRISE_GLOBAL NotedRange& range,
                              uint64_t offset, uint64_t bytes, uint32_t type) {
  const uint64_t last = (offset + bytes - 1) / kTypePageBytes;
  for (uint64_t page = offset / kTypePageBytes; page <= last; ++page) {
    const uint64_t place = range.types + page;
    const uint32_t seen = At<uint8_t>(place);
    if (MergeTypes(seen, type + 1) != seen) StoreType(place, type + 1);
  }
}

enum class Access { kRead, kWrite };

// Marks bytes that share a word of the plane; `mask` has their bits.
template <Access access>
REPRISE_DEVICE void Mark(const REPRISE_GLOBAL NotedRange& range,
                         uint64_t address, uint32_t mask) {
  const uint64_t plane = access == Access::kRead ? range.read : range.written;
  const uint64_t word = address / kPlaneWordBits - range.begin / kPlaneWordBits;
  const uint64_t place = plane + sizeof(uint32_t) * word;
  if ((At<uint32_t>(place) & mask) == mask) return;
  __scoped_atomic_fetch_or(reinterpret_cast<uint32_t*>(place), mask,
                           __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

// Any piece within a range.
template <Access access>
REPRISE_DEVICE void MarkPiece(const REPRISE_GLOBAL NotedRange& range,
                              uint64_t address, uint64_t bytes, uint32_t type) {
  NoteTypes(range, address - range.begin, bytes, type);
  const uint64_t end = address + bytes;
  while (address < end) {
    const uint64_t first = address % kPlaneWordBits;
    uint64_t count = kPlaneWordBits - first;
    if (count > end - address) count = end - address;
    const uint32_t ones = ~uint32_t{0} >> (kPlaneWordBits - count);
    Mark<access>(range, address, ones << first);
    address += count;
  }
}

// Any stretch of memory, in no, one or several ranges; none holds private
// memory. Returns how many of its
// bytes are in ranges.
template <Access access>
REPRISE_DEVICE uint64_t NoteBytes(uint64_t address, uint64_t bytes,
                                  uint32_t type) {
  if (bytes == 0 || IsPrivate(address)) return 0;
  uint64_t inside = 0;
  uint64_t outside = 0;  // an address; ranges do not hold 0
  while (bytes != 0) {
    const uint32_t next = RangesUpTo(address);
    uint64_t piece = bytes;
    if (next != 0 && address < RangeAt(next - 1).end) {
      const REPRISE_GLOBAL NotedRange& range = RangeAt(next - 1);
      const uint64_t rest = range.end - address;
      if (rest < piece) piece = rest;
      MarkPiece<access>(range, address, piece, type);
      inside += piece;
    } else {
      if (outside == 0) outside = address;
      if (next < __reprise_access_notes.range_count) {
        const uint64_t gap = RangeAt(next).begin - address;
        if (gap < piece) piece = gap;
      }
    }
    address += piece;
    bytes -= piece;
  }
  if (outside != 0) Outside(outside);
  return inside;
}
// An access of one word: most lie in a range, at their alignment.
template <Access access, uint32_t bytes>
REPRISE_DEVICE uint32_t NoteWord(uint64_t address, uint32_t type) {
  const uint32_t next = RangesUpTo(address);
  if (next != 0) {
    const REPRISE_GLOBAL NotedRange& range = RangeAt(next - 1);
    const uint64_t offset = address - range.begin;
    const uint64_t size = range.end - range.begin;
    // At the alignment of a word it lies in one page, if `begin` is aligned.
    if (offset < size && size - offset >= bytes && offset % bytes == 0 &&
        address % bytes == 0) {
      NoteTypes(range, offset, 1, type);
      Mark<access>(range, address,
                   ((1u << bytes) - 1) << address % kPlaneWordBits);
      return bytes;
    }
  }
  return static_cast<uint32_t>(NoteBytes<access>(address, bytes, type));
}

}  // namespace
}  // namespace reprise::cuda

// `type` is a v1::ElementType. All return the bytes that are in ranges.
#define REPRISE_NOTE_WORD(bytes)                                   \
  extern "C" REPRISE_DEVICE uint32_t __reprise_note_read_##bytes(  \
      uint64_t address, uint32_t type) {                           \
    using namespace reprise::cuda;                                 \
    return NoteWord<Access::kRead, bytes>(address, type);          \
  }                                                                \
  extern "C" REPRISE_DEVICE uint32_t __reprise_note_write_##bytes( \
      uint64_t address, uint32_t type) {                           \
    using namespace reprise::cuda;                                 \
    return NoteWord<Access::kWrite, bytes>(address, type);         \
  }
REPRISE_NOTE_WORD(1)
REPRISE_NOTE_WORD(2)
REPRISE_NOTE_WORD(4)
REPRISE_NOTE_WORD(8)
REPRISE_NOTE_WORD(16)

extern "C" {

REPRISE_DEVICE uint64_t __reprise_note_read_bytes(uint64_t address,
                                                  uint64_t bytes,
                                                  uint32_t type) {
  using namespace reprise::cuda;
  return NoteBytes<Access::kRead>(address, bytes, type);
}
REPRISE_DEVICE uint64_t __reprise_note_write_bytes(uint64_t address,
                                                   uint64_t bytes,
                                                   uint32_t type) {
  using namespace reprise::cuda;
  return NoteBytes<Access::kWrite>(address, bytes, type);
}

// Once a thread, at its end.
REPRISE_DEVICE void __reprise_note_totals(uint64_t flops, uint64_t bytes_read,
                                          uint64_t bytes_written) {
  using namespace reprise::cuda;
  AddOverWarp(&__reprise_access_notes.flops, flops);
  AddOverWarp(&__reprise_access_notes.bytes_read, bytes_read);
  AddOverWarp(&__reprise_access_notes.bytes_written, bytes_written);
}

#ifdef __CUDA__
REPRISE_DEVICE bool __reprise_note_is_parameter(uint64_t address) {
  int result;
  asm("{ .reg .pred p; isspacep.param p, %1; selp.b32 %0, 1, 0, p; }"
      : "=r"(result)
      : "l"(address));
  return result != 0;
}
#else
bool __reprise_note_is_parameter(uint64_t) { return false; }
#endif

}  // extern "C"
