// Results as a table and as entries of a benchmark report. Thread-safe.
#ifndef REPRISE_TESTS_BENCHMARKS_TUNER_SIM_REPORT_H_
#define REPRISE_TESTS_BENCHMARKS_TUNER_SIM_REPORT_H_

#include <string>
#include <vector>

#include "tests/benchmarks/benchmark_report.h"
#include "tests/benchmarks/tuner_sim/campaign.h"

namespace reprise::tuner_sim {

// Over spaces, each weighted alike.
struct GroupMean {
  Interval p;
  double min_p = 0;
  double optimum_at_50 = 0;
  double optimum_at_100 = 0;
  double optimum_at_220 = 0;
  double ask_ms = 0;
};

// `results` is not empty.
GroupMean MeanOf(const std::vector<SpaceResult>& results);

// A line per space, and the mean of each group.
std::string FormatTable(const std::string& method,
                        const std::vector<SpaceResult>& results);

// Of the optimizer's own choice ("default"): bayesopt.mean_p and its
// confidence interval bayesopt.mean_p_{low,high}, bayesopt.min_p,
// bayesopt.optimum_at_{50,100,220} over the measured spaces,
// bayesopt.{held_out,synthetic}_mean_p, and
// bayesopt.{p,evaluations_to_95,late_failures}.SPACE. Of any other method:
// bayesopt.METHOD_p and so on, nothing per space. `variant` ("batch8_",
// "noisy_") stands before the last part of each name. Targets stand beside what
// has one.
std::vector<BenchmarkResult> Metrics(const std::string& method,
                                     const std::string& variant,
                                     const std::string& command,
                                     const std::vector<SpaceResult>& results);

// bayesopt.[METHOD_]NAME, with its target if it has one.
BenchmarkResult Metric(const std::string& method, const std::string& name,
                       double value, const std::string& unit,
                       const std::string& command);

}  // namespace reprise::tuner_sim

#endif  // REPRISE_TESTS_BENCHMARKS_TUNER_SIM_REPORT_H_
