#include "tests/benchmarks/tuner_sim/campaign.h"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "replay/base/status_macros.h"

namespace reprise::tuner_sim {
namespace {

constexpr int kResamples = 1000;

void SumUpCosts(const std::vector<Simulation>& simulations,
                SpaceResult* result) {
  const auto count = static_cast<double>(simulations.size());
  for (const Simulation& simulation : simulations) {
    const auto evaluations = static_cast<double>(simulation.trace.size());
    result->failure_share += simulation.failures / evaluations / count;
    if (evaluations > 50) {
      result->late_failure_share +=
          simulation.late_failures / (evaluations - 50) / count;
    }
    result->ask_ms += simulation.ask_ms / count;
  }
}

}  // namespace

SpaceResult Summarize(const TestSpace& space,
                      const std::vector<Trace>& traces) {
  const MeasuredSpace& measured = *space.measured;
  const Scorer scorer(measured.times_ms(), measured.size());
  SpaceResult result;
  result.space = measured.name();
  result.group = space.group;
  result.horizon = scorer.horizon();
  result.searches = static_cast<int>(traces.size());
  result.p_resamples = scorer.Bootstrap(traces, kResamples, 1);
  result.p = MeanInterval({scorer.Score(traces)}, {result.p_resamples});
  result.optimum_at_50 = scorer.OptimumFraction(traces, 50);
  result.optimum_at_100 = scorer.OptimumFraction(traces, 100);
  result.optimum_at_220 = scorer.OptimumFraction(traces, 220);
  result.evaluations_to_95 = scorer.EvaluationsTo(traces, 0.95);
  return result;
}

absl::StatusOr<std::vector<SpaceResult>> RunCampaign(
    const std::vector<TestSpace>& spaces, const SimulationOptions& options,
    int seeds, uint64_t first_seed, int jobs,
    std::vector<std::vector<Simulation>>* simulations) {
  std::vector<std::vector<Simulation>> done(spaces.size(),
                                            std::vector<Simulation>(seeds));
  std::vector<absl::Status> statuses(spaces.size() * seeds);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t task = next++; task < statuses.size(); task = next++) {
      const size_t space = task / seeds;
      const size_t seed = task % seeds;
      auto simulation =
          Simulate(*spaces[space].measured, options, first_seed + seed);
      statuses[task] = simulation.status();
      if (simulation.ok()) done[space][seed] = *std::move(simulation);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);

  std::vector<SpaceResult> results;
  for (size_t i = 0; i < spaces.size(); ++i) {
    std::vector<Trace> traces;
    for (const Simulation& simulation : done[i]) {
      traces.push_back(simulation.trace);
    }
    results.push_back(Summarize(spaces[i], traces));
    SumUpCosts(done[i], &results.back());
  }
  if (simulations != nullptr) *simulations = std::move(done);
  return results;
}

}  // namespace reprise::tuner_sim
