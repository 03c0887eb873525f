// The order of results of half_functions.cu.
#ifndef REPRISE_TESTS_REPLAY_DEVICE_KERNELS_HALF_FUNCTIONS_H_
#define REPRISE_TESTS_REPLAY_DEVICE_KERNELS_HALF_FUNCTIONS_H_

enum HalfFunction {
  kExp,
  kExp2,
  kExp10,
  kLog,
  kLog2,
  kLog10,
  kSin,
  kCos,
  kTanh,
  kReciprocal,
  kRoot,
  kReciprocalRoot,
  kHalfFunctions
};

#endif  // REPRISE_TESTS_REPLAY_DEVICE_KERNELS_HALF_FUNCTIONS_H_
