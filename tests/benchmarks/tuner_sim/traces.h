// Searches that other programs ran, for the same scorer: JSON, one search a
// line,
//   {"method": "optuna_tpe", "space": "gemm/RTX_3090", "seed": 3,
//    "evaluated_ms": [7.2, null, 6.9, ...]}
// where null is an evaluation that failed. Thread-safe.
#ifndef REPRISE_TESTS_BENCHMARKS_TUNER_SIM_TRACES_H_
#define REPRISE_TESTS_BENCHMARKS_TUNER_SIM_TRACES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/benchmarks/tuner_sim/campaign.h"

namespace reprise::tuner_sim {

// Traces by method and by space; each is kMaximumHorizon long, the last value
// repeated where the search ended earlier.
using Traces = std::map<std::string, std::map<std::string, std::vector<Trace>>>;

// INVALID_ARGUMENT names the line.
absl::StatusOr<Traces> ReadTraces(const std::string& path);

// One line per simulation, as ReadTraces reads it.
std::string FormatTraces(const std::string& method, const std::string& space,
                         uint64_t first_seed,
                         const std::vector<Simulation>& simulations);

}  // namespace reprise::tuner_sim

#endif  // REPRISE_TESTS_BENCHMARKS_TUNER_SIM_TRACES_H_
