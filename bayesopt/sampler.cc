#include "bayesopt/sampler.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "bayesopt/configuration_codec.h"
#include "bayesopt/unseen.h"

namespace reprise::bayesopt {
namespace {

class RandomSampler : public Sampler {
 private:
  absl::StatusOr<std::string> DoSave() const override { return std::string(); }
  absl::Status DoRestore(const History& history,
                         std::string_view bytes) override {
    return absl::OkStatus();
  }
  std::optional<Suggestion> DoSuggest(const History& history,
                                      Random& random) override {
    return SuggestUnseenSample(history, random);
  }
};

class LocalSearchSampler : public Sampler {
 public:
  explicit LocalSearchSampler(LocalSearchOptions options) : options_(options) {}

 private:
  absl::StatusOr<std::string> DoSave() const override {
    StateWriter writer;
    writer.U64(consumed_);
    WriteOptional(best_, writer);
    writer.F64(best_cost_);
    WriteOptional(center_, writer);
    writer.F64(center_cost_);
    writer.U64(climb_began_);
    writer.U64(static_cast<uint64_t>(stale_));
    return writer.Take();
  }

  absl::Status DoRestore(const History& history,
                         std::string_view bytes) override {
    StateReader reader(bytes);
    consumed_ = reader.U64();
    best_ = ReadOptional(reader);
    best_cost_ = reader.F64();
    center_ = ReadOptional(reader);
    center_cost_ = reader.F64();
    climb_began_ = reader.U64();
    stale_ = static_cast<int>(reader.U64());
    if (reader.ok() && reader.AtEnd() &&
        consumed_ <= history.observations->size() && (best_ || !center_) &&
        IsOf(*history.space, best_) && IsOf(*history.space, center_)) {
      return absl::OkStatus();
    }
    return DamagedState("local search");
  }

  std::optional<Suggestion> DoSuggest(const History& history,
                                      Random& random) override {
    Digest(history);
    if (consumed_ < static_cast<size_t>(options_.initial_random) || !best_ ||
        random.Chance(options_.random_share)) {
      return SuggestUnseenSample(history, random);
    }
    if (!center_) {
      center_ = best_;
      center_cost_ = best_cost_;
    }
    if (stale_ >= options_.restart_after) return Restart(history, random);
    auto neighbor = UnseenNeighbor(*center_, 1, history, random);
    if (neighbor) return Suggestion{*std::move(neighbor), "neighbor"};
    return Restart(history, random);  // all around the center is known
  }

  void Digest(const History& history) {
    for (; consumed_ < history.observations->size(); ++consumed_) {
      const Observation& seen = (*history.observations)[consumed_];
      const bool ok = seen.kind == v1::OUTCOME_KIND_OK && !seen.duplicate;
      if (ok && seen.cost < best_cost_) {
        best_ = seen.configuration;
        best_cost_ = seen.cost;
      }
      if (!center_ || seen.id < climb_began_) continue;
      if (ok && seen.cost < center_cost_) {
        center_ = seen.configuration;
        center_cost_ = seen.cost;
        stale_ = 0;
      } else {
        ++stale_;
      }
    }
  }

  // Moves `steps` or more steps away; more the longer nothing new is found.
  static std::optional<Configuration> UnseenNeighbor(const Configuration& from,
                                                     int steps,
                                                     const History& history,
                                                     Random& random) {
    for (int i = 0; i < kUnseenTries; ++i) {
      int walk = steps + (random.Chance(0.25) ? 1 : 0) + i / 32;
      std::optional<Configuration> at = from;
      for (; walk > 0 && at; --walk) at = history.space->Neighbor(*at, random);
      if (at && !history.seen(*at)) return at;
    }
    return std::nullopt;
  }

  std::optional<Suggestion> Restart(const History& history, Random& random) {
    auto start = random.Chance(0.5) ? UnseenNeighbor(*best_, 4, history, random)
                                    : UnseenSample(history, random);
    if (!start) return std::nullopt;
    center_ = *start;
    center_cost_ = std::numeric_limits<double>::infinity();
    climb_began_ = history.next_id;
    stale_ = 0;
    return Suggestion{*std::move(start), "restart"};
  }

  const LocalSearchOptions options_;
  size_t consumed_ = 0;  // observations looked at
  std::optional<Configuration> best_;
  double best_cost_ = std::numeric_limits<double>::infinity();
  // The climb: where it stands, since which trial, and for how long in vain.
  std::optional<Configuration> center_;
  double center_cost_ = std::numeric_limits<double>::infinity();
  uint64_t climb_began_ = 0;
  int stale_ = 0;
};

}  // namespace

absl::StatusOr<std::string> Sampler::DoSave() const {
  return absl::UnimplementedError("sampler: this kind cannot be saved");
}
absl::Status Sampler::DoRestore(const History& history,
                                std::string_view bytes) {
  return absl::UnimplementedError("sampler: this kind cannot be restored");
}

std::unique_ptr<Sampler> NewRandomSampler() {
  return std::make_unique<RandomSampler>();
}

std::unique_ptr<Sampler> NewLocalSearchSampler(LocalSearchOptions options) {
  return std::make_unique<LocalSearchSampler>(options);
}

}  // namespace reprise::bayesopt
