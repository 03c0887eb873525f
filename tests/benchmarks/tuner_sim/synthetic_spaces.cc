#include "tests/benchmarks/tuner_sim/synthetic_spaces.h"

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bayesopt/random.h"
#include "replay/base/status_macros.h"

namespace reprise::tuner_sim {
namespace {

using bayesopt::Assignment;
using bayesopt::Configuration;
using bayesopt::Parameter;
using bayesopt::Random;
using bayesopt::Space;
using bayesopt::Value;

constexpr int kSamples = 32;

double Number(const Assignment& at, const std::string& name, double absent) {
  const auto found = at.find(name);
  if (found == at.end()) return absent;
  return static_cast<double>(std::get<int64_t>(found->second));
}

bool Flag(const Assignment& at, const std::string& name) {
  const auto found = at.find(name);
  return found != at.end() && std::get<bool>(found->second);
}

double Square(double x) { return x * x; }

// Registers that a thread of such a kernel would take.
double Registers(const Assignment& at) {
  return 16 + 6 * Number(at, "tile", 1) + 3 * Number(at, "unroll", 1) +
         8 * Number(at, "stages", 1);
}

// A smooth valley (block against tile, unroll against stages), a layout that
// moves it, and a cliff where registers run out.
double ModelMs(const Assignment& at) {
  const double block = std::log2(Number(at, "block", 128));
  const double tile = Number(at, "tile", 1);
  const double unroll = std::log2(Number(at, "unroll", 1));
  const double stages = Number(at, "stages", 1);
  const std::string& layout = std::get<std::string>(at.at("layout"));
  double ideal_block = 7.5;
  double cost = 1;
  if (layout == "blocked") {
    ideal_block = 8.5;
    cost = 0.82;
  } else if (layout == "swizzled") {
    ideal_block = 6.5;
    cost = 0.75;
  } else if (layout == "column") {
    cost = 1.6;
  }
  cost += 0.05 * Square(block + 0.35 * tile - ideal_block - 1);
  cost += 0.12 * std::abs(unroll + stages - 4);
  cost += Flag(at, "prefetch") == (stages > 2) ? 0 : 0.15;
  if (Registers(at) * std::exp2(block) > 40000) cost *= 1.7;
  if (Flag(at, "vectorize")) {
    cost *= 0.9 + 0.06 * std::abs(std::log2(Number(at, "width", 1)) - 1);
  }
  return cost;
}

// 2 % of noise around the model, one in twenty samples half as long again; the
// time is their mean, as in the recorded spaces.
Measurement Measured(double model_ms, Random random) {
  Measurement measurement;
  for (int i = 0; i < kSamples; ++i) {
    double noise = 0;  // nearly normal, of deviation 1
    for (int j = 0; j < 12; ++j) noise += random.Unit();
    const double outlier = random.Chance(0.05) ? 1.5 : 1;
    measurement.samples_ms.push_back(
        static_cast<float>(model_ms * outlier * (1 + 0.02 * (noise - 6))));
  }
  measurement.time_ms = std::accumulate(measurement.samples_ms.begin(),
                                        measurement.samples_ms.end(), 0.0) /
                        kSamples;
  return measurement;
}

v1::OutcomeKind Fault(const Assignment& at, Random random) {
  if (Registers(at) * Number(at, "block", 128) > 65536) {
    return v1::OUTCOME_KIND_INVALID_LAUNCH;
  }
  if (Number(at, "stages", 1) == 4 && Flag(at, "prefetch")) {
    return v1::OUTCOME_KIND_DEVICE_FAULT;
  }
  if (std::get<std::string>(at.at("layout")) == "swizzled" &&
      static_cast<int>(Number(at, "tile", 1)) % 2 == 1) {
    return v1::OUTCOME_KIND_WRONG_RESULT;
  }
  if (Number(at, "unroll", 1) == 8 && Number(at, "tile", 1) > 6) {
    return v1::OUTCOME_KIND_TIMEOUT;
  }
  return random.Chance(0.1) ? v1::OUTCOME_KIND_DEVICE_FAULT
                            : v1::OUTCOME_KIND_OK;
}

std::vector<Parameter> TiledParameters() {
  return {
      Parameter::Ordinal("block", {32, 64, 128, 256, 512, 1024}, 128, true),
      Parameter::Integer("tile", 1, 8, 1),
      Parameter::Ordinal("unroll", {1, 2, 4, 8}, 1, true),
      Parameter::Integer("stages", 1, 4, 1),
      Parameter::Categorical(
          "layout",
          {Value(std::string("row")), Value(std::string("column")),
           Value(std::string("blocked")), Value(std::string("swizzled"))},
          Value(std::string("row"))),
      Parameter::Boolean("prefetch", false),
  };
}

absl::StatusOr<std::shared_ptr<const MeasuredSpace>> NewSpace(
    const std::string& name, std::vector<Parameter> parameters, bool faulty) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const Space> space,
                   Space::Create(std::move(parameters)));
  return MeasuredSpace::FromFunction(
      name, space, [&](const Configuration& configuration) {
        const Assignment at = space->ToAssignment(configuration);
        const uint64_t stream = space->Hash(configuration).low;
        Measurement measurement = Measured(ModelMs(at), Random(1, stream));
        if (faulty) measurement.kind = Fault(at, Random(2, stream));
        return measurement;
      });
}

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<const MeasuredSpace>>>
SyntheticSpaces() {
  std::vector<std::shared_ptr<const MeasuredSpace>> spaces;
  ASSIGN_OR_RETURN(spaces.emplace_back(),
                   NewSpace("synthetic/tiled", TiledParameters(), false));
  std::vector<Parameter> conditional = TiledParameters();
  conditional.push_back(Parameter::Boolean("vectorize", false));
  conditional.push_back(Parameter::Ordinal("width", {2, 4, 8}, 2, true)
                            .When("vectorize", {true}));
  ASSIGN_OR_RETURN(
      spaces.emplace_back(),
      NewSpace("synthetic/conditional", std::move(conditional), false));
  ASSIGN_OR_RETURN(spaces.emplace_back(),
                   NewSpace("synthetic/faulty", TiledParameters(), true));
  return spaces;
}

}  // namespace reprise::tuner_sim
