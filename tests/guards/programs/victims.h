// What the victims compute; a header of the user's own.
#ifndef REPRISE_TESTS_GUARDS_PROGRAMS_VICTIMS_H_
#define REPRISE_TESTS_GUARDS_PROGRAMS_VICTIMS_H_

constexpr int kCount = 1000;
constexpr int kBlock = 128;
constexpr int kBlocks = (kCount + kBlock - 1) / kBlock;

// Costs enough that leaving it out shows.
__device__ inline float Bend(float x) {
  for (int step = 0; step < 64; ++step) x += 0.01f / (x + 0.25f);
  return x;
}

#endif  // REPRISE_TESTS_GUARDS_PROGRAMS_VICTIMS_H_
