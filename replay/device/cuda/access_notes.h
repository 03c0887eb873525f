// What instrumented device code and the executor that runs it share: how a
// kernel tells which bytes of global memory it touches.
//
// An instrumented cubin (COMPILE_TARGET_CUBIN_INSTRUMENTED) defines one device
// variable, kAccessNotesSymbol, of type AccessNotes. Before the launch the
// executor fills it and the ranges it points to; every plane has one bit per
// byte of its range and is zero. The code looks an address up in the ranges and
// sets bits of the planes. Accesses to shared, local and parameter memory are
// not noted.
//
// Plain C++ for host and device.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_ACCESS_NOTES_H_
#define REPRISE_REPLAY_DEVICE_CUDA_ACCESS_NOTES_H_

#include <cstdint>

namespace reprise::cuda {

inline constexpr char kAccessNotesSymbol[] = "__reprise_access_notes";
// The element type seen is noted per page of a range.
inline constexpr uint64_t kTypePageBytes = 4096;
inline constexpr uint8_t kMixedTypes = 0xff;

// A plane's words; bit 0 of a plane's first word is the byte at the range's
// begin rounded down to so many, so that no aligned access is in two words.
inline constexpr uint64_t kPlaneWordBits = 32;

// All pointers are device addresses.
struct NotedRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t read = 0;  // planes: uint32_t[PlaneWords]
  uint64_t written = 0;
  // uint8_t per page, counted from `begin`: 0 nothing seen, else the v1
  // ElementType of the accesses + 1, or kMixedTypes.
  uint64_t types = 0;
};

inline uint64_t PlaneWords(const NotedRange& range) {
  return range.end / kPlaneWordBits - range.begin / kPlaneWordBits +
         (range.end % kPlaneWordBits != 0 ? 1 : 0);
}

struct AccessNotes {
  uint64_t range_count = 0;
  uint64_t ranges = 0;      // NotedRange[range_count], ascending, disjoint
  uint64_t flops = 0;       // an fma counts 2
  uint64_t bytes_read = 0;  // of global memory, with repetition
  uint64_t bytes_written = 0;
  uint64_t outside_count = 0;  // accesses that no range holds
  uint64_t first_outside = 0;  // the address of one of them
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_ACCESS_NOTES_H_
