// The executor's own kernels; support_kernels.h says what they are for. Built
// to PTX by Clang, embedded, and finished by the driver for the device at hand.
#include <cstdint>

#define REPRISE_BODY __device__

#include "replay/device/cuda/support_kernels.h"

namespace reprise::cuda {

__device__ inline unsigned long long* Wide(uint64_t* value) {
  return reinterpret_cast<unsigned long long*>(value);
}
__device__ inline void AddTo(uint64_t* to, uint64_t value) {
  atomicAdd(Wide(to), static_cast<unsigned long long>(value));
}
__device__ inline void AddTo(double* to, double value) { atomicAdd(to, value); }
__device__ inline void MaxTo(uint64_t* to, uint64_t value) {
  atomicMax(Wide(to), static_cast<unsigned long long>(value));
}

__device__ inline uint64_t FromLane(uint64_t value, int distance) {
  return __shfl_down_sync(0xffffffff, static_cast<unsigned long long>(value),
                          distance);
}
__device__ inline uint64_t Larger(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

// All 32 lanes of a warp work on one tile.
__device__ inline bool Any(bool mine) { return __any_sync(0xffffffff, mine); }

__device__ inline void Merge(CompareCounts* to, CompareCounts mine) {
  for (int distance = 16; distance > 0; distance /= 2) {
    mine.wrong += FromLane(mine.wrong, distance);
    mine.outside += FromLane(mine.outside, distance);
    mine.first_wrong =
        Larger(mine.first_wrong, FromLane(mine.first_wrong, distance));
    mine.max_absolute =
        Larger(mine.max_absolute, FromLane(mine.max_absolute, distance));
    mine.max_relative =
        Larger(mine.max_relative, FromLane(mine.max_relative, distance));
    mine.squares += __shfl_down_sync(0xffffffff, mine.squares, distance);
  }
  if (threadIdx.x % 32 != 0) return;
  if (mine.wrong != 0) AddTo(&to->wrong, mine.wrong);
  if (mine.outside != 0) AddTo(&to->outside, mine.outside);
  MaxTo(&to->first_wrong, mine.first_wrong);
  MaxTo(&to->max_absolute, mine.max_absolute);
  MaxTo(&to->max_relative, mine.max_relative);
  AddTo(&to->squares, mine.squares);
}

}  // namespace reprise::cuda

#include "replay/device/cuda/support_kernels_body.h"

namespace reprise::cuda {
namespace {

__device__ Place Here() {
  return {uint64_t{blockIdx.x} * blockDim.x + threadIdx.x,
          uint64_t{gridDim.x} * blockDim.x};
}

}  // namespace

extern "C" __global__ void reprise_copy(const CopyTile* tiles, uint64_t count,
                                        uint32_t lanes) {
  CopyBody(tiles, count, lanes, Here());
}

extern "C" __global__ void reprise_poison(const FillTile* tiles, uint64_t count,
                                          uint32_t lanes, uint64_t seed) {
  PoisonBody(tiles, count, lanes, seed, Here());
}

// At least 4 blocks on a multiprocessor: registers beyond that are for what
// differs, which is rare.
extern "C" __global__ void __launch_bounds__(kSupportBlock, 4)
    reprise_compare(const CompareTile* tiles, uint64_t count,
                    const CompareJob* jobs, CompareCounts* counts) {
  CompareBody(tiles, count, jobs, counts, kSupportBlock, Here());
}

__device__ uint64_t Nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

extern "C" __global__ void reprise_delay(uint64_t nanoseconds) {
  const uint64_t start = Nanoseconds();
  while (Nanoseconds() - start < nanoseconds) {
  }
}

extern "C" __global__ void reprise_store_words(const Word* words,
                                               uint64_t count) {
  StoreWordsBody(words, count, Here());
}

extern "C" __global__ void reprise_stream_write(uint64_t at, uint64_t bytes,
                                                uint32_t rounds) {
  StreamWriteBody(at, bytes, rounds, Here());
}

extern "C" __global__ void reprise_stream_read(uint64_t from, uint64_t bytes,
                                               uint32_t rounds,
                                               uint64_t* sink) {
  StreamReadBody(from, bytes, rounds, sink, Here());
}

extern "C" __global__ void reprise_multiply_add_32(uint32_t rounds,
                                                   uint64_t* sink) {
  MultiplyAddBody<float>(rounds, sink, Here());
}

extern "C" __global__ void reprise_multiply_add_64(uint32_t rounds,
                                                   uint64_t* sink) {
  MultiplyAddBody<double>(rounds, sink, Here());
}

}  // namespace reprise::cuda
