#include "bayesopt/vector_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

// One version for processors with AVX2 beside the portable one, chosen when the
// program starts. Sanitizers start later than that choice.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define REPRISE_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#endif
#endif
#endif
#ifndef REPRISE_VECTOR_CLONES
#define REPRISE_VECTOR_CLONES
#endif

#pragma STDC FP_CONTRACT OFF

namespace reprise::bayesopt {
namespace {

// Elements at a time: a piece of the result stays in registers and cache while
// all rows pass over it.
constexpr size_t kBlock = 512;

// exp(x) for -87 <= x <= 0, relative error below 2e-7: 2^n times a polynomial
// on [-log(2)/2, log(2)/2] (the coefficients of the Cephes library's expf).
inline float ExpNegative(float x) {
  const float scaled = x * 1.44269504F;
  const auto n = static_cast<int32_t>(scaled - 0.5F);  // toward 0: rounds
  const auto whole = static_cast<float>(n);
  float r = x - whole * 0.693359375F;
  r = r - whole * -2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  return p * std::bit_cast<float>((n + 127) << 23);
}

}  // namespace

REPRISE_VECTOR_CLONES
void AddSquaredDifferences(const float* values, float center, float scale,
                           size_t count, float* sums) {
  for (size_t j = 0; j < count; ++j) {
    const float difference = (values[j] - center) * scale;
    sums[j] += difference * difference;
  }
}

REPRISE_VECTOR_CLONES
void MaternInPlace(float variance, size_t count, float* values) {
  for (size_t j = 0; j < count; ++j) {
    const float r = std::min(std::sqrt(5.0F * values[j]), 80.0F);
    values[j] = variance * (1.0F + r + r * r * (1.0F / 3.0F)) * ExpNegative(-r);
  }
}

REPRISE_VECTOR_CLONES
void SubtractCombination(const float* const* rows, const float* weights,
                         size_t row_count, size_t count, float* values) {
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t end = std::min(count, first + kBlock);
    size_t i = 0;
    for (; i + 4 <= row_count; i += 4) {
      const float* const a = rows[i];
      const float* const b = rows[i + 1];
      const float* const c = rows[i + 2];
      const float* const d = rows[i + 3];
      const float wa = weights[i];
      const float wb = weights[i + 1];
      const float wc = weights[i + 2];
      const float wd = weights[i + 3];
      for (size_t j = first; j < end; ++j) {
        values[j] = values[j] - wa * a[j] - wb * b[j] - wc * c[j] - wd * d[j];
      }
    }
    for (; i < row_count; ++i) {
      const float* const a = rows[i];
      const float wa = weights[i];
      for (size_t j = first; j < end; ++j) values[j] -= wa * a[j];
    }
  }
}

REPRISE_VECTOR_CLONES
void AddPrediction(const float* const* rows, const float* weights,
                   size_t row_count, size_t count, float* mean,
                   float* variance) {
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t end = std::min(count, first + kBlock);
    for (size_t i = 0; i < row_count; ++i) {
      const float* const row = rows[i];
      const float weight = weights[i];
      for (size_t j = first; j < end; ++j) {
        mean[j] += weight * row[j];
        variance[j] -= row[j] * row[j];
      }
    }
  }
}

}  // namespace reprise::bayesopt
