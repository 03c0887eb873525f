#include "tests/benchmarks/tuner_sim/simulation.h"

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bayesopt/optimizer.h"
#include "bayesopt/random.h"
#include "replay/base/status_macros.h"
#include "tests/benchmarks/tuner_sim/samplers.h"

namespace reprise::tuner_sim {
namespace {

using bayesopt::Optimizer;
using bayesopt::Random;
using bayesopt::Trial;
using Clock = std::chrono::steady_clock;

constexpr double kNever = std::numeric_limits<double>::infinity();
// Proposals that ProposalMs times; more than the trials between two fits of a
// model, so that the mean has its share of them.
constexpr int kTimedProposals = 20;
// Before those: a model that meets 2,000 observations at once has to catch up.
constexpr int kUntimedProposals = 5;

double MsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin)
      .count();
}

absl::StatusOr<std::unique_ptr<Optimizer>> NewOptimizer(
    const MeasuredSpace& measured, const std::string& sampler, uint64_t seed,
    std::vector<bayesopt::Configuration> seeds) {
  Optimizer::Options options;
  ASSIGN_OR_RETURN(options.sampler, NewSampler(sampler));
  options.seed = seed;
  options.seeds = std::move(seeds);
  // The recorded programs have no default; the first in the table would be a
  // start that no seed varies.
  options.start_with_default = false;
  return Optimizer::Create(measured.space(), std::move(options));
}

std::vector<double> Samples(const Measurement& measurement, int count,
                            Random& random) {
  if (measurement.kind != v1::OUTCOME_KIND_OK) return {};
  if (count == 0) return {measurement.time_ms};
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    samples.push_back(
        measurement.samples_ms[random.Below(measurement.samples_ms.size())]);
  }
  return samples;
}

class Run {
 public:
  Run(const MeasuredSpace& measured, const SimulationOptions& options,
      uint64_t seed)
      : measured_(measured),
        options_(options),
        noise_(seed, 1),
        noise_samples_(measured.replayable() ? options.noise_samples : 0) {}

  absl::StatusOr<Simulation> Finish(Optimizer& optimizer) {
    double ask_ms = 0;
    while (Evaluations() < options_.evaluations) {
      const Clock::time_point begin = Clock::now();
      const std::vector<Trial> trials = optimizer.Ask(
          std::min(options_.batch, options_.evaluations - Evaluations()));
      ask_ms += MsSince(begin);
      if (trials.empty()) break;  // the space is used up
      for (const Trial& trial : trials) {
        RETURN_IF_ERROR(Evaluate(trial, optimizer));
      }
    }
    done_.ask_ms = ask_ms / std::max(1, Evaluations());
    const double last = done_.trace.empty() ? kNever : done_.trace.back();
    done_.trace.resize(options_.evaluations, last);
    return std::move(done_);
  }

 private:
  int Evaluations() const { return static_cast<int>(done_.trace.size()); }

  absl::Status Evaluate(const Trial& trial, Optimizer& optimizer) {
    RETURN_IF_ERROR(measured_.space()->Check(trial.configuration));
    if (!asked_.insert(measured_.space()->Hash(trial.configuration)).second) {
      return absl::InternalError(absl::StrCat(
          measured_.name(), ": trial ", trial.id, " repeats a configuration"));
    }
    const Measurement& measurement = measured_.At(trial.configuration);
    const bool ok = measurement.kind == v1::OUTCOME_KIND_OK;
    if (!ok) ++done_.failures;
    if (!ok && Evaluations() >= 50) ++done_.late_failures;
    done_.evaluated_ms.push_back(ok ? measurement.time_ms : kNever);
    RETURN_IF_ERROR(
        optimizer.Tell(trial.id, measurement.kind,
                       Samples(measurement, noise_samples_, noise_)));
    const auto best = optimizer.Best();
    done_.trace.push_back(best ? measured_.At(best->trial.configuration).time_ms
                               : kNever);
    return absl::OkStatus();
  }

  const MeasuredSpace& measured_;
  const SimulationOptions& options_;
  Random noise_;
  const int noise_samples_;
  std::set<bayesopt::ConfigurationHash> asked_;
  Simulation done_;
};

absl::Status TellRecorded(const MeasuredSpace& measured, const Trial& trial,
                          Optimizer& optimizer) {
  const Measurement& measurement = measured.At(trial.configuration);
  Random unused(0);
  return optimizer.Tell(trial.id, measurement.kind,
                        Samples(measurement, 0, unused));
}

// Random configurations, each asked for and told.
absl::Status Observe(const MeasuredSpace& measured, int count,
                     Optimizer& optimizer) {
  Random random(1);
  for (int tries = 0; count > 0; ++tries) {
    if (tries > 1'000'000) {
      return absl::ResourceExhaustedError(absl::StrCat(
          measured.name(), " has too few configurations to time proposals"));
    }
    const auto sample = measured.space()->Sample(random);
    if (!sample || !optimizer.Inject(*sample).ok()) continue;
    for (const Trial& trial : optimizer.Ask(1)) {
      RETURN_IF_ERROR(TellRecorded(measured, trial, optimizer));
    }
    --count;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Simulation> Simulate(const MeasuredSpace& measured,
                                    const SimulationOptions& options,
                                    uint64_t seed) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Optimizer> optimizer,
      NewOptimizer(measured, options.sampler, seed, options.seeds));
  return Run(measured, options, seed).Finish(*optimizer);
}

absl::StatusOr<double> ProposalMs(const MeasuredSpace& measured,
                                  const std::string& sampler,
                                  int observations) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Optimizer> optimizer,
                   NewOptimizer(measured, sampler, 1, {}));
  RETURN_IF_ERROR(
      Observe(measured, observations - kUntimedProposals - kTimedProposals / 2,
              *optimizer));
  double ms = 0;
  for (int i = -kUntimedProposals; i < kTimedProposals; ++i) {
    const Clock::time_point begin = Clock::now();
    const std::vector<Trial> trials = optimizer->Ask(1);
    if (i >= 0) ms += MsSince(begin);
    if (trials.empty()) {
      return absl::ResourceExhaustedError(
          absl::StrCat(measured.name(), " is used up"));
    }
    RETURN_IF_ERROR(TellRecorded(measured, trials.front(), *optimizer));
  }
  return ms / kTimedProposals;
}

}  // namespace reprise::tuner_sim
