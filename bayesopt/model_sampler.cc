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
#include "bayesopt/bandit.h"
#include "bayesopt/candidate_choice.h"
#include "bayesopt/candidate_posterior.h"
#include "bayesopt/configuration_codec.h"
#include "bayesopt/experience.h"
#include "bayesopt/feasibility.h"
#include "bayesopt/state_codec.h"
#include "bayesopt/tpe.h"

namespace reprise::bayesopt {
namespace {

// Draws among which an initial configuration is chosen.
constexpr int kSpreadDraws = 64;
// How many elites candidates come from at most.
constexpr size_t kMostElites = 16;

enum ArmIndex : size_t { kImprove, kExploit, kForest, kParzen, kArms };
constexpr std::array<const char*, kArms> kArmNames = {"model", "exploit",
                                                      "forest", "parzen"};

struct Candidates {
  std::vector<Configuration> configurations;
  Points points;  // with the last row 0
};

double SquaredDistance(const std::vector<float>& a,
                       const std::vector<float>& b) {
  double squared = 0;
  for (size_t c = 0; c < a.size(); ++c) {
    squared += (a[c] - b[c]) * (a[c] - b[c]);
  }
  return squared;
}

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
  bool Starting(const History& history) const;
  std::optional<Suggestion> Spread(const History& history, Random& random);
  void UpdateModel(const History& history);
  Candidates Generate(const History& history, Random& random);
  std::optional<Configuration> FromPool(const History& history, size_t arm);
  std::optional<Configuration> FromGenerated(const History& history, size_t arm,
                                             Random& random);

  const ModelSamplerOptions options_;
  const Space* space_ = nullptr;
  std::optional<FeatureMap> map_;
  std::optional<CandidatePool> pool_;
  CandidatePosterior pool_posterior_;
  uint64_t pool_generation_ = 0;
  std::optional<CostModel> model_;

  // Functions of the history's observations.
  std::optional<Experience> experience_;
  Bandit bandit_;
  size_t learned_ = 0;  // of the outcomes
  Feasibility feasibility_;
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
  experience_.emplace(space, *map_);
  model_.emplace(map_->group_of(), options_.cost_model);
  pool_ = CandidatePool::Build(space, *map_, options_.most_pooled);
  if (pool_) pool_posterior_.Reset(pool_->points());
}

void ModelSampler::Digest(const History& history) {
  experience_->Digest(history, [this](const Observation& seen, bool gained) {
    for (size_t arm = 0; arm < kArms; ++arm) {
      if (seen.origin == kArmNames[arm]) bandit_.Tell(arm, gained);
    }
    if (pool_) pool_->Take(*space_, seen.configuration);
  });
  if (!pool_) return;
  for (const PendingTrial& pending : history.pending) {
    pool_->Take(*space_, *pending.configuration);
  }
}

// Whether the initial design goes on. What others named is not of it: five
// configurations that were fast elsewhere lie close together, and would leave
// the rest of the space unknown where they are not fast here.
bool ModelSampler::Starting(const History& history) const {
  size_t begun = experience_->outcomes().size() - experience_->given();
  for (const PendingTrial& pending : history.pending) {
    begun += IsGiven(pending.origin) ? 0 : 1;
  }
  return begun < options_.initial || experience_->costs().size() < 2;
}

// A configuration far from all that were asked for.
std::optional<Suggestion> ModelSampler::Spread(const History& history,
                                               Random& random) {
  std::vector<std::vector<float>> known;
  for (const Feasibility::Example& outcome : experience_->outcomes()) {
    known.push_back(outcome.point);
  }
  for (const PendingTrial& pending : history.pending) {
    known.push_back(experience_->Encode(*pending.configuration));
  }
  std::optional<Configuration> best;
  double best_distance = -1;
  for (int i = 0; i < kSpreadDraws; ++i) {
    auto draw =
        pool_ ? std::optional(pool_->configuration(random.Below(pool_->size())))
              : space_->Sample(random);
    if (!draw || history.seen(*draw)) continue;
    if (known.empty()) return Suggestion{*std::move(draw), "spread"};
    const std::vector<float> point = experience_->Encode(*draw);
    double nearest = std::numeric_limits<double>::infinity();
    for (const std::vector<float>& other : known) {
      nearest = std::min(nearest, SquaredDistance(point, other));
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
  for (const PendingTrial& trial : history.pending) {
    pending.push_back(experience_->Encode(*trial.configuration));
  }
  model_->Update(experience_->costs(), experience_->imported(), pending);
  if (experience_->any_failed() && learned_ < experience_->outcomes().size()) {
    feasibility_.Learn(experience_->outcomes());
    learned_ = experience_->outcomes().size();
  }
}

Candidates ModelSampler::Generate(const History& history, Random& random) {
  Candidates candidates;
  candidates.configurations = GenerateCandidates(
      *space_, experience_->Elites(history, kMostElites),
      experience_->Parzen(history), history.seen, options_.generation, random);
  candidates.points.setZero(
      static_cast<Eigen::Index>(map_->width() + 1),
      static_cast<Eigen::Index>(candidates.configurations.size()));
  for (size_t i = 0; i < candidates.configurations.size(); ++i) {
    const std::vector<float> point =
        experience_->Encode(candidates.configurations[i]);
    for (size_t c = 0; c < point.size(); ++c) {
      candidates.points(static_cast<Eigen::Index>(c),
                        static_cast<Eigen::Index>(i)) = point[c];
    }
  }
  return candidates;
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
      arm == kExploit ? ScoreByMean(pool_posterior_)
                      : ScoreByImprovement(pool_posterior_, *model_),
      feasibility_, experience_->Caution(),
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
    TreeParzenEstimator parzen = experience_->Parzen(history);
    for (size_t i = 0; i < candidates.configurations.size(); ++i) {
      scored.push_back({parzen.Score(candidates.configurations[i]), i});
    }
  } else if (arm == kForest) {
    scored =
        ScoreByForest(candidates.points, experience_->costs(), *model_, random);
  } else {
    CandidatePosterior posterior;
    posterior.Reset(candidates.points);
    posterior.Update(model_->process());
    scored = arm == kExploit ? ScoreByMean(posterior)
                             : ScoreByImprovement(posterior, *model_);
  }
  const std::optional<size_t> chosen = Choose(
      std::move(scored), feasibility_, experience_->Caution(),
      [&](size_t i) {
        return experience_->Encode(candidates.configurations[i]);
      },
      [](size_t) { return true; });
  if (!chosen) return std::nullopt;
  return std::move(candidates.configurations[*chosen]);
}

std::optional<Suggestion> ModelSampler::DoSuggest(const History& history,
                                                  Random& random) {
  Digest(history);
  if (pool_ && pool_->left() == 0) return std::nullopt;
  if (Starting(history)) return Spread(history, random);
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
  const std::vector<Feasibility::Example>& outcomes = experience_->outcomes();
  if (!reader.ok() || !reader.AtEnd() || learned > outcomes.size() ||
      !model_->Fits(experience_->costs().size(),
                    experience_->imported().size())) {
    return DamagedState("model");
  }
  learned_ = learned;
  if (learned > 0) {
    feasibility_.Learn(
        {outcomes.begin(), outcomes.begin() + static_cast<ptrdiff_t>(learned)});
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<Sampler> NewModelSampler(ModelSamplerOptions options) {
  return std::make_unique<ModelSampler>(std::move(options));
}

}  // namespace reprise::bayesopt
