#include "bayesopt/trial_statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <optional>
#include <vector>

namespace reprise::bayesopt {
namespace {

// Standard deviations that count as beyond doubt.
constexpr double kBeyondDoubt = 3;

std::vector<double> Ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t first = 0; first < order.size();) {
    size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) {
      ++end;
    }
    for (size_t i = first; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(first + end - 1) / 2;
    }
    first = end;
  }
  return ranks;
}

}  // namespace

double Median(std::vector<double> samples) {
  const auto middle =
      samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  if (samples.size() % 2 == 1) return *middle;
  return (*std::max_element(samples.begin(), middle) + *middle) / 2;
}

double LogVariance(const std::vector<double>& samples) {
  if (samples.size() < 2) return 0;
  const auto count = static_cast<double>(samples.size());
  double mean = 0;
  for (const double sample : samples) mean += std::log(sample) / count;
  double squares = 0;
  for (const double sample : samples) {
    squares += (std::log(sample) - mean) * (std::log(sample) - mean);
  }
  // The median of normal samples varies pi/2 times as much as their mean.
  return std::numbers::pi / 2 * squares / (count - 1) / count;
}

int MoreSamples(const SamplePolicy& policy, const std::vector<double>& samples,
                std::optional<double> best) {
  const int count = static_cast<int>(samples.size());
  if (count < policy.least) return policy.least - count;
  if (count >= policy.most) return 0;
  const double deviation = std::sqrt(LogVariance(samples));
  if (best) {
    const double behind = std::log(Median(samples) / *best);
    if (behind > policy.margin + kBeyondDoubt * deviation) return 0;
  }
  if (count > 1 && deviation < policy.precise_enough) return 0;
  return std::min(std::max(count, 1), policy.most - count);
}

double RankCorrelation(const std::vector<double>& a,
                       const std::vector<double>& b) {
  const std::vector<double> x = Ranks(a);
  const std::vector<double> y = Ranks(b);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

}  // namespace reprise::bayesopt
