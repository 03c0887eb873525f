// The executor's own kernels: what they are called and the tables they read.
//
// Each works on a table of tiles, pieces of memory of similar size. `lanes`
// threads share a tile (1, 32 or a whole block), so that a table of millions of
// small pieces and one of a few large pieces both run at memory speed.
//
// Plain C++ for host and device.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_SUPPORT_KERNELS_H_
#define REPRISE_REPLAY_DEVICE_CUDA_SUPPORT_KERNELS_H_

#include <cstdint>

namespace reprise::cuda {

// (const CopyTile* tiles, uint64_t count, uint32_t lanes)
inline constexpr char kCopyKernel[] = "reprise_copy";
// (const FillTile* tiles, uint64_t count, uint32_t lanes, uint64_t seed)
inline constexpr char kPoisonKernel[] = "reprise_poison";
// (const CompareTile* tiles, uint64_t count, const CompareJob* jobs,
//  CompareCounts* counts)
inline constexpr char kCompareKernel[] = "reprise_compare";
// (const Word* words, uint64_t count)
inline constexpr char kStoreWordsKernel[] = "reprise_store_words";
// (uint64_t nanoseconds): one thread that waits.
inline constexpr char kDelayKernel[] = "reprise_delay";

// How fast the device is at most (executor/ceilings.h). Each thread's share of
// the bytes, `rounds` times; whole 16 bytes only.
// (uint64_t at, uint64_t bytes, uint32_t rounds)
inline constexpr char kStreamWriteKernel[] = "reprise_stream_write";
// (uint64_t from, uint64_t bytes, uint32_t rounds, uint64_t* sink)
inline constexpr char kStreamReadKernel[] = "reprise_stream_read";
// (uint32_t rounds, uint64_t* sink): kMultiplyAdds of them a round, in each
// thread.
inline constexpr char kMultiplyAdd32Kernel[] = "reprise_multiply_add_32";
inline constexpr char kMultiplyAdd64Kernel[] = "reprise_multiply_add_64";
inline constexpr uint32_t kMultiplyAdds = 16;

inline constexpr uint32_t kSupportBlock = 256;  // threads per block

struct CopyTile {
  uint64_t to = 0;
  uint64_t from = 0;
  uint64_t bytes = 0;
};

struct FillTile {
  uint64_t at = 0;
  uint64_t bytes = 0;
};

struct Word {
  uint64_t at = 0;
  uint64_t value = 0;
};

// A memory range, or what of it can have been written, against its reference.
struct CompareJob {
  // Addresses of the range's byte 0 and of what it should be; only bytes that
  // tiles name are read.
  uint64_t got = 0;
  uint64_t expected = 0;
  // uint64_t[2 * interval_count]: begin and end of the byte intervals that may
  // differ, ascending. Unused where all may.
  uint64_t intervals = 0;
  uint64_t interval_count = 0;
  uint32_t all_may_differ = 0;
  uint32_t element_type = 0;  // v1 ElementType
  double absolute = 0;
  double relative = 0;
};

// Offsets of bytes within the job's range: whole elements.
struct CompareTile {
  uint64_t job = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Of one job. Zero before the launch.
struct CompareCounts {
  uint64_t wrong = 0;
  uint64_t outside = 0;       // elements that may not differ but do
  uint64_t first_wrong = 0;   // UINT64_MAX - its index; 0: none
  uint64_t max_absolute = 0;  // bits of a double that is not negative
  uint64_t max_relative = 0;
  double squares = 0;  // sum of squared finite distances
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_SUPPORT_KERNELS_H_
