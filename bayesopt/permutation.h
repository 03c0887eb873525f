// Orders of n items as numbers: rank r < n! is the r-th order in lexicographic
// sequence (Lehmer code), so that orders are drawn and enumerated without being
// kept. Thread-safe.
#ifndef REPRISE_BAYESOPT_PERMUTATION_H_
#define REPRISE_BAYESOPT_PERMUTATION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bayesopt/random.h"

namespace reprise::bayesopt {

// 20! is the last factorial that fits into 64 bits.
inline constexpr size_t kMaximumPermutationItems = 20;

// n <= kMaximumPermutationItems.
uint64_t Factorial(size_t n);

// The items 0..n-1 in the order of this rank; rank < n!.
std::vector<size_t> PermutationAt(size_t n, uint64_t rank);

// `order` holds each of 0..n-1 once.
uint64_t PermutationRank(const std::vector<size_t>& order);

// Two items exchanged, or one moved to another place. At least two items.
std::vector<size_t> PermutationNeighbor(std::vector<size_t> order,
                                        Random& random);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_PERMUTATION_H_
