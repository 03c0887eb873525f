#include "bayesopt/permutation.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace reprise::bayesopt {

uint64_t Factorial(size_t n) {
  uint64_t product = 1;
  for (size_t i = 2; i <= n; ++i) product *= i;
  return product;
}

std::vector<size_t> PermutationAt(size_t n, uint64_t rank) {
  std::vector<size_t> left(n);
  std::iota(left.begin(), left.end(), size_t{0});
  std::vector<size_t> order;
  for (size_t i = 0; i < n; ++i) {
    const uint64_t below = Factorial(n - 1 - i);
    const auto next = left.begin() + static_cast<ptrdiff_t>(rank / below);
    rank %= below;
    order.push_back(*next);
    left.erase(next);
  }
  return order;
}

uint64_t PermutationRank(const std::vector<size_t>& order) {
  uint64_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const auto smaller =
        std::count_if(order.begin() + static_cast<ptrdiff_t>(i), order.end(),
                      [&](size_t later) { return later < order[i]; });
    rank += static_cast<uint64_t>(smaller) * Factorial(order.size() - 1 - i);
  }
  return rank;
}

std::vector<size_t> PermutationNeighbor(std::vector<size_t> order,
                                        Random& random) {
  const size_t from = random.Below(order.size());
  size_t to = random.Below(order.size() - 1);
  if (to >= from) ++to;
  if (random.Chance(0.5)) {
    std::swap(order[from], order[to]);
    return order;
  }
  const size_t item = order[from];
  order.erase(order.begin() + static_cast<ptrdiff_t>(from));
  order.insert(order.begin() + static_cast<ptrdiff_t>(to), item);
  return order;
}

}  // namespace reprise::bayesopt
