#include "tests/benchmarks/tuner_sim/samplers.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bayesopt/baselines.h"

namespace reprise::tuner_sim {
namespace {

using Factory = std::function<std::unique_ptr<bayesopt::Sampler>()>;

// A new sampler is added here, and nowhere else.
const std::map<std::string, Factory>& Factories() {
  static const auto* factories = new std::map<std::string, Factory>{
      {"annealing", [] { return bayesopt::NewAnnealingSampler(); }},
      {"default", [] { return nullptr; }},
      {"genetic", [] { return bayesopt::NewGeneticSampler(); }},
      {"hill_climbing", [] { return bayesopt::NewHillClimbingSampler(); }},
      {"local_search", [] { return bayesopt::NewLocalSearchSampler(); }},
      {"random", [] { return bayesopt::NewRandomSampler(); }},
  };
  return *factories;
}

}  // namespace

absl::StatusOr<std::unique_ptr<bayesopt::Sampler>> NewSampler(
    const std::string& name) {
  const auto found = Factories().find(name);
  if (found != Factories().end()) return found->second();
  return absl::InvalidArgumentError(
      absl::StrCat("got the sampler \"", name, "\", expected one of ",
                   absl::StrJoin(SamplerNames(), ", ")));
}

std::vector<std::string> SamplerNames() {
  std::vector<std::string> names;
  for (const auto& [name, factory] : Factories()) names.push_back(name);
  return names;
}

}  // namespace reprise::tuner_sim
