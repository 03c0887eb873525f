#include "bayesopt/tpe.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bayesopt/pipeline.h"

namespace reprise::bayesopt {
namespace {

constexpr uint64_t kMostBins = 64;
constexpr double kGoodShare = 0.2;
constexpr size_t kLeastGood = 3;
constexpr size_t kMostGood = 25;
// What every value counts for before it was seen.
constexpr double kPrior = 0.5;
// What a neighbour of an ordered value counts for.
constexpr double kNeighbor = 0.4;
constexpr int kDrawTries = 8;

uint64_t BinsOf(const Parameter& parameter) {
  return std::min(parameter.Cardinality(), kMostBins);
}

bool IsOrdered(const Parameter& parameter) {
  return parameter.kind == ParameterKind::kOrdinal ||
         parameter.kind == ParameterKind::kInteger;
}

std::set<std::string> PassesOf(const std::string& text) {
  const auto pipeline = ParsePipeline(text);
  if (!pipeline.ok()) return {};
  const auto leaves = FlattenPipeline(*pipeline);
  return {leaves.begin(), leaves.end()};
}

}  // namespace

TreeParzenEstimator::TreeParzenEstimator(const Space& space,
                                         const std::vector<Example>& examples)
    : space_(space),
      examples_(examples),
      ratios_(space.parameters().size()),
      passes_(space.parameters().size()) {
  std::stable_sort(
      examples_.begin(), examples_.end(),
      [](const Example& a, const Example& b) { return a.cost < b.cost; });
  size_t ok = 0;
  while (ok < examples_.size() && std::isfinite(examples_[ok].cost)) ++ok;
  const auto share =
      static_cast<size_t>(kGoodShare * static_cast<double>(examples_.size()));
  good_count_ = std::min(ok, std::clamp(share, kLeastGood, kMostGood));
  for (size_t p = 0; p < space.parameters().size(); ++p) {
    if (space.parameters()[p].kind != ParameterKind::kPipeline) CountValues(p);
  }
}

std::optional<size_t> TreeParzenEstimator::Bin(size_t index,
                                               const Value& value) const {
  const Parameter& parameter = space_.parameters()[index];
  const auto at = parameter.IndexOf(value);
  if (!at) return std::nullopt;
  return static_cast<size_t>(static_cast<double>(*at) /
                             static_cast<double>(parameter.Cardinality()) *
                             static_cast<double>(BinsOf(parameter)));
}

void TreeParzenEstimator::CountValues(size_t index) {
  const Parameter& parameter = space_.parameters()[index];
  const size_t bins = BinsOf(parameter);
  std::vector<double> good(bins, kPrior);
  std::vector<double> bad(bins, kPrior);
  for (size_t i = 0; i < examples_.size(); ++i) {
    const auto bin = Bin(index, examples_[i].configuration->values[index]);
    if (!bin) continue;
    std::vector<double>& counts = i < good_count_ ? good : bad;
    counts[*bin] += 1;
    if (!IsOrdered(parameter)) continue;
    if (*bin > 0) counts[*bin - 1] += kNeighbor;
    if (*bin + 1 < bins) counts[*bin + 1] += kNeighbor;
  }
  double good_sum = 0;
  double bad_sum = 0;
  for (size_t bin = 0; bin < bins; ++bin) {
    good_sum += good[bin];
    bad_sum += bad[bin];
  }
  for (size_t bin = 0; bin < bins; ++bin) {
    ratios_[index].push_back(std::log(good[bin] / good_sum) -
                             std::log(bad[bin] / bad_sum));
  }
}

void TreeParzenEstimator::CountPasses(size_t index) {
  std::map<std::string, std::pair<double, double>> counts;
  for (size_t i = 0; i < examples_.size(); ++i) {
    const auto* text =
        std::get_if<std::string>(&examples_[i].configuration->values[index]);
    if (text == nullptr) continue;
    for (const std::string& pass : PassesOf(*text)) {
      auto& [good, bad] = counts[pass];
      (i < good_count_ ? good : bad) += 1;
    }
  }
  const double good_all = static_cast<double>(good_count_) + 2 * kPrior;
  const double bad_all =
      static_cast<double>(examples_.size() - good_count_) + 2 * kPrior;
  for (const auto& [pass, count] : counts) {
    passes_[index][pass] = std::log((count.first + kPrior) / good_all) -
                           std::log((count.second + kPrior) / bad_all);
  }
}

double TreeParzenEstimator::ScorePipeline(size_t index,
                                          const std::string& text) {
  if (passes_[index].empty()) CountPasses(index);
  double score = 0;
  for (const std::string& pass : PassesOf(text)) {
    const auto found = passes_[index].find(pass);
    if (found != passes_[index].end()) score += found->second;
  }
  return score;
}

double TreeParzenEstimator::Score(const Configuration& configuration) {
  double score = 0;
  for (size_t i = 0; i < configuration.values.size(); ++i) {
    const Value& value = configuration.values[i];
    if (std::holds_alternative<std::monostate>(value)) continue;
    if (space_.parameters()[i].kind == ParameterKind::kPipeline) {
      score += ScorePipeline(i, std::get<std::string>(value));
    } else if (const auto bin = Bin(i, value)) {
      score += ratios_[i][*bin];
    }
  }
  return score;
}

std::optional<Configuration> TreeParzenEstimator::Draw(Random& random) const {
  if (good_count_ == 0) return std::nullopt;
  const auto any = [&] {
    return examples_[random.Below(good_count_)].configuration;
  };
  Configuration draw = *any();
  for (size_t i = 0; i < draw.values.size(); ++i) {
    for (int attempt = 0; attempt < kDrawTries; ++attempt) {
      const Parameter& parameter = space_.parameters()[i];
      if (std::holds_alternative<std::monostate>(draw.values[i])) break;
      Value value = any()->values[i];
      if (parameter.kind == ParameterKind::kPipeline) {
        if (random.Chance(0.2)) value = parameter.pipelines->Sample(random);
      } else if (random.Chance(0.15)) {
        value = parameter.At(random.Below(parameter.Cardinality()));
      }
      if (std::holds_alternative<std::monostate>(value)) continue;
      auto changed = space_.With(draw, i, std::move(value));
      if (!changed) continue;
      draw = *std::move(changed);
      break;
    }
  }
  return draw;
}

}  // namespace reprise::bayesopt
