#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "bayesopt/baselines.h"
#include "bayesopt/configuration_codec.h"
#include "bayesopt/unseen.h"

namespace reprise::bayesopt {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class AnnealingSampler : public Sampler {
 public:
  explicit AnnealingSampler(AnnealingOptions options)
      : options_(options), temperature_(options.start_temperature) {}

 private:
  absl::StatusOr<std::string> DoSave() const override {
    StateWriter writer;
    writer.U64(consumed_);
    WriteOptional(at_, writer);
    writer.F64(at_cost_);
    writer.F64(temperature_);
    return writer.Take();
  }

  absl::Status DoRestore(const History& history,
                         std::string_view bytes) override {
    StateReader reader(bytes);
    const uint64_t consumed = reader.U64();
    at_ = ReadOptional(reader);
    at_cost_ = reader.F64();
    temperature_ = reader.F64();
    if (!reader.ok() || !reader.AtEnd() ||
        consumed > history.observations->size() || !IsOf(*history.space, at_)) {
      return DamagedState("annealing");
    }
    while (consumed_ < consumed) Note(history);
    return absl::OkStatus();
  }

  std::optional<Suggestion> DoSuggest(const History& history,
                                      Random& random) override {
    Digest(history, random);
    if (!at_ || history.observations->size() <
                    static_cast<size_t>(options_.initial_random)) {
      return SuggestUnseenSample(history, random);
    }
    for (int i = 0; i < kUnseenTries; ++i) {
      auto next = Step(*history.space, random);
      if (!next) continue;
      if (!history.seen(*next)) {
        return Suggestion{*std::move(next), "neighbor"};
      }
      const auto known = costs_.find(history.space->Hash(*next));
      if (known == costs_.end()) continue;  // not told yet
      Consider(*next, known->second, random);
    }
    return SuggestUnseenSample(history, random);
  }

  std::optional<Configuration> Step(const Space& space, Random& random) const {
    return random.Chance(options_.near_share) ? space.Neighbor(*at_, random)
                                              : Mutate(space, *at_, 0, random);
  }

  void Digest(const History& history, Random& random) {
    while (consumed_ < history.observations->size()) {
      const Observation& seen = (*history.observations)[consumed_];
      const bool warming_up =
          consumed_ < static_cast<size_t>(options_.initial_random);
      const double cost = Note(history);
      if (warming_up) {
        at_ = best_;
        at_cost_ = best_cost_;
        continue;
      }
      Consider(seen.configuration, cost, random);
      Cool();
    }
  }

  // Takes the next observation into the books, whatever it means for the walk;
  // returns its cost.
  double Note(const History& history) {
    const Observation& seen = (*history.observations)[consumed_++];
    const double cost = seen.kind == v1::OUTCOME_KIND_OK ? seen.cost : kNever;
    costs_[history.space->Hash(seen.configuration)] = cost;
    if (cost < best_cost_) {
      best_ = seen.configuration;
      best_cost_ = cost;
    }
    return cost;
  }

  void Consider(const Configuration& next, double cost, Random& random) {
    if (std::isinf(cost)) return;
    const double relative = cost / at_cost_ - 1;
    if (at_ && relative > 0 &&
        !random.Chance(std::exp(-relative / temperature_))) {
      return;
    }
    at_ = next;
    at_cost_ = cost;
  }

  void Cool() {
    temperature_ *= options_.cooling;
    if (temperature_ > options_.end_temperature) return;
    temperature_ = options_.start_temperature;
    at_ = best_;
    at_cost_ = best_cost_;
  }

  const AnnealingOptions options_;
  size_t consumed_ = 0;  // observations looked at
  std::map<ConfigurationHash, double> costs_;
  std::optional<Configuration> best_;
  double best_cost_ = kNever;
  std::optional<Configuration> at_;
  double at_cost_ = kNever;
  double temperature_;
};

}  // namespace

std::unique_ptr<Sampler> NewAnnealingSampler(AnnealingOptions options) {
  return std::make_unique<AnnealingSampler>(options);
}

}  // namespace reprise::bayesopt
