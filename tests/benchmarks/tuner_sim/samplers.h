// Samplers by name, as the command line and the reports know them.
#ifndef REPRISE_TESTS_BENCHMARKS_TUNER_SIM_SAMPLERS_H_
#define REPRISE_TESTS_BENCHMARKS_TUNER_SIM_SAMPLERS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bayesopt/sampler.h"

namespace reprise::tuner_sim {

// "default" is null: what the optimizer takes by itself. INVALID_ARGUMENT:
// unknown.
absl::StatusOr<std::unique_ptr<bayesopt::Sampler>> NewSampler(
    const std::string& name);

std::vector<std::string> SamplerNames();

}  // namespace reprise::tuner_sim

#endif  // REPRISE_TESTS_BENCHMARKS_TUNER_SIM_SAMPLERS_H_
