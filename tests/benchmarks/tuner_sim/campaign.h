// Many simulations, in parallel, and what they sum up to.
#ifndef REPRISE_TESTS_BENCHMARKS_TUNER_SIM_CAMPAIGN_H_
#define REPRISE_TESTS_BENCHMARKS_TUNER_SIM_CAMPAIGN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/benchmarks/tuner_sim/measured_space.h"
#include "tests/benchmarks/tuner_sim/score.h"
#include "tests/benchmarks/tuner_sim/simulation.h"

namespace reprise::tuner_sim {

enum class Group { kMeasured, kHeldOut, kSynthetic };

struct TestSpace {
  std::shared_ptr<const MeasuredSpace> measured;
  Group group = Group::kMeasured;
};

// One method on one space.
struct SpaceResult {
  std::string space;
  Group group = Group::kMeasured;
  int horizon = 0;
  int searches = 0;
  Interval p;
  std::vector<double> p_resamples;
  double optimum_at_50 = 0;
  double optimum_at_100 = 0;
  double optimum_at_220 = 0;
  double evaluations_to_95 = 0;  // median; infinity: most seeds never
  // Known for simulations only.
  double failure_share = 0;
  double late_failure_share = 0;  // after evaluation 50
  double ask_ms = 0;
};

// Sums up traces of a method on a space.
SpaceResult Summarize(const TestSpace& space, const std::vector<Trace>& traces);

// What `options` give on each space, seeds first_seed, first_seed + 1, ..., on
// `jobs` threads. `simulations`, where not null, receives them by space and
// seed.
absl::StatusOr<std::vector<SpaceResult>> RunCampaign(
    const std::vector<TestSpace>& spaces, const SimulationOptions& options,
    int seeds, uint64_t first_seed, int jobs,
    std::vector<std::vector<Simulation>>* simulations);

}  // namespace reprise::tuner_sim

#endif  // REPRISE_TESTS_BENCHMARKS_TUNER_SIM_CAMPAIGN_H_
