// The few loops that the surrogate spends its time in: over many candidates in
// single precision, element by element, so that they give the same bits on
// every processor and however they are vectorized (no reassociation, no fused
// multiply-add). Thread-safe: pure functions.
#ifndef REPRISE_BAYESOPT_VECTOR_LOOPS_H_
#define REPRISE_BAYESOPT_VECTOR_LOOPS_H_

#include <cstddef>

namespace reprise::bayesopt {

// sums[j] += ((values[j] - center) * scale)^2.
void AddSquaredDifferences(const float* values, float center, float scale,
                           size_t count, float* sums);

// values[j] = variance * Matérn-5/2(squared distance values[j]).
void MaternInPlace(float variance, size_t count, float* values);

// values[j] -= sum over i of weights[i] * rows[i][j].
void SubtractCombination(const float* const* rows, const float* weights,
                         size_t row_count, size_t count, float* values);

// mean[j] += sum over i of weights[i] * rows[i][j];
// variance[j] -= sum over i of rows[i][j]^2.
void AddPrediction(const float* const* rows, const float* weights,
                   size_t row_count, size_t count, float* mean,
                   float* variance);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_VECTOR_LOOPS_H_
