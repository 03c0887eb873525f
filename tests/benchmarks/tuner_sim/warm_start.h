// What a search gains from knowing the best of another device. Thread-safe.
#ifndef REPRISE_TESTS_BENCHMARKS_TUNER_SIM_WARM_START_H_
#define REPRISE_TESTS_BENCHMARKS_TUNER_SIM_WARM_START_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/benchmarks/benchmark_report.h"
#include "tests/benchmarks/tuner_sim/campaign.h"

namespace reprise::tuner_sim {

// The same kernel on two devices: spaces "KERNEL/DEVICE" of one KERNEL.
struct WarmStart {
  std::string space;
  std::string donor;
  Group group = Group::kMeasured;
  double cold_p = 0;
  double warm_p = 0;
  Interval gain;
  std::vector<double> gain_resamples;
};

// For each ordered pair, `options` with and without the donor's five fastest
// configurations as seeds; those that are not in the space are left out. The
// seeds are evaluated as any other trial.
absl::StatusOr<std::vector<WarmStart>> RunWarmStarts(
    const std::vector<TestSpace>& spaces, const SimulationOptions& options,
    int seeds, uint64_t first_seed, int jobs);

std::string FormatWarmStarts(const std::string& method,
                             const std::vector<WarmStart>& pairs);

// bayesopt.[METHOD_]warm_start_gain_p with its interval, the mean over pairs
// whose space is not held out, and ..._worst_gain_p, the least of any pair.
std::vector<BenchmarkResult> WarmStartMetrics(
    const std::string& method, const std::string& command,
    const std::vector<WarmStart>& pairs);

}  // namespace reprise::tuner_sim

#endif  // REPRISE_TESTS_BENCHMARKS_TUNER_SIM_WARM_START_H_
