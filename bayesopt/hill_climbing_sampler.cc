#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "bayesopt/baselines.h"
#include "bayesopt/configuration_codec.h"
#include "bayesopt/unseen.h"

namespace reprise::bayesopt {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Of a parameter with more values than this, as many are tried.
constexpr uint64_t kValuesTried = 64;

class HillClimbingSampler : public Sampler {
 public:
  explicit HillClimbingSampler(HillClimbingOptions options)
      : options_(options) {}

 private:
  struct Standing {
    Configuration configuration;
    double cost = kNever;
  };

  absl::StatusOr<std::string> DoSave() const override {
    StateWriter writer;
    writer.U64(consumed_);
    WriteStanding(best_, writer);
    WriteStanding(center_, writer);
    writer.U64(climb_began_);
    writer.U64(moves_.size());
    for (const auto& [index, value] : moves_) {
      writer.U64(index);
      WriteValue(value, writer);
    }
    return writer.Take();
  }

  absl::Status DoRestore(const History& history,
                         std::string_view bytes) override {
    StateReader reader(bytes);
    consumed_ = reader.U64();
    best_ = ReadStanding(reader);
    center_ = ReadStanding(reader);
    climb_began_ = reader.U64();
    moves_.resize(reader.Count(16));
    for (auto& [index, value] : moves_) {
      index = reader.U64();
      value = ReadValue(reader);
    }
    if (reader.ok() && reader.AtEnd() &&
        consumed_ <= history.observations->size() && CanBeOf(*history.space)) {
      return absl::OkStatus();
    }
    return DamagedState("hill climbing");
  }

  static void WriteStanding(const std::optional<Standing>& standing,
                            StateWriter& writer) {
    writer.U64(standing ? 1 : 0);
    if (!standing) return;
    WriteConfiguration(standing->configuration, writer);
    writer.F64(standing->cost);
  }

  static std::optional<Standing> ReadStanding(StateReader& reader) {
    if (reader.U64() == 0) return std::nullopt;
    Standing standing;
    standing.configuration = ReadConfiguration(reader);
    standing.cost = reader.F64();
    return standing;
  }

  bool CanBeOf(const Space& space) const {
    for (const std::optional<Standing>* standing : {&best_, &center_}) {
      if (*standing && !space.Check((*standing)->configuration).ok()) {
        return false;
      }
    }
    if (!center_) return moves_.empty();
    // A move goes from the center: its parameter is active there.
    return best_ &&
           std::all_of(moves_.begin(), moves_.end(), [&](const auto& move) {
             return move.first < space.parameters().size() &&
                    space.parameters()[move.first].Contains(move.second) &&
                    !std::holds_alternative<std::monostate>(
                        center_->configuration.values[move.first]);
           });
  }

  std::optional<Suggestion> DoSuggest(const History& history,
                                      Random& random) override {
    Digest(history, random);
    if (!best_ || history.observations->size() <
                      static_cast<size_t>(options_.initial_random)) {
      return SuggestUnseenSample(history, random);
    }
    if (!center_) MoveTo(*best_, *history.space, random);
    while (!moves_.empty()) {
      auto [index, value] = std::move(moves_.back());
      moves_.pop_back();
      auto neighbor =
          history.space->With(center_->configuration, index, std::move(value));
      if (neighbor && !history.seen(*neighbor)) {
        return Suggestion{*std::move(neighbor), "neighbor"};
      }
    }
    return Restart(history, random);
  }

  // A climb moves to the best of what came since it began.
  void Digest(const History& history, Random& random) {
    std::optional<Standing> better;
    for (; consumed_ < history.observations->size(); ++consumed_) {
      const Observation& seen = (*history.observations)[consumed_];
      const bool ok = seen.kind == v1::OUTCOME_KIND_OK;
      if (ok && (!best_ || seen.cost < best_->cost)) {
        best_ = Standing{seen.configuration, seen.cost};
      }
      if (!center_ || seen.id < climb_began_) continue;
      if (!ok && seen.id == climb_began_) moves_.clear();  // a bad start
      if (ok && seen.cost < (better ? better->cost : center_->cost)) {
        better = Standing{seen.configuration, seen.cost};
      }
    }
    if (better) MoveTo(*std::move(better), *history.space, random);
  }

  void MoveTo(Standing standing, const Space& space, Random& random) {
    moves_.clear();
    for (size_t i = 0; i < space.parameters().size(); ++i) {
      const Value& now = standing.configuration.values[i];
      if (std::holds_alternative<std::monostate>(now)) continue;
      AddMoves(space.parameters()[i], i, now, random);
    }
    for (size_t i = moves_.size(); i > 1; --i) {
      std::swap(moves_[i - 1], moves_[random.Below(i)]);
    }
    center_ = std::move(standing);
  }

  void AddMoves(const Parameter& parameter, size_t index, const Value& now,
                Random& random) {
    const uint64_t count = parameter.Cardinality();
    for (uint64_t i = 0; i < std::min(count, kValuesTried); ++i) {
      std::optional<Value> value = count <= kValuesTried
                                       ? parameter.At(i)
                                       : OtherValue(parameter, now, random);
      if (value && *value != now) moves_.emplace_back(index, *std::move(value));
    }
  }

  std::optional<Suggestion> Restart(const History& history, Random& random) {
    std::optional<Configuration> start;
    if (random.Chance(options_.kick_share)) {
      start =
          Mutate(*history.space, best_->configuration, options_.kick, random);
      if (start && history.seen(*start)) start.reset();
    }
    if (!start) start = UnseenSample(history, random);
    if (!start) return std::nullopt;
    MoveTo({*start, kNever}, *history.space, random);
    climb_began_ = history.next_id;
    return Suggestion{*std::move(start), "restart"};
  }

  const HillClimbingOptions options_;
  size_t consumed_ = 0;  // observations looked at
  std::optional<Standing> best_;
  // The climb: where it stands, since which trial, and what is left to try.
  std::optional<Standing> center_;
  uint64_t climb_began_ = 0;
  std::vector<std::pair<size_t, Value>> moves_;
};

}  // namespace

std::unique_ptr<Sampler> NewHillClimbingSampler(HillClimbingOptions options) {
  return std::make_unique<HillClimbingSampler>(options);
}

}  // namespace reprise::bayesopt
