// The work of some benchmark kernels as plain serial loops of the host,
// compiled with -O3 for this processor. Thread-safe.
#ifndef REPRISE_TESTS_BENCHMARKS_HOST_LOOPS_H_
#define REPRISE_TESTS_BENCHMARKS_HOST_LOOPS_H_

namespace reprise {

void SaxpyLoop(int n, float a, const float* x, float* y);
void PolynomialLoop(int n, const float* in, float* out);
void StencilLoop(int width, int height, const float* in, float* out);

}  // namespace reprise

#endif  // REPRISE_TESTS_BENCHMARKS_HOST_LOOPS_H_
