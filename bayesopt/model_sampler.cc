#include "bayesopt/model_sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "bayesopt/acquisition.h"
#include "bayesopt/bandit.h"
#include "bayesopt/candidate_posterior.h"
#include "bayesopt/feasibility.h"
#include "bayesopt/random_forest.h"
#include "bayesopt/state_codec.h"
#include "bayesopt/tpe.h"

namespace reprise::bayesopt {
namespace {

// Draws among which an initial configuration is chosen.
constexpr int kSpreadDraws = 64;
// How many elites candidates come from at most.
constexpr size_t kMostElites = 16;
// Caution: the latest trials, the share of them that may fail, and what a
// greater share adds to the weight of log probabilities.
constexpr size_t kLatest = 20;
constexpr double kToleratedFailures = 0.3;
constexpr double kCautionPerShare = 20;
// Below this log expected improvement there is nothing to gain, more or less:
// differences count by their logarithm, so that feasibility decides.
constexpr double kNothingToGain = -15;

enum ArmIndex : size_t { kImprove, kExploit, kForest, kParzen, kArms };
constexpr std::array<const char*, kArms> kArmNames = {"model", "exploit",
                                                      "forest", "parzen"};

struct Candidates {
  std::vector<Configuration> configurations;
  Points points;  // with the last row 0
};

double Compressed(double log_improvement) {
  if (log_improvement >= kNothingToGain) return log_improvement;
  return kNothingToGain - std::log1p(kNothingToGain - log_improvement);
}

struct Scored {
  double score = 0;
  size_t candidate = 0;
};

class ModelSampler : public Sampler {
 public:
  explicit ModelSampler(ModelSamplerOptions options)
      : options_(std::move(options)), bandit_(Arms()) {}

 private:
  void DoPrepare(const Space& space) override;
  std::optional<Suggestion> DoSuggest(const History& history,
                                      Random& random) override;
  absl::StatusOr<std::string> DoSave() const override;
  absl::Status DoRestore(const History& history,
                         std::string_view bytes) override;

  std::vector<Bandit::Arm> Arms() const;
  void Digest(const History& history);
  std::vector<float> Encode(const Configuration& configuration);
  std::optional<Suggestion> Spread(const History& history, Random& random);
  void UpdateModel(const History& history);
  std::vector<const Configuration*> Elites(const History& history) const;
  TreeParzenEstimator Parzen(const History& history) const;
  Candidates Generate(const History& history, Random& random);
  std::optional<Configuration> FromPool(const History& history, size_t arm);
  std::optional<Configuration> FromGenerated(const History& history, size_t arm,
                                             Random& random);
  std::vector<Scored> ScoreByProcess(const CandidatePosterior& posterior,
                                     size_t arm) const;
  std::vector<Scored> ScoreByForest(const Candidates& candidates,
                                    Random& random) const;
  double Caution() const;
  std::optional<size_t> Choose(
      std::vector<Scored> scored,
      const std::function<std::vector<float>(size_t)>& point,
      const std::function<bool(size_t)>& eligible) const;

  const ModelSamplerOptions options_;
  const Space* space_ = nullptr;
  std::optional<FeatureMap> map_;
  std::optional<CandidatePool> pool_;
  CandidatePosterior pool_posterior_;
  uint64_t pool_generation_ = 0;
  std::optional<CostModel> model_;

