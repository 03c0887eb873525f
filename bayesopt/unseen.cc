#include "bayesopt/unseen.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace reprise::bayesopt {

std::optional<Configuration> UnseenSample(const History& history,
                                          Random& random) {
  for (int i = 0; i < kUnseenTries; ++i) {
    auto sample = history.space->Sample(random);
    if (sample && !history.seen(*sample)) return sample;
  }
  return std::nullopt;
}

std::optional<Suggestion> SuggestUnseenSample(const History& history,
                                              Random& random) {
  auto sample = UnseenSample(history, random);
  if (!sample) return std::nullopt;
  return Suggestion{*std::move(sample), "random"};
}

std::optional<Value> OtherValue(const Parameter& parameter, const Value& now,
                                Random& random) {
  if (parameter.kind == ParameterKind::kPipeline) {
    return parameter.pipelines->Neighbor(std::get<std::string>(now), random);
  }
  const uint64_t count = parameter.Cardinality();
  if (count < 2) return std::nullopt;
  const uint64_t other = random.Below(count - 1);
  return parameter.At(other < *parameter.IndexOf(now) ? other : other + 1);
}

std::optional<Configuration> Mutate(const Space& space,
                                    const Configuration& from, double chance,
                                    Random& random) {
  const std::vector<Parameter>& parameters = space.parameters();
  for (int attempt = 0; attempt < kUnseenTries; ++attempt) {
    Configuration changed = from;
    const size_t always = random.Below(parameters.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      Value& value = changed.values[i];
      if (std::holds_alternative<std::monostate>(value)) continue;
      if (i != always && !random.Chance(chance)) continue;
      if (auto other = OtherValue(parameters[i], value, random)) {
        value = *std::move(other);
      }
    }
    // The first parameter has no conditions: this settles all after it.
    auto settled = space.With(changed, 0, changed.values[0]);
    if (settled && *settled != from) return settled;
  }
  return std::nullopt;
}

}  // namespace reprise::bayesopt
