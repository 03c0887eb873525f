#include "bayesopt/feasibility.h"

#include <algorithm>
#include <set>
#include <vector>

namespace reprise::bayesopt {
namespace {

constexpr double kLeastProbability = 0.02;
// The latest examples; a forest over all of a long campaign would cost more
// than it tells.
constexpr size_t kMostExamples = 600;

RandomForest::Options ForestOptions() {
  RandomForest::Options options;
  options.bootstrap = false;  // few failures: none to lose
  options.least_leaf = 1;
  return options;
}

}  // namespace

void Feasibility::Learn(const std::vector<Example>& examples) {
  classifiers_.clear();
  const size_t first =
      examples.size() - std::min(examples.size(), kMostExamples);
  std::set<v1::OutcomeKind> kinds;
  for (size_t i = first; i < examples.size(); ++i) {
    if (examples[i].kind != v1::OUTCOME_KIND_OK) kinds.insert(examples[i].kind);
  }
  for (const v1::OutcomeKind kind : kinds) {
    std::vector<std::vector<float>> points;
    std::vector<double> targets;
    for (size_t i = first; i < examples.size(); ++i) {
      const Example& example = examples[i];
      // Another failure hides whether this one would have come.
      if (example.kind != kind && example.kind != v1::OUTCOME_KIND_OK) continue;
      points.push_back(example.point);
      targets.push_back(example.kind == kind ? 1 : 0);
    }
    Random random(examples.size(), static_cast<uint64_t>(kind));
    classifiers_[kind] = RandomForest(points, targets, ForestOptions(), random);
  }
}

double Feasibility::Probability(v1::OutcomeKind failure,
                                std::span<const float> point) const {
  const auto found = classifiers_.find(failure);
  return found == classifiers_.end() ? 0 : found->second.Predict(point).mean;
}

double Feasibility::Probability(std::span<const float> point) const {
  double probability = 1;
  for (const auto& [kind, forest] : classifiers_) {
    probability *= 1 - forest.Predict(point).mean;
  }
  return std::max(probability, kLeastProbability);
}

}  // namespace reprise::bayesopt
