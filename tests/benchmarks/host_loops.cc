#include "tests/benchmarks/host_loops.h"

namespace reprise {

void SaxpyLoop(int n, float a, const float* __restrict__ x,
               float* __restrict__ y) {
  for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}

void PolynomialLoop(int n, const float* __restrict__ in,
                    float* __restrict__ out) {
  for (int i = 0; i < n; ++i) {
    const float x = in[i];
    float p = 0.5f;
    for (int k = 0; k < 16; ++k) p = p * x + 0.25f;
    out[i] = p;
  }
}

void StencilLoop(int width, int height, const float* __restrict__ in,
                 float* __restrict__ out) {
  for (int y = 1; y < height - 1; ++y) {
    for (int x = 1; x < width - 1; ++x) {
      const int i = y * width + x;
      out[i] = 0.5f * in[i] +
               0.125f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
    }
  }
}

}  // namespace reprise
