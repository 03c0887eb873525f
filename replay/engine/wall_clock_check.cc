#include "replay/engine/wall_clock_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_format.h"
#include "replay/engine/paired_statistics.h"

namespace reprise {
namespace {

constexpr int kFewestPairs = 8;
constexpr int kFewestToSuspect = 3;
constexpr int kExceptionsOf = 8;  // one of so many pairs
constexpr double kAlwaysAllowedNs = 10e3;
constexpr double kAllowedShare = 0.05;
constexpr double kAllowedDeviations = 6;

double MedianDeviation(std::vector<double> values) {
  const double median = UpperMedian(values);
  for (double& value : values) value = std::abs(value - median);
  return UpperMedian(std::move(values));
}

}  // namespace

WallClockCheck CheckWallClock(const v1::Outcome& outcome) {
  WallClockCheck check;
  const v1::Timing& timing = outcome.timing();
  const int pairs = outcome.baseline_ns_size();
  if (pairs == 0 || timing.baseline_wall_ns_size() != pairs ||
      timing.variant_wall_ns_size() != pairs)
    return check;
  std::vector<double> baseline, differences;
  for (int i = 0; i < pairs; ++i) {
    baseline.push_back(timing.baseline_wall_ns(i) - outcome.baseline_ns(i));
    differences.push_back(timing.variant_wall_ns(i) - outcome.variant_ns(i) -
                          baseline.back());
  }
  check.excess_ns = UpperMedian(differences);
  check.allowed_ns =
      std::max({kAlwaysAllowedNs,
                kAllowedShare * UpperMedian({outcome.baseline_ns().begin(),
                                             outcome.baseline_ns().end()}),
                kAllowedDeviations * MedianDeviation(std::move(baseline))});
  const auto within =
      std::count_if(differences.begin(), differences.end(),
                    [&](double ns) { return ns <= check.allowed_ns; });
  check.undecided =
      pairs >= kFewestToSuspect && pairs < kFewestPairs && within == 0;
  check.escapes = pairs >= kFewestPairs && within <= pairs / kExceptionsOf;
  return check;
}

std::string DescribeEscape(const WallClockCheck& check) {
  return absl::StrFormat(
      "device time leaves out work of the variant: the wall clock exceeds it "
      "by %.1f us more than for the baseline beside it, got in nearly every "
      "pair more than the %.1f us that noise explains",
      check.excess_ns / 1e3, check.allowed_ns / 1e3);
}

}  // namespace reprise
