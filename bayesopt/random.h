// Seeded random numbers that give the same sequence with every compiler and
// standard library (the distributions of <random> do not). A stream is named by
// (seed, stream), so that what one consumer draws never shifts what another
// draws. Not thread-safe; copyable, 8 bytes of state.
#ifndef REPRISE_BAYESOPT_RANDOM_H_
#define REPRISE_BAYESOPT_RANDOM_H_

#include <cstdint>

namespace reprise::bayesopt {

class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0)
      : state_(Mix(seed ^ Mix(stream + 0x9e3779b97f4a7c15ull))) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ull;
    return Mix(state_);
  }

  // Uniform in [0, bound); bound must be positive.
  uint64_t Below(uint64_t bound) {
    const uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    uint64_t draw = Next();
    while (draw >= limit) draw = Next();
    return draw % bound;
  }

  // Uniform in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  bool Chance(double probability) { return Unit() < probability; }

 private:
  static uint64_t Mix(uint64_t x) {  // SplitMix64
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }

  uint64_t state_;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_RANDOM_H_
