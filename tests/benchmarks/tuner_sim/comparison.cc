#include "tests/benchmarks/tuner_sim/comparison.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/benchmarks/tuner_sim/report.h"

namespace reprise::tuner_sim {
namespace {

const SpaceResult* Find(const MethodResults& method, const std::string& space) {
  for (const SpaceResult& result : method.results) {
    if (result.space == space) return &result;
  }
  return nullptr;
}

Lead LeadOver(const SpaceResult& own, const std::string& method,
              const SpaceResult& other) {
  std::vector<double> resamples;
  for (size_t i = 0; i < own.p_resamples.size(); ++i) {
    // Shifted against each other: the same draws would pair seeds that have
    // nothing in common.
    const size_t shifted = (i + 1) % other.p_resamples.size();
    resamples.push_back(own.p_resamples[i] - other.p_resamples[shifted]);
  }
  return {own.space, method, own.p.value, other.p.value,
          MeanInterval({own.p.value - other.p.value}, {resamples})};
}

struct Row {
  std::string method;
  int searches = 0;  // least of any space
  GroupMean mean;
};

std::vector<Row> Rows(const std::vector<MethodResults>& methods) {
  std::vector<Row> rows;
  for (const MethodResults& method : methods) {
    std::vector<SpaceResult> real;
    for (const SpaceResult& result : method.results) {
      if (result.group != Group::kSynthetic) real.push_back(result);
    }
    if (real.empty()) continue;
    Row& row = rows.emplace_back();
    row.method = method.method;
    row.mean = MeanOf(real);
    row.searches = real.front().searches;
    for (const SpaceResult& result : real) {
      row.searches = std::min(row.searches, result.searches);
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.mean.p.value > b.mean.p.value;
  });
  return rows;
}

}  // namespace

std::vector<Lead> Leads(const MethodResults& own,
                        const std::vector<MethodResults>& all) {
  std::vector<Lead> leads;
  for (const SpaceResult& result : own.results) {
    const SpaceResult* best = nullptr;
    std::string best_method;
    for (const MethodResults& other : all) {
      const SpaceResult* there = Find(other, result.space);
      if (other.method == own.method || there == nullptr) continue;
      if (best != nullptr && there->p.value <= best->p.value) continue;
      best = there;
      best_method = other.method;
    }
    if (best != nullptr) leads.push_back(LeadOver(result, best_method, *best));
  }
  return leads;
}

std::string FormatComparison(const std::vector<MethodResults>& methods) {
  std::string text =
      "| method | searches per space | mean P | 95 % interval | least P | @50 "
      "| "
      "@100 | @220 |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const Row& row : Rows(methods)) {
    absl::StrAppendFormat(
        &text,
        "| %s | %d | %.2f | %.2f to %.2f | %.2f | %.3f | %.3f | %.3f |\n",
        row.method, row.searches, row.mean.p.value, row.mean.p.low,
        row.mean.p.high, row.mean.min_p, row.mean.optimum_at_50,
        row.mean.optimum_at_100, row.mean.optimum_at_220);
  }
  const std::vector<Lead> leads = Leads(methods.front(), methods);
  if (leads.empty()) return text;
  absl::StrAppend(&text, "\n| space | P of ", methods.front().method,
                  " | best other | its P | lead | 95 % interval |\n"
                  "| --- | --- | --- | --- | --- | --- |\n");
  for (const Lead& lead : leads) {
    absl::StrAppendFormat(&text,
                          "| %s | %.2f | %s | %.2f | %.2f | %.2f to %.2f |\n",
                          lead.space, lead.own_p, lead.method, lead.other_p,
                          lead.lead.value, lead.lead.low, lead.lead.high);
  }
  return text;
}

std::vector<BenchmarkResult> ComparisonMetrics(
    const std::string& command, const std::vector<MethodResults>& methods) {
  const std::string& own = methods.front().method;
  const std::vector<Lead> leads = Leads(methods.front(), methods);
  if (leads.empty() || own != "default") return {};
  const Lead& least = *std::min_element(
      leads.begin(), leads.end(),
      [](const Lead& a, const Lead& b) { return a.lead.value < b.lead.value; });
  return {Metric(own, "least_lead_p", least.lead.value, "P", command),
          Metric(own, "least_lead_p_low", least.lead.low, "P", command),
          Metric(own, "least_lead_p_high", least.lead.high, "P", command)};
}

}  // namespace reprise::tuner_sim
