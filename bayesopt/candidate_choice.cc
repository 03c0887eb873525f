#include "bayesopt/candidate_choice.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "bayesopt/acquisition.h"
#include "bayesopt/random_forest.h"

namespace reprise::bayesopt {
namespace {

// Below this log expected improvement there is nothing to gain, more or less:
// differences count by their logarithm, so that feasibility decides.
constexpr double kNothingToGain = -15;

double Compressed(double log_improvement) {
  if (log_improvement >= kNothingToGain) return log_improvement;
  return kNothingToGain - std::log1p(kNothingToGain - log_improvement);
}

}  // namespace

std::vector<Scored> ScoreByImprovement(const CandidatePosterior& posterior,
                                       const CostModel& model) {
  std::vector<Scored> scored(posterior.candidates());
  for (size_t i = 0; i < scored.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    const double deviation = std::sqrt(double{posterior.variance()(at)});
    scored[i] = {Compressed(LogExpectedImprovement(posterior.mean()(at),
                                                   deviation, model.best())),
                 i};
  }
  return scored;
}

std::vector<Scored> ScoreByMean(const CandidatePosterior& posterior) {
  std::vector<Scored> scored(posterior.candidates());
  for (size_t i = 0; i < scored.size(); ++i) {
    scored[i] = {-double{posterior.mean()(static_cast<Eigen::Index>(i))}, i};
  }
  return scored;
}

std::vector<Scored> ScoreByForest(const Points& points,
                                  const std::vector<CostModel::Datum>& data,
                                  const CostModel& model, Random& random) {
  std::vector<std::vector<float>> known;
  std::vector<double> targets;
  for (const CostModel::Datum& datum : data) {
    known.push_back(datum.point);
    targets.push_back(model.ToTarget(datum.log_cost));
  }
  const RandomForest forest(known, targets, {}, random);
  std::vector<Scored> scored(static_cast<size_t>(points.cols()));
  std::vector<float> point(known.empty() ? 0 : known[0].size());
  for (size_t i = 0; i < scored.size(); ++i) {
    for (size_t c = 0; c < point.size(); ++c) {
      point[c] =
          points(static_cast<Eigen::Index>(c), static_cast<Eigen::Index>(i));
    }
    const RandomForest::Prediction prediction = forest.Predict(point);
    const double deviation = std::sqrt(prediction.variance + 1e-4);
    scored[i] = {
        LogExpectedImprovement(prediction.mean, deviation, model.best()), i};
  }
  return scored;
}

std::optional<size_t> Choose(
    std::vector<Scored> scored, const Feasibility& feasibility, double caution,
    const std::function<std::vector<float>(size_t)>& point,
    const std::function<bool(size_t)>& eligible) {
  const auto worse = [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score < b.score : a.candidate > b.candidate;
  };
  std::make_heap(scored.begin(), scored.end(), worse);
  std::optional<Scored> best;
  for (auto end = scored.end(); end != scored.begin(); --end) {
    std::pop_heap(scored.begin(), end, worse);
    Scored next = *(end - 1);
    if (best && next.score <= best->score) break;
    if (!eligible(next.candidate)) continue;
    if (!feasibility.empty()) {
      next.score +=
          caution * std::log(feasibility.Probability(point(next.candidate)));
    }
    if (!best || next.score > best->score) best = next;
  }
  if (!best) return std::nullopt;
  return best->candidate;
}

}  // namespace reprise::bayesopt
