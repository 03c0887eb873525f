#include "tests/benchmarks/tuner_sim/warm_start.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "replay/base/status_macros.h"
#include "tests/benchmarks/tuner_sim/report.h"

namespace reprise::tuner_sim {
namespace {

constexpr size_t kDonated = 5;

std::string Kernel(const std::string& space) {
  return space.substr(0, space.find('/'));
}

bool IsDonor(const TestSpace& donor, const TestSpace& space) {
  const std::string& name = space.measured->name();
  return donor.measured->name() != name &&
         Kernel(donor.measured->name()) == Kernel(name) &&
         space.group != Group::kSynthetic;
}

std::vector<bayesopt::Configuration> Donated(const MeasuredSpace& donor,
                                             const MeasuredSpace& to) {
  std::vector<bayesopt::Configuration> seeds;
  for (const bayesopt::Configuration& fast : donor.Fastest(kDonated)) {
    auto seed = to.space()->FromAssignment(donor.space()->ToAssignment(fast));
    if (seed.ok()) seeds.push_back(*std::move(seed));
  }
  return seeds;
}

// Pairs whose space is not held out, or those whose space is.
Interval MeanGain(const std::vector<WarmStart>& pairs, bool held_out) {
  std::vector<double> gains;
  std::vector<std::vector<double>> resamples;
  for (const WarmStart& pair : pairs) {
    if ((pair.group == Group::kHeldOut) != held_out) continue;
    gains.push_back(pair.gain.value);
    resamples.push_back(pair.gain_resamples);
  }
  return gains.empty() ? Interval{} : MeanInterval(gains, resamples);
}

}  // namespace

absl::StatusOr<std::vector<WarmStart>> RunWarmStarts(
    const std::vector<TestSpace>& spaces, const SimulationOptions& options,
    int seeds, uint64_t first_seed, int jobs) {
  std::vector<WarmStart> pairs;
  for (const TestSpace& space : spaces) {
    std::vector<SpaceResult> cold;
    for (const TestSpace& donor : spaces) {
      if (!IsDonor(donor, space)) continue;
      if (cold.empty()) {
        ASSIGN_OR_RETURN(cold, RunCampaign({space}, options, seeds, first_seed,
                                           jobs, nullptr));
      }
      SimulationOptions warm_options = options;
      warm_options.seeds = Donated(*donor.measured, *space.measured);
      ASSIGN_OR_RETURN(
          const std::vector<SpaceResult> warm,
          RunCampaign({space}, warm_options, seeds, first_seed, jobs, nullptr));
      WarmStart& pair = pairs.emplace_back();
      pair.space = space.measured->name();
      pair.donor = donor.measured->name();
      pair.group = space.group;
      pair.cold_p = cold[0].p.value;
      pair.warm_p = warm[0].p.value;
      // The resamples pair the same seeds of both.
      for (size_t i = 0; i < warm[0].p_resamples.size(); ++i) {
        pair.gain_resamples.push_back(warm[0].p_resamples[i] -
                                      cold[0].p_resamples[i]);
      }
      pair.gain =
          MeanInterval({pair.warm_p - pair.cold_p}, {pair.gain_resamples});
    }
  }
  return pairs;
}

std::string FormatWarmStarts(const std::string& method,
                             const std::vector<WarmStart>& pairs) {
  std::string text =
      absl::StrFormat("%-26s %-26s %6s %6s  %6s  %s\n", method, "warm from",
                      "cold P", "warm P", "gain", "95 % interval");
  for (const WarmStart& pair : pairs) {
    absl::StrAppendFormat(
        &text, "%-26s %-26s %6.3f %6.3f  %6.3f  %6.3f..%6.3f%s\n", pair.space,
        pair.donor, pair.cold_p, pair.warm_p, pair.gain.value, pair.gain.low,
        pair.gain.high, pair.group == Group::kHeldOut ? "  held out" : "");
  }
  for (const bool held_out : {false, true}) {
    const Interval mean = MeanGain(pairs, held_out);
    absl::StrAppendFormat(&text, "%-26s %-26s %6s %6s  %6.3f  %6.3f..%6.3f\n",
                          held_out ? "mean, held out" : "mean, measured", "",
                          "", "", mean.value, mean.low, mean.high);
  }
  return text;
}

std::vector<BenchmarkResult> WarmStartMetrics(
    const std::string& method, const std::string& command,
    const std::vector<WarmStart>& pairs) {
  const Interval mean = MeanGain(pairs, false);
  double worst = 0;
  for (const WarmStart& pair : pairs) worst = std::min(worst, pair.gain.value);
  return {Metric(method, "warm_start_gain_p", mean.value, "P", command),
          Metric(method, "warm_start_gain_p_low", mean.low, "P", command),
          Metric(method, "warm_start_gain_p_high", mean.high, "P", command),
          Metric(method, "warm_start_worst_gain_p", worst, "P", command)};
}

}  // namespace reprise::tuner_sim