  // Functions of the history's observations.
  size_t consumed_ = 0;
  double best_cost_ = std::numeric_limits<double>::infinity();
  Bandit bandit_;
  std::vector<CostModel::Datum> data_;  // of OK ones
  std::vector<size_t> data_observation_;
  std::vector<Feasibility::Example> examples_;  // of all
  size_t learned_ = 0;                          // of the examples
  Feasibility feasibility_;
  std::vector<CostModel::Datum> imported_;
};

std::vector<Bandit::Arm> ModelSampler::Arms() const {
  std::vector<Bandit::Arm> arms(kArms);
  for (size_t i = 1; i < kArms; ++i) {
    arms[i].least_share = options_.least_share;
    arms[i].prior_rate = 0.1 * options_.bandit_share / (kArms - 1);
  }
  return arms;
}

void ModelSampler::DoPrepare(const Space& space) {
  space_ = &space;
  map_.emplace(space, options_.statistics);
  model_.emplace(map_->group_of(), options_.cost_model);
  pool_ = CandidatePool::Build(space, *map_, options_.most_pooled);
  if (pool_) pool_posterior_.Reset(pool_->points());
}

std::vector<float> ModelSampler::Encode(const Configuration& configuration) {
  std::vector<float> point(map_->width());
  map_->Encode(configuration, point);
  return point;
}

void ModelSampler::Digest(const History& history) {
  for (; consumed_ < history.observations->size(); ++consumed_) {
    const Observation& seen = (*history.observations)[consumed_];
    const bool ok = seen.kind == v1::OUTCOME_KIND_OK;
    std::vector<float> point = Encode(seen.configuration);
    if (ok) {
      data_.push_back({point, std::log(seen.cost), seen.log_variance});
      data_observation_.push_back(consumed_);
    }
    examples_.push_back({std::move(point), seen.kind});
    const bool gained = ok && seen.cost < best_cost_;
    if (gained) best_cost_ = seen.cost;
    for (size_t arm = 0; arm < kArms; ++arm) {
      if (seen.origin == kArmNames[arm]) bandit_.Tell(arm, gained);
    }
    if (pool_) pool_->Take(*space_, seen.configuration);
  }
  if (pool_) {
    for (const Configuration* pending : history.pending) {
      pool_->Take(*space_, *pending);
    }
  }
  for (size_t i = imported_.size(); i < history.imported->size(); ++i) {
    const ImportedObservation& from = (*history.imported)[i];
    // A weight of one half is a standard deviation of 10 %.
    imported_.push_back({Encode(from.configuration), std::log(from.cost),
                         0.01 * (1 / from.weight - 1)});
  }
}

// A configuration far from all that were asked for.
std::optional<Suggestion> ModelSampler::Spread(const History& history,
                                               Random& random) {
  std::vector<std::vector<float>> known;
  for (const Feasibility::Example& example : examples_) {
    known.push_back(example.point);
  }
  for (const Configuration* pending : history.pending) {
    known.push_back(Encode(*pending));
  }
  std::optional<Configuration> best;
  double best_distance = -1;
  for (int i = 0; i < kSpreadDraws; ++i) {
    auto draw =
        pool_ ? std::optional(pool_->configuration(random.Below(pool_->size())))
              : space_->Sample(random);
    if (!draw || history.seen(*draw)) continue;
    if (known.empty()) return Suggestion{*std::move(draw), "spread"};
    const std::vector<float> point = Encode(*draw);
    double nearest = std::numeric_limits<double>::infinity();
    for (const std::vector<float>& other : known) {
      double squared = 0;
      for (size_t c = 0; c < point.size(); ++c) {
        squared += (point[c] - other[c]) * (point[c] - other[c]);
      }
      nearest = std::min(nearest, squared);
    }
    if (nearest <= best_distance) continue;
    best_distance = nearest;
    best = std::move(draw);
  }
  if (!best) return std::nullopt;
  return Suggestion{*std::move(best), "spread"};
}

void ModelSampler::UpdateModel(const History& history) {
  std::vector<std::vector<float>> pending;
  for (const Configuration* configuration : history.pending) {
    pending.push_back(Encode(*configuration));
  }
  model_->Update(data_, imported_, pending);
  const bool failed = examples_.size() > data_.size();
  if (failed && learned_ < examples_.size()) {
    feasibility_.Learn(examples_);
    learned_ = examples_.size();
  }
}

std::vector<const Configuration*> ModelSampler::Elites(
    const History& history) const {
  std::vector<size_t> order(data_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const size_t count = std::min(order.size(), kMostElites);
  std::partial_sort(order.begin(),
                    order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                    [this](size_t a, size_t b) {
                      return std::pair(data_[a].log_cost, a) <
                             std::pair(data_[b].log_cost, b);
                    });
  std::vector<const Configuration*> elites;
  for (size_t i = 0; i < count; ++i) {
    elites.push_back(
        &(*history.observations)[data_observation_[order[i]]].configuration);
  }
  return elites;
}

TreeParzenEstimator ModelSampler::Parzen(const History& history) const {
  std::vector<TreeParzenEstimator::Example> examples;
  for (const Observation& seen : *history.observations) {
    examples.push_back(
        {&seen.configuration, seen.kind == v1::OUTCOME_KIND_OK
                                  ? seen.cost
                                  : std::numeric_limits<double>::infinity()});
  }
  return TreeParzenEstimator(*space_, examples);
}

Candidates ModelSampler::Generate(const History& history, Random& random) {
  Candidates candidates;
  candidates.configurations =
      GenerateCandidates(*space_, Elites(history), Parzen(history),
                         history.seen, options_.generation, random);
  candidates.points.setZero(
      static_cast<Eigen::Index>(map_->width() + 1),
      static_cast<Eigen::Index>(candidates.configurations.size()));
  for (size_t i = 0; i < candidates.configurations.size(); ++i) {
    const std::vector<float> point = Encode(candidates.configurations[i]);
    for (size_t c = 0; c < point.size(); ++c) {
      candidates.points(static_cast<Eigen::Index>(c),
                        static_cast<Eigen::Index>(i)) = point[c];
    }
  }
  return candidates;
}

std::vector<Scored> ModelSampler::ScoreByProcess(
    const CandidatePosterior& posterior, size_t arm) const {
  std::vector<Scored> scored(posterior.candidates());
  for (size_t i = 0; i < scored.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    const double mean = posterior.mean()(at);
    const double deviation = std::sqrt(double{posterior.variance()(at)});
    scored[i] = {arm == kExploit ? -mean
                                 : Compressed(LogExpectedImprovement(
                                       mean, deviation, model_->best())),
                 i};
  }
  return scored;
}

std::vector<Scored> ModelSampler::ScoreByForest(const Candidates& candidates,
                                                Random& random) const {
  std::vector<std::vector<float>> points;
  std::vector<double> targets;
  for (const CostModel::Datum& datum : data_) {
    points.push_back(datum.point);
    targets.push_back(model_->ToTarget(datum.log_cost));
  }
  const RandomForest forest(points, targets, {}, random);
  std::vector<Scored> scored;
  std::vector<float> point(map_->width());
  for (size_t i = 0; i < candidates.configurations.size(); ++i) {
    for (size_t c = 0; c < point.size(); ++c) {
      point[c] = candidates.points(static_cast<Eigen::Index>(c),
                                   static_cast<Eigen::Index>(i));
    }
    const RandomForest::Prediction prediction = forest.Predict(point);
    scored.push_back(
        {LogExpectedImprovement(prediction.mean,
                                std::sqrt(prediction.variance + 1e-4),
                                model_->best()),
         i});
  }
  return scored;
}

// How much a probability of failing counts: more the more of the latest trials
// failed. Where nothing feasible is left to gain, expected improvement alone
// would go on trying what fails.
double ModelSampler::Caution() const {
  const size_t count = std::min(examples_.size(), kLatest);
  size_t failed = 0;
  for (size_t i = examples_.size() - count; i < examples_.size(); ++i) {
    failed += examples_[i].kind == v1::OUTCOME_KIND_OK ? 0 : 1;
  }
  const double share =
      static_cast<double>(failed) / static_cast<double>(kLatest);
  return 1 + kCautionPerShare * std::max(0.0, share - kToleratedFailures);
}

// The candidate with the highest score plus weighed log probability of coming
// out OK, among those that `eligible` takes. Candidates are looked at by
// falling score until none that follows can be better.
std::optional<size_t> ModelSampler::Choose(
    std::vector<Scored> scored,
    const std::function<std::vector<float>(size_t)>& point,
    const std::function<bool(size_t)>& eligible) const {
  const auto worse = [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score < b.score : a.candidate > b.candidate;
  };
  std::make_heap(scored.begin(), scored.end(), worse);
  const double caution = Caution();
  std::optional<Scored> best;
  for (auto end = scored.end(); end != scored.begin(); --end) {
    std::pop_heap(scored.begin(), end, worse);
    Scored next = *(end - 1);
    if (best && next.score <= best->score) break;
    if (!eligible(next.candidate)) continue;
    if (!feasibility_.empty()) {
      next.score +=
          caution * std::log(feasibility_.Probability(point(next.candidate)));
    }
    if (!best || next.score > best->score) best = next;
  }
  if (!best) return std::nullopt;
  return best->candidate;
}

std::optional<Configuration> ModelSampler::FromPool(const History& history,
                                                    size_t arm) {
  if (pool_generation_ != model_->generation()) {
    pool_generation_ = model_->generation();
    pool_posterior_.Truncate(0);
  } else {
    pool_posterior_.Truncate(model_->kept());
  }
  pool_posterior_.Update(model_->process());
  const std::optional<size_t> chosen = Choose(
      ScoreByProcess(pool_posterior_, arm),
      [this](size_t i) { return pool_->Point(i); },
      [&](size_t i) {
        return !pool_->taken(i) && !history.seen(pool_->configuration(i));
      });
  if (!chosen) return std::nullopt;
  return pool_->configuration(*chosen);
}

std::optional<Configuration> ModelSampler::FromGenerated(const History& history,
                                                         size_t arm,
                                                         Random& random) {
  Candidates candidates = Generate(history, random);
  std::vector<Scored> scored;
  if (arm == kParzen) {
    TreeParzenEstimator parzen = Parzen(history);
    for (size_t i = 0; i < candidates.configurations.size(); ++i) {
      scored.push_back({parzen.Score(candidates.configurations[i]), i});
    }
  } else if (arm == kForest) {
    scored = ScoreByForest(candidates, random);
  } else {
    CandidatePosterior posterior;
    posterior.Reset(candidates.points);
    posterior.Update(model_->process());
    scored = ScoreByProcess(posterior, arm);
  }
  const std::optional<size_t> chosen = Choose(
      std::move(scored),
      [&](size_t i) { return Encode(candidates.configurations[i]); },
      [](size_t) { return true; });
  if (!chosen) return std::nullopt;
  return std::move(candidates.configurations[*chosen]);
}

std::optional<Suggestion> ModelSampler::DoSuggest(const History& history,
                                                  Random& random) {
  Digest(history);
  if (pool_ && pool_->left() == 0) return std::nullopt;
  const size_t begun = examples_.size() + history.pending.size();
  if (begun < options_.initial || data_.size() < 2) {
    return Spread(history, random);
  }
  UpdateModel(history);
  const size_t arm = bandit_.Pick(random);
  const bool by_process = arm == kImprove || arm == kExploit;
  std::optional<Configuration> chosen =
      pool_ && by_process ? FromPool(history, arm)
                          : FromGenerated(history, arm, random);
  if (!chosen) return std::nullopt;
  return Suggestion{*std::move(chosen), kArmNames[arm]};
}

absl::StatusOr<std::string> ModelSampler::DoSave() const {
  StateWriter writer;
  writer.U64(learned_);
  model_->Save(writer);
  return writer.Take();
}

absl::Status ModelSampler::DoRestore(const History& history,
                                     std::string_view bytes) {
  StateReader reader(bytes);
  const uint64_t learned = reader.U64();
  model_->Restore(reader);
  Digest(history);
  if (!reader.ok() || !reader.AtEnd() || learned > examples_.size() ||
      !model_->Fits(data_.size(), imported_.size())) {
    return absl::InvalidArgumentError(
        "model sampler: got damaged state, expected what Save gave");
  }
  learned_ = learned;
  if (learned > 0) {
    feasibility_.Learn({examples_.begin(),
                        examples_.begin() + static_cast<ptrdiff_t>(learned)});
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Sampler> NewModelSampler(ModelSamplerOptions options) {
  return std::make_unique<ModelSampler>(std::move(options));
}

}  // namespace reprise::bayesopt
