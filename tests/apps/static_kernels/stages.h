// The two stages of static_kernels. Each lives in a translation unit of its
// own and launches kernels that have the same names in both.
#ifndef REPRISE_TESTS_APPS_STATIC_KERNELS_STAGES_H_
#define REPRISE_TESTS_APPS_STATIC_KERNELS_STAGES_H_

// Both stages change `values` (device memory, `count` elements) in place, on
// the default stream.
// Applies StepKernel: v = 3 v + 1 modulo 2^32, then MixKernel: v ^= v >> 7.
void RunAlpha(unsigned int* values, int count);
// Applies StepKernel: v = 5 v + 2 modulo 2^32, then MixKernel: v ^= v << 9.
void RunBeta(unsigned int* values, int count);

// How often each stage's first thread ran StepKernel.
int AlphaSteps();
int BetaSteps();

#endif  // REPRISE_TESTS_APPS_STATIC_KERNELS_STAGES_H_
