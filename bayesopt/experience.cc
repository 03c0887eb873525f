#include "bayesopt/experience.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::bayesopt {
namespace {

// Caution: the latest trials, the share of them that may fail, after how many
// trials without a gain half of it, and what a greater share adds.
constexpr size_t kLatest = 20;
constexpr double kToleratedFailures = 0.3;
constexpr double kToleranceHalvesIn = 80;
constexpr double kCautionPerShare = 20;

}  // namespace

bool IsGiven(std::string_view origin) {
  return origin == "seed" || origin == "injected";
}

std::vector<float> Experience::Encode(
    const Configuration& configuration) const {
  std::vector<float> point(map_.width());
  map_.Encode(configuration, point);
  return point;
}

void Experience::Digest(const History& history, const Visitor& visit) {
  for (; consumed_ < history.observations->size(); ++consumed_) {
    const Observation& seen = (*history.observations)[consumed_];
    const bool ok = seen.kind == v1::OUTCOME_KIND_OK;
    std::vector<float> point = Encode(seen.configuration);
    if (ok) {
      costs_.push_back({point, std::log(seen.cost), seen.log_variance});
      observation_of_.push_back(consumed_);
    }
    outcomes_.push_back({std::move(point), seen.kind});
    given_ += IsGiven(seen.origin) ? 1 : 0;
    const bool gained = ok && seen.cost < best_cost_;
    if (gained) {
      best_cost_ = seen.cost;
      gained_at_ = consumed_;
    }
    visit(seen, gained);
  }
  for (size_t i = imported_.size(); i < history.imported->size(); ++i) {
    const ImportedObservation& from = (*history.imported)[i];
    // A weight of one half is a standard deviation of 10 %.
    imported_.push_back({Encode(from.configuration), std::log(from.cost),
                         0.01 * (1 / from.weight - 1)});
  }
}

std::vector<const Configuration*> Experience::Elites(const History& history,
                                                     size_t most) const {
  std::vector<size_t> order(costs_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const size_t count = std::min(order.size(), most);
  std::partial_sort(order.begin(),
                    order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                    [this](size_t a, size_t b) {
                      return std::pair(costs_[a].log_cost, a) <
                             std::pair(costs_[b].log_cost, b);
                    });
  std::vector<const Configuration*> elites;
  for (size_t i = 0; i < count; ++i) {
    elites.push_back(
        &(*history.observations)[observation_of_[order[i]]].configuration);
  }
  return elites;
}

TreeParzenEstimator Experience::Parzen(const History& history) const {
  std::vector<TreeParzenEstimator::Example> examples;
  for (const Observation& seen : *history.observations) {
    examples.push_back(
        {&seen.configuration, seen.kind == v1::OUTCOME_KIND_OK
                                  ? seen.cost
                                  : std::numeric_limits<double>::infinity()});
  }
  return {space_, examples};
}

double Experience::Caution() const {
  const size_t count = std::min(outcomes_.size(), kLatest);
  size_t failed = 0;
  for (size_t i = outcomes_.size() - count; i < outcomes_.size(); ++i) {
    failed += outcomes_[i].kind == v1::OUTCOME_KIND_OK ? 0 : 1;
  }
  const double share =
      static_cast<double>(failed) / static_cast<double>(kLatest);
  const auto in_vain = static_cast<double>(outcomes_.size() - gained_at_);
  const double tolerated =
      kToleratedFailures * std::exp2(-in_vain / kToleranceHalvesIn);
  return 1 + kCautionPerShare * std::max(0.0, share - tolerated);
}

}  // namespace reprise::bayesopt
