#include "tests/benchmarks/tuner_sim/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace reprise::tuner_sim {
namespace {

const std::map<std::string, std::string>& Targets() {
  static const auto* targets = new std::map<std::string, std::string>{
      {"bayesopt.random_p", "-0.05 to 0.05"},
      {"bayesopt.mean_p", ">= 0.78"},
      {"bayesopt.batch8_mean_p", ">= 0.68"},
      {"bayesopt.min_p", ">= 0.40"},
      {"bayesopt.optimum_at_50", ">= 0.94"},
      {"bayesopt.optimum_at_100", ">= 0.975"},
      {"bayesopt.optimum_at_220", ">= 0.995"},
      {"bayesopt.warm_start_gain_p", ">= 0.05"},
      {"bayesopt.warm_start_worst_gain_p", ">= -0.10"},
      {"bayesopt.proposal_ms_200", "<= 20"},
      {"bayesopt.proposal_ms_2000", "<= 100"},
  };
  return *targets;
}

std::string Prefix(const std::string& method) {
  return method == "default" ? "bayesopt."
                             : absl::StrCat("bayesopt.", method, "_");
}

std::vector<SpaceResult> Of(Group group,
                            const std::vector<SpaceResult>& results) {
  std::vector<SpaceResult> of;
  for (const SpaceResult& result : results) {
    if (result.group == group) of.push_back(result);
  }
  return of;
}

std::string Evaluations(double median) {
  return std::isinf(median) ? std::string(">220")
                            : absl::StrFormat("%.0f", median);
}

}  // namespace

GroupMean MeanOf(const std::vector<SpaceResult>& results) {
  GroupMean mean;
  std::vector<double> values;
  std::vector<std::vector<double>> resamples;
  const auto count = static_cast<double>(results.size());
  for (const SpaceResult& result : results) {
    values.push_back(result.p.value);
    resamples.push_back(result.p_resamples);
    mean.optimum_at_50 += result.optimum_at_50 / count;
    mean.optimum_at_100 += result.optimum_at_100 / count;
    mean.optimum_at_220 += result.optimum_at_220 / count;
    mean.ask_ms += result.ask_ms / count;
  }
  mean.p = MeanInterval(values, resamples);
  mean.min_p = *std::min_element(values.begin(), values.end());
  return mean;
}

std::string FormatTable(const std::string& method,
                        const std::vector<SpaceResult>& results) {
  std::string text =
      absl::StrFormat("%-26s %7s  %6s  %-15s %5s %5s %5s %6s %6s %6s %7s\n",
                      method, "horizon", "P", "95 % interval", "@50", "@100",
                      "@220", "to 95%", "failed", "late", "ask ms");
  for (const SpaceResult& result : results) {
    absl::StrAppendFormat(
        &text,
        "%-26s %7d  %6.3f  %6.3f..%6.3f  %5.3f %5.3f %5.3f %6s %5.1f%% "
        "%5.1f%% %7.2f\n",
        result.space, result.horizon, result.p.value, result.p.low,
        result.p.high, result.optimum_at_50, result.optimum_at_100,
        result.optimum_at_220, Evaluations(result.evaluations_to_95),
        100 * result.failure_share, 100 * result.late_failure_share,
        result.ask_ms);
  }
  const std::vector<std::pair<Group, std::string>> groups = {
      {Group::kMeasured, "mean, measured"},
      {Group::kHeldOut, "mean, held out"},
      {Group::kSynthetic, "mean, synthetic"}};
  for (const auto& [group, name] : groups) {
    const std::vector<SpaceResult> of = Of(group, results);
    if (of.empty()) continue;
    const GroupMean mean = MeanOf(of);
    absl::StrAppendFormat(
        &text,
        "%-26s %7s  %6.3f  %6.3f..%6.3f  %5.3f %5.3f %5.3f %6s %6s %6s "
        "%7.2f\n",
        name, "", mean.p.value, mean.p.low, mean.p.high, mean.optimum_at_50,
        mean.optimum_at_100, mean.optimum_at_220, "", "", "", mean.ask_ms);
  }
  return text;
}

std::vector<BenchmarkResult> Metrics(const std::string& method,
                                     const std::string& variant,
                                     const std::string& command,
                                     const std::vector<SpaceResult>& results) {
  const bool own = method == "default";
  const std::string mean_p = own ? "mean_p" : "p";
  std::vector<BenchmarkResult> metrics;
  const auto add = [&](const std::string& name, double value,
                       const std::string& unit) {
    metrics.push_back(Metric(method, variant + name, value, unit, command));
  };
  const std::vector<std::pair<Group, std::string>> groups = {
      {Group::kMeasured, ""},
      {Group::kHeldOut, "held_out_"},
      {Group::kSynthetic, "synthetic_"}};
  for (const auto& [group, name] : groups) {
    const std::vector<SpaceResult> of = Of(group, results);
    if (of.empty()) continue;
    const GroupMean mean = MeanOf(of);
    add(name + mean_p, mean.p.value, "P");
    add(name + mean_p + "_low", mean.p.low, "P");
    add(name + mean_p + "_high", mean.p.high, "P");
    if (group != Group::kMeasured) continue;
    add("min_p", mean.min_p, "P");
    add("optimum_at_50", mean.optimum_at_50, "share");
    add("optimum_at_100", mean.optimum_at_100, "share");
    add("optimum_at_220", mean.optimum_at_220, "share");
  }
  if (!own) return metrics;
  for (const SpaceResult& result : results) {
    add("p." + result.space, result.p.value, "P");
    add("evaluations_to_95." + result.space,
        std::min<double>(result.evaluations_to_95, kMaximumHorizon + 1),
        "evaluations, 221: more than 220");
    add("late_failures." + result.space, result.late_failure_share,
        "share after evaluation 50");
  }
  return metrics;
}

BenchmarkResult Metric(const std::string& method, const std::string& name,
                       double value, const std::string& unit,
                       const std::string& command) {
  const std::string metric = Prefix(method) + name;
  const auto target = Targets().find(metric);
  return {metric, value, unit, target == Targets().end() ? "" : target->second,
          command};
}

}  // namespace reprise::tuner_sim
