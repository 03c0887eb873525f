// Runs an optimizer over a measured space, the record standing in for the
// machine. Thread-safe.
#ifndef REPRISE_TESTS_BENCHMARKS_TUNER_SIM_SIMULATION_H_
#define REPRISE_TESTS_BENCHMARKS_TUNER_SIM_SIMULATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bayesopt/space.h"
#include "tests/benchmarks/tuner_sim/measured_space.h"
#include "tests/benchmarks/tuner_sim/score.h"

namespace reprise::tuner_sim {

struct SimulationOptions {
  std::string sampler = "default";  // samplers.h
  int evaluations = kMaximumHorizon;
  // Trials asked for together; all are told before the next are asked for.
  int batch = 1;
  // Samples per trial drawn from the recorded ones, where they may be replayed;
  // 0: the recorded time, exactly.
  int noise_samples = 0;
  std::vector<bayesopt::Configuration> seeds;
};

struct Simulation {
  // The recorded time of what the optimizer takes for the best.
  Trace trace;
  // Recorded time of each evaluation; infinity where it failed.
  std::vector<double> evaluated_ms;
  int failures = 0;
  int late_failures = 0;  // after evaluation 50
  double ask_ms = 0;      // mean over the trials, wall clock
};

// INTERNAL: the optimizer asked for a configuration twice or for one that is
// not in the space.
absl::StatusOr<Simulation> Simulate(const MeasuredSpace& measured,
                                    const SimulationOptions& options,
                                    uint64_t seed);

// Mean wall-clock ms of proposing one trial when about `observations` are
// known, all but the last few of them random. RESOURCE_EXHAUSTED: the space is
// too small.
absl::StatusOr<double> ProposalMs(const MeasuredSpace& measured,
                                  const std::string& sampler, int observations);

}  // namespace reprise::tuner_sim

#endif  // REPRISE_TESTS_BENCHMARKS_TUNER_SIM_SIMULATION_H_
