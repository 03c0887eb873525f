// What the support kernels do, thread by thread, without anything of CUDA: the
// kernels of support_kernels.cu call it on a device, the fake driver of the
// tests on the host. The includer defines, in namespace reprise::cuda:
//   REPRISE_BODY               qualifiers of every function here
//   AddTo, MaxTo               atomic, (uint64_t*, uint64_t)
//   AddTo                      atomic, (double*, double)
//   Any(bool)                  whether it is true for one of the threads that
//                              come here together
//   Merge(CompareCounts* to, const CompareCounts& mine)
//                              adds the counts of all of them
#ifndef REPRISE_REPLAY_DEVICE_CUDA_SUPPORT_KERNELS_BODY_H_
#define REPRISE_REPLAY_DEVICE_CUDA_SUPPORT_KERNELS_BODY_H_

#include "replay/device/cuda/support_kernels.h"

namespace reprise::cuda {

// A thread's place in its launch.
struct Place {
  uint64_t thread = 0;
  uint64_t threads = 0;
};

// One access to memory; a struct would be two.
using Vector = uint64_t __attribute__((ext_vector_type(2)));

// Bytes up to the next multiple of 16.
REPRISE_BODY inline uint64_t ToVector(uint64_t address) {
  return (16 - (address & 15)) & 15;
}

REPRISE_BODY inline uint64_t Smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

REPRISE_BODY inline void CopyPiece(const CopyTile& tile, uint64_t lane,
                                   uint64_t lanes) {
  auto* to = reinterpret_cast<uint8_t*>(tile.to);
  const auto* from = reinterpret_cast<const uint8_t*>(tile.from);
  uint64_t head = tile.bytes, body = 0;
  if (((tile.to ^ tile.from) & 15) == 0) {
    head = Smaller(ToVector(tile.to), tile.bytes);
    body = (tile.bytes - head) / 16;
  }
  auto* to_vectors = reinterpret_cast<Vector*>(to + head);
  const auto* from_vectors = reinterpret_cast<const Vector*>(from + head);
  uint64_t i = lane;
  for (; i + 3 * lanes < body; i += 4 * lanes) {
    const Vector a = from_vectors[i], b = from_vectors[i + lanes],
                 c = from_vectors[i + 2 * lanes],
                 d = from_vectors[i + 3 * lanes];
    to_vectors[i] = a;
    to_vectors[i + lanes] = b;
    to_vectors[i + 2 * lanes] = c;
    to_vectors[i + 3 * lanes] = d;
  }
  for (; i < body; i += lanes) to_vectors[i] = from_vectors[i];
  for (i = lane; i < head; i += lanes) to[i] = from[i];
  for (i = head + 16 * body + lane; i < tile.bytes; i += lanes) to[i] = from[i];
}

REPRISE_BODY inline void CopyBody(const CopyTile* tiles, uint64_t count,
                                  uint32_t lanes, const Place& place) {
  for (uint64_t tile = place.thread / lanes; tile < count;
       tile += place.threads / lanes)
    CopyPiece(tiles[tile], place.thread % lanes, lanes);
}

REPRISE_BODY inline uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// The 16 bytes of poison at an address that is a multiple of 16: not a number
// for every floating-point type, or random ones that are a number in the middle
// of every type's range.
REPRISE_BODY inline Vector PoisonAt(uint64_t address, uint64_t seed) {
  const uint64_t mixed = Mix(seed + 0x9e3779b97f4a7c15 * (address >> 4));
  if ((mixed & 1) != 0) return Vector{~uint64_t{0}, ~uint64_t{0}};
  const uint64_t low = (mixed & 0x0fff0fff0fff0fff) | 0x4000400040004000;
  return Vector{low, low ^ (mixed >> 12 & 0x00ff00ff00ff00ff)};
}

REPRISE_BODY inline uint8_t PoisonByte(uint64_t address, uint64_t seed) {
  const Vector vector = PoisonAt(address & ~uint64_t{15}, seed);
  const uint64_t half = (address & 8) != 0 ? vector.y : vector.x;
  return static_cast<uint8_t>(half >> (8 * (address & 7)));
}

REPRISE_BODY inline void PoisonPiece(const FillTile& tile, uint64_t lane,
                                     uint64_t lanes, uint64_t seed) {
  auto* at = reinterpret_cast<uint8_t*>(tile.at);
  const uint64_t head = Smaller(ToVector(tile.at), tile.bytes);
  const uint64_t body = (tile.bytes - head) / 16;
  auto* vectors = reinterpret_cast<Vector*>(at + head);
  for (uint64_t i = lane; i < body; i += lanes)
    vectors[i] = PoisonAt(tile.at + head + 16 * i, seed);
  for (uint64_t i = lane; i < head; i += lanes)
    at[i] = PoisonByte(tile.at + i, seed);
  for (uint64_t i = head + 16 * body + lane; i < tile.bytes; i += lanes)
    at[i] = PoisonByte(tile.at + i, seed);
}

REPRISE_BODY inline void PoisonBody(const FillTile* tiles, uint64_t count,
                                    uint32_t lanes, uint64_t seed,
                                    const Place& place) {
  for (uint64_t tile = place.thread / lanes; tile < count;
       tile += place.threads / lanes)
    PoisonPiece(tiles[tile], place.thread % lanes, lanes, seed);
}

// --- Comparison; what counts as equal is said in cpu/resident/compare.h.

REPRISE_BODY inline double AsDouble(uint64_t bits) {
  double value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}
REPRISE_BODY inline uint64_t AsBits(double value) {
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}
REPRISE_BODY inline double FloatBits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}
REPRISE_BODY inline double HalfBits(uint32_t bits) {
  const uint32_t sign = (bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return FloatBits(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0)
    return FloatBits(sign | (exponent + 112) << 23 | mantissa << 13);
  const double value = mantissa * 0x1p-24;
  return sign != 0 ? -value : value;
}
REPRISE_BODY inline bool IsNan(double value) { return value != value; }
REPRISE_BODY inline bool IsFinite(double value) {
  return (AsBits(value) >> 52 & 0x7ff) != 0x7ff;
}
REPRISE_BODY inline double Magnitude(double value) {
  return AsDouble(AsBits(value) & ~(uint64_t{1} << 63));
}

// v1::ElementType.
enum Type : uint32_t {
  kUntyped,
  kF16,
  kBf16,
  kF32,
  kF64,
  kI8,
  kI16,
  kI32,
  kI64
};

REPRISE_BODY inline uint32_t TypeBytes(uint32_t type) {
  // Logarithms, kUntyped's last: no table to load.
  return type > kI64 ? 1 : 1u << (0x321032110 >> (4 * type) & 3);
}

REPRISE_BODY inline double ValueOf(uint32_t type, uint64_t bits) {
  switch (type) {
    case kF16:
      return HalfBits(static_cast<uint32_t>(bits));
    case kBf16:
      return FloatBits(static_cast<uint32_t>(bits) << 16);
    case kF32:
      return FloatBits(static_cast<uint32_t>(bits));
    case kF64:
      return AsDouble(bits);
    case kI8:
      return static_cast<int8_t>(bits);
    case kI16:
      return static_cast<int16_t>(bits);
    case kI32:
      return static_cast<int32_t>(bits);
    case kI64:
      return static_cast<double>(static_cast<int64_t>(bits));
    default:
      return static_cast<double>(bits);
  }
}

REPRISE_BODY inline bool Within(const CompareJob& job, double got,
                                double expected) {
  if (IsNan(got) || IsNan(expected)) return IsNan(got) && IsNan(expected);
  // Bits differ, so without a bound these are unequal, the sign of zero too.
  if (job.absolute == 0 && job.relative == 0) return false;
  if (!IsFinite(got) || !IsFinite(expected)) return got == expected;
  return Magnitude(got - expected) <=
         job.absolute + job.relative * Magnitude(expected);
}

REPRISE_BODY inline bool MayDiffer(const CompareJob& job, uint64_t byte) {
  const auto* intervals = reinterpret_cast<const uint64_t*>(job.intervals);
  uint64_t low = 0, high = job.interval_count;
  while (low < high) {  // the first interval that ends behind the byte
    const uint64_t middle = (low + high) / 2;
    if (intervals[2 * middle + 1] > byte) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low < job.interval_count && intervals[2 * low] <= byte;
}

// Elements as their bits, zero-extended.
REPRISE_BODY inline void CompareElement(const CompareJob& job, uint64_t offset,
                                        uint32_t size, uint64_t got,
                                        uint64_t expected,
                                        CompareCounts& counts) {
  if (got == expected) return;
  bool may_differ = true;
  if (job.all_may_differ == 0) {
    for (uint32_t byte = 0; byte < size; ++byte) {
      if (((got ^ expected) >> (8 * byte) & 0xff) != 0 &&
          !MayDiffer(job, offset + byte))
        may_differ = false;
    }
  }
  const double a = ValueOf(job.element_type, got);
  const double b = ValueOf(job.element_type, expected);
  if (may_differ && IsNan(a) && IsNan(b)) return;
  double distance = Magnitude(a - b);
  if (IsNan(distance)) distance = AsDouble(0x7ff0000000000000);
  if (distance > AsDouble(counts.max_absolute))
    counts.max_absolute = AsBits(distance);
  if (b != 0) {
    const double relative = distance / Magnitude(b);
    // A NaN compares as greater by its bits; std::max keeps the number.
    if (relative > AsDouble(counts.max_relative))
      counts.max_relative = AsBits(relative);
  }
  if (IsFinite(distance)) counts.squares += distance * distance;
  const bool floating = job.element_type >= kF16 && job.element_type <= kF64;
  if (may_differ && floating && Within(job, a, b)) return;
  ++counts.wrong;
  if (!may_differ) ++counts.outside;
  const uint64_t first = ~uint64_t{0} - offset / size;
  if (first > counts.first_wrong) counts.first_wrong = first;
}

REPRISE_BODY inline uint64_t ReadBits(uint64_t address, uint32_t size) {
  const auto* at = reinterpret_cast<const uint8_t*>(address);
  uint64_t bits = 0;
  for (uint32_t byte = 0; byte < size; ++byte)
    bits |= uint64_t{at[byte]} << (8 * byte);
  return bits;
}

REPRISE_BODY inline void CompareVector(const CompareJob& job, uint64_t offset,
                                       uint32_t size, const Vector& got,
                                       const Vector& expected,
                                       CompareCounts& counts) {
  if (got.x == expected.x && got.y == expected.y) return;
  const uint64_t mask =
      size == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1;
  for (uint32_t byte = 0; byte < 16; byte += size) {
    const uint32_t shift = 8 * (byte & 7);
    const uint64_t a = (byte < 8 ? got.x : got.y) >> shift & mask;
    const uint64_t b = (byte < 8 ? expected.x : expected.y) >> shift & mask;
    CompareElement(job, offset + byte, size, a, b, counts);
  }
}

// The same for single elements.
REPRISE_BODY inline void CompareSingle(const CompareJob& job, uint64_t offset,
                                       uint32_t size, CompareCounts& counts) {
  CompareElement(job, offset, size, ReadBits(job.got + offset, size),
                 ReadBits(job.expected + offset, size), counts);
}

// How a tile is cut: elements before `head_end` and from `tail` on one by one,
// vectors between them. Lane i of n has every nth of each, from number i on.
struct Cut {
  uint64_t head_end = 0;
  uint64_t vectors = 0;
  uint64_t tail = 0;
};

REPRISE_BODY inline Cut CutTile(const CompareJob& job, uint64_t begin,
                                uint64_t end, uint32_t size) {
  Cut cut = {end, 0, end};
  if (((job.got ^ job.expected) & 15) != 0 || (job.got & (size - 1)) != 0)
    return cut;
  cut.head_end = Smaller(begin + ToVector(job.got + begin), end);
  cut.vectors = (end - cut.head_end) / 16;
  cut.tail = cut.head_end + 16 * cut.vectors;
  return cut;
}

REPRISE_BODY inline void ComparePiece(const CompareJob& job, uint64_t begin,
                                      uint64_t end, uint64_t lane,
                                      uint64_t lanes, CompareCounts& counts) {
  const uint32_t size = TypeBytes(job.element_type);
  const Cut cut = CutTile(job, begin, end, size);
  const auto* got = reinterpret_cast<const Vector*>(job.got + cut.head_end);
  const auto* expected =
      reinterpret_cast<const Vector*>(job.expected + cut.head_end);
  for (uint64_t i = lane; i < cut.vectors; i += lanes)
    CompareVector(job, cut.head_end + 16 * i, size, got[i], expected[i],
                  counts);
  for (uint64_t at = begin + lane * size; at < cut.head_end; at += lanes * size)
    CompareSingle(job, at, size, counts);
  for (uint64_t at = cut.tail + lane * size; at < end; at += lanes * size)
    CompareSingle(job, at, size, counts);
}

// Out of line: the loop over memory that is equal, as nearly all of a good
// result is, keeps its registers few.
REPRISE_BODY __attribute__((noinline)) inline void CompareUnequal(
    const CompareJob* job, const CompareTile* tile, CompareCounts* counts,
    uint64_t lane, uint64_t lanes) {
  CompareCounts mine;
  ComparePiece(*job, tile->begin, tile->end, lane, lanes, mine);
  Merge(counts, mine);
}

REPRISE_BODY inline uint64_t Difference(const Vector& a, const Vector& b) {
  return (a.x ^ b.x) | (a.y ^ b.y);
}

// Whether the lane's vectors are the same bit by bit, and there is nothing
// else.
REPRISE_BODY inline bool IsEqual(const CompareJob& job, const CompareTile& tile,
                                 uint64_t lane, uint64_t lanes) {
  const Cut cut =
      CutTile(job, tile.begin, tile.end, TypeBytes(job.element_type));
  const auto* x = reinterpret_cast<const Vector*>(job.got + cut.head_end);
  const auto* y = reinterpret_cast<const Vector*>(job.expected + cut.head_end);
  uint64_t difference = 16 * cut.vectors ^ (tile.end - tile.begin);
  uint64_t i = lane;
  for (; i + 3 * lanes < cut.vectors; i += 4 * lanes) {
    const Vector x0 = x[i], x1 = x[i + lanes], x2 = x[i + 2 * lanes],
                 x3 = x[i + 3 * lanes];
    const Vector y0 = y[i], y1 = y[i + lanes], y2 = y[i + 2 * lanes],
                 y3 = y[i + 3 * lanes];
    difference |= Difference(x0, y0) | Difference(x1, y1) | Difference(x2, y2) |
                  Difference(x3, y3);
  }
  for (; i < cut.vectors; i += lanes) difference |= Difference(x[i], y[i]);
  return difference == 0;
}

// One block per tile.
REPRISE_BODY inline void CompareBody(const CompareTile* tiles, uint64_t count,
                                     const CompareJob* jobs,
                                     CompareCounts* counts, uint32_t lanes,
                                     const Place& place) {
  const uint64_t lane = place.thread % lanes;
  for (uint64_t i = place.thread / lanes; i < count;
       i += place.threads / lanes) {
    const CompareTile tile = tiles[i];
    const CompareJob* job = jobs + tile.job;
    if (Any(!IsEqual(*job, tile, lane, lanes)))
      CompareUnequal(job, tiles + i, counts + tile.job, lane, lanes);
  }
}

REPRISE_BODY inline void StoreWordsBody(const Word* words, uint64_t count,
                                        const Place& place) {
  for (uint64_t i = place.thread; i < count; i += place.threads)
    *reinterpret_cast<uint64_t*>(words[i].at) = words[i].value;
}

REPRISE_BODY inline void StreamWriteBody(uint64_t at, uint64_t bytes,
                                         uint32_t rounds, const Place& place) {
  auto* to = reinterpret_cast<Vector*>(at);
  for (uint64_t round = 0; round < rounds; ++round) {
    for (uint64_t i = place.thread; i < bytes / 16; i += place.threads)
      to[i] = Vector{round, i};
  }
}

REPRISE_BODY inline uint64_t Folded(const Vector& a) { return a.x ^ a.y; }

// The sink keeps the reads from being left out; it is hardly ever written.
REPRISE_BODY inline void StreamReadBody(uint64_t from, uint64_t bytes,
                                        uint32_t rounds, uint64_t* sink,
                                        const Place& place) {
  const auto* vectors = reinterpret_cast<const Vector*>(from);
  const uint64_t count = bytes / 16, step = place.threads;
  uint64_t folded = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    uint64_t i = place.thread;
    for (; i + 3 * step < count; i += 4 * step) {
      const Vector a = vectors[i], b = vectors[i + step],
                   c = vectors[i + 2 * step], d = vectors[i + 3 * step];
      folded += Folded(a) ^ Folded(b) ^ Folded(c) ^ Folded(d);
    }
    for (; i < count; i += step) folded += Folded(vectors[i]);
  }
  if (folded == 0x9e3779b97f4a7c15) *sink = folded;
}

// Chains that wait for none but themselves, enough of them for every
// multiply-add unit to be busy.
template <typename Number>
REPRISE_BODY inline void MultiplyAddBody(uint32_t rounds, uint64_t* sink,
                                         const Place& place) {
  constexpr uint32_t kChains = 8;
  static_assert(kMultiplyAdds % kChains == 0);
  Number values[kChains];
  for (uint32_t i = 0; i < kChains; ++i)
    values[i] = static_cast<Number>(place.thread + i);
  const Number factor = static_cast<Number>(0.5), term = values[1];
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t i = 0; i < kMultiplyAdds; ++i)
      values[i % kChains] = values[i % kChains] * factor + term;
  }
  Number sum = 0;
  for (uint32_t i = 0; i < kChains; ++i) sum += values[i];
  if (sum == static_cast<Number>(-1)) *sink = 1;
}

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_SUPPORT_KERNELS_BODY_H_
