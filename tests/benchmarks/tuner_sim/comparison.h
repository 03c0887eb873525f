// Methods beside each other, as Markdown. Thread-safe.
#ifndef REPRISE_TESTS_BENCHMARKS_TUNER_SIM_COMPARISON_H_
#define REPRISE_TESTS_BENCHMARKS_TUNER_SIM_COMPARISON_H_

#include <string>
#include <vector>

#include "tests/benchmarks/benchmark_report.h"
#include "tests/benchmarks/tuner_sim/campaign.h"

namespace reprise::tuner_sim {

struct MethodResults {
  std::string method;
  std::vector<SpaceResult> results;
};

// What a method has on one space over the best of all others there.
struct Lead {
  std::string space;
  std::string method;  // the best other one
  double own_p = 0;
  double other_p = 0;
  Interval lead;
};

// Of `own` over all others on each of its spaces; empty where there is no
// other.
std::vector<Lead> Leads(const MethodResults& own,
                        const std::vector<MethodResults>& all);

// A row per method, best first, over the spaces that are not synthetic; then a
// row per space with the lead of the first method in `methods`.
std::string FormatComparison(const std::vector<MethodResults>& methods);

// bayesopt.least_lead_p and its interval: the least lead of the first method on
// any space. Empty where that is not the optimizer's own or there is no other.
std::vector<BenchmarkResult> ComparisonMetrics(
    const std::string& command, const std::vector<MethodResults>& methods);

}  // namespace reprise::tuner_sim

#endif  // REPRISE_TESTS_BENCHMARKS_TUNER_SIM_COMPARISON_H_
