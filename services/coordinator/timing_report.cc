#include "services/coordinator/timing_report.h"

#include <cmath>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "replay/engine/clock_watch.h"

namespace reprise {
namespace {

using nlohmann::ordered_json;

bool HasWallTimes(const v1::Timing& timing) {
  return timing.variant_wall_ns_size() > 0;
}

std::string WallText(const v1::Outcome& outcome) {
  const v1::Timing& timing = outcome.timing();
  if (!HasWallTimes(timing)) return "wall clock not read";
  // Other guards reject outcomes too.
  const bool agrees =
      outcome.kind() != v1::OUTCOME_KIND_REJECTED ||
      timing.wall_excess_ns() <= timing.wall_excess_allowed_ns();
  return absl::StrFormat(
      "wall clock %s (%.1f us more than beside the baseline, %.1f allowed)",
      agrees ? "agrees" : "disagrees", timing.wall_excess_ns() / 1e3,
      timing.wall_excess_allowed_ns() / 1e3);
}

std::string Pairs(int64_t count) {
  return absl::StrCat(count, count == 1 ? " pair" : " pairs");
}

// Nanoseconds, since fractions of them are noise.
ordered_json Rounded(double ns) { return std::llround(ns); }

// [baseline, variant] or [baseline, variant, baseline by the wall clock,
// variant by the wall clock] in nanoseconds, pair by pair.
ordered_json SamplesJson(const v1::Outcome& outcome) {
  ordered_json samples = ordered_json::array();
  const v1::Timing& timing = outcome.timing();
  for (int i = 0; i < outcome.baseline_ns_size(); ++i) {
    ordered_json pair = {Rounded(outcome.baseline_ns(i)),
                         Rounded(outcome.variant_ns(i))};
    if (i < timing.variant_wall_ns_size()) {
      pair.push_back(Rounded(timing.baseline_wall_ns(i)));
      pair.push_back(Rounded(timing.variant_wall_ns(i)));
    }
    samples.push_back(std::move(pair));
  }
  return samples;
}

}  // namespace

std::string L2Text(v1::L2Policy policy) {
  return policy == v1::L2_POLICY_COLD    ? "cold L2"
         : policy == v1::L2_POLICY_WARM  ? "warm L2"
         : policy == v1::L2_POLICY_DIRTY ? "dirty L2"
                                         : "caches not controlled";
}

std::string TimingText(const v1::Outcome& outcome) {
  const v1::Timing& timing = outcome.timing();
  std::vector<std::string> parts = {
      L2Text(timing.l2()), ClocksText(timing.clocks()), WallText(outcome)};
  std::set<std::string> reasons;
  for (const v1::DiscardedPair& pair : timing.discarded_pairs())
    reasons.insert(pair.reason());
  if (!reasons.empty()) {
    parts.push_back(absl::StrCat(Pairs(timing.discarded_pairs_size()),
                                 " measured again (",
                                 absl::StrJoin(reasons, "; "), ")"));
  }
  if (timing.doubtful_pairs() > 0) {
    parts.push_back(absl::StrCat("the device stayed so for ",
                                 Pairs(timing.doubtful_pairs()), " (",
                                 timing.doubt(), ")"));
  }
  return absl::StrJoin(parts, "; ");
}

ordered_json ClocksJson(const v1::ClockReport& clocks) {
  if (!clocks.unknown().empty() || clocks.samples() == 0)
    return {{"unknown", clocks.unknown()}};
  return {{"sm_mhz", {clocks.sm_mhz_low(), clocks.sm_mhz_high()}},
          {"memory_mhz", {clocks.memory_mhz_low(), clocks.memory_mhz_high()}},
          {"temperature_c", clocks.temperature_c()},
          {"power_w", clocks.power_w()},
          {"event_reasons", clocks.event_reasons()},
          {"held_down_by", SlowdownText(clocks.event_reasons())},
          {"samples", clocks.samples()}};
}

void AddSpeedup(const v1::Speedup& speedup, ordered_json* json) {
  (*json)["speedup"] = speedup.ratio();
  (*json)["speedup_ci95"] = {speedup.ci95_low(), speedup.ci95_high()};
  if (speedup.anew_low() > 0)
    (*json)["speedup_anew95"] = {speedup.anew_low(), speedup.anew_high()};
  (*json)["pairs"] = speedup.pairs();
}

ordered_json TimingJson(const v1::Outcome& outcome) {
  const v1::Timing& timing = outcome.timing();
  ordered_json json;
  json["l2"] = L2Text(timing.l2());
  json["clocks"] = ClocksJson(timing.clocks());
  if (HasWallTimes(timing)) {
    json["wall_clock"] = {
        {"excess_ns", Rounded(timing.wall_excess_ns())},
        {"allowed_ns", Rounded(timing.wall_excess_allowed_ns())}};
  }
  json["discarded_pairs"] = ordered_json::array();
  for (const v1::DiscardedPair& pair : timing.discarded_pairs()) {
    json["discarded_pairs"].push_back(
        {{"baseline_ns", Rounded(pair.baseline_ns())},
         {"variant_ns", Rounded(pair.variant_ns())},
         {"reason", pair.reason()}});
  }
  json["doubtful_pairs"] = timing.doubtful_pairs();
  if (timing.doubtful_pairs() > 0) json["doubt"] = timing.doubt();
  json["samples"] = SamplesJson(outcome);
  return json;
}

}  // namespace reprise
