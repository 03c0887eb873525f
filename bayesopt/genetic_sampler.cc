#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "bayesopt/baselines.h"
#include "bayesopt/configuration_codec.h"
#include "bayesopt/unseen.h"

namespace reprise::bayesopt {
namespace {

class GeneticSampler : public Sampler {
 public:
  explicit GeneticSampler(GeneticOptions options) : options_(options) {}

 private:
  struct Member {
    Configuration configuration;
    double cost = 0;
  };

  // The population is a function of the history.
  absl::StatusOr<std::string> DoSave() const override { return std::string(); }
  absl::Status DoRestore(const History& history,
                         std::string_view bytes) override {
    return bytes.empty() ? absl::OkStatus() : DamagedState("genetic");
  }

  std::optional<Suggestion> DoSuggest(const History& history,
                                      Random& random) override {
    Digest(*history.observations);
    if (static_cast<int>(history.next_id) <= options_.population ||
        population_.size() < 2) {
      return SuggestUnseenSample(history, random);
    }
    double mutation = options_.mutation;
    for (int i = 0; i < kUnseenTries; ++i, mutation = Wider(mutation)) {
      auto child = Child(*history.space, mutation, random);
      if (child && !history.seen(*child)) {
        return Suggestion{*std::move(child), "child"};
      }
    }
    return SuggestUnseenSample(history, random);
  }

  static double Wider(double mutation) { return mutation + 0.005; }

  void Digest(const std::vector<Observation>& observations) {
    for (; consumed_ < observations.size(); ++consumed_) {
      const Observation& seen = observations[consumed_];
      if (seen.kind != v1::OUTCOME_KIND_OK || seen.duplicate) continue;
      const auto place = std::upper_bound(
          population_.begin(), population_.end(), seen.cost,
          [](double cost, const Member& m) { return cost < m.cost; });
      population_.insert(place, {seen.configuration, seen.cost});
      if (static_cast<int>(population_.size()) > options_.population) {
        population_.pop_back();
      }
    }
  }

  // The better of two; they are in order of cost.
  const Configuration& Parent(Random& random) const {
    const uint64_t size = population_.size();
    return population_[std::min(random.Below(size), random.Below(size))]
        .configuration;
  }

  std::optional<Configuration> Child(const Space& space, double mutation,
                                     Random& random) const {
    const Configuration& mother = Parent(random);
    const Configuration& father = Parent(random);
    Configuration mixed = mother;
    for (size_t i = 0; i < mixed.values.size(); ++i) {
      if (random.Chance(0.5)) mixed.values[i] = father.values[i];
    }
    for (size_t i = 0; i < mixed.values.size(); ++i) {
      Value& value = mixed.values[i];
      if (std::holds_alternative<std::monostate>(value)) continue;
      if (!random.Chance(mutation)) continue;
      auto other = OtherValue(space.parameters()[i], value, random);
      if (other) value = *std::move(other);
    }
    // The first parameter has no conditions: this settles all after it.
    return space.With(mixed, 0, mixed.values[0]);
  }

  const GeneticOptions options_;
  size_t consumed_ = 0;             // observations looked at
  std::vector<Member> population_;  // best first
};

}  // namespace

std::unique_ptr<Sampler> NewGeneticSampler(GeneticOptions options) {
  return std::make_unique<GeneticSampler>(options);
}

}  // namespace reprise::bayesopt
