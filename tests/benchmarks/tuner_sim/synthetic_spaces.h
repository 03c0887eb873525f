// Spaces made up for what no recorded one has: conditions, and failures of
// every kind in 40 % of the configurations. Each is the model of a tiled GPU
// kernel: time falls with occupancy and reuse, and rises where they clash.
// Thread-safe; the same in every process.
#ifndef REPRISE_TESTS_BENCHMARKS_TUNER_SIM_SYNTHETIC_SPACES_H_
#define REPRISE_TESTS_BENCHMARKS_TUNER_SIM_SYNTHETIC_SPACES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/benchmarks/tuner_sim/measured_space.h"

namespace reprise::tuner_sim {

// synthetic/tiled        nothing fails
// synthetic/conditional  parameters that count only under others
// synthetic/faulty       40 % crash, hang, give wrong results or do not launch:
//                        regions of the space, and one in ten at random
absl::StatusOr<std::vector<std::shared_ptr<const MeasuredSpace>>>
SyntheticSpaces();

}  // namespace reprise::tuner_sim

#endif  // REPRISE_TESTS_BENCHMARKS_TUNER_SIM_SYNTHETIC_SPACES_H_
