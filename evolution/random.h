// Seeded random numbers that give the same sequence with every compiler and
// standard library. 8 bytes of state; copyable, not thread-safe.
#ifndef REPRISE_EVOLUTION_RANDOM_H_
#define REPRISE_EVOLUTION_RANDOM_H_

#include <cstddef>
#include <cstdint>

namespace reprise::evolution {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {  // SplitMix64
    uint64_t x = (state_ += 0x9e3779b97f4a7c15ull);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }

  // Uniform in [0, bound), within 2^-32 for bounds below 2^32; bound must be
  // positive.
  size_t Below(size_t bound) { return Next() % bound; }

  // Uniform in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_RANDOM_H_
