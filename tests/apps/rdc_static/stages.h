// The two stages of rdc_static. Each lives in a translation unit of its own and
// launches kernels that have the same names in both.
#ifndef REPRISE_TESTS_APPS_RDC_STATIC_STAGES_H_
#define REPRISE_TESTS_APPS_RDC_STATIC_STAGES_H_

// Both change `values` (device memory, `count` elements) in place.
void RunLeft(unsigned int* values, int count);   // v = Mix(3 v + 1)
void RunRight(unsigned int* values, int count);  // v = Mix(5 v + 2)

#endif  // REPRISE_TESTS_APPS_RDC_STATIC_STAGES_H_
