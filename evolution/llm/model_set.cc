#include "evolution/llm/model_set.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "replay/base/check.h"

namespace reprise::evolution {
namespace {

constexpr uint64_t kLongestRest = 64;

ModelRole Other(ModelRole role) {
  return role == ModelRole::kFast ? ModelRole::kAccurate : ModelRole::kFast;
}

}  // namespace

absl::StatusOr<ModelSet> ModelSet::Create(std::vector<ModelMember> members,
                                          ModelSetOptions options) {
  std::set<std::string> names;
  for (const ModelMember& member : members) {
    if (!names.insert(member.model->name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("got two models of the name ", member.model->name()));
    }
  }
  if (members.empty()) return absl::InvalidArgumentError("got no models");
  if (!(options.busy >= 0 && options.busy < options.idle &&
        options.idle <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got idleness bounds ", options.busy, " and ",
                     options.idle, ", expected 0 <= busy < idle <= 1"));
  }
  if (!(options.cost_weight >= 0) || !(options.exploration >= 0)) {
    return absl::InvalidArgumentError(
        "expected a cost weight and an exploration that are not negative");
  }
  return ModelSet(std::move(members), options);
}

ModelSet::ModelSet(std::vector<ModelMember> members, ModelSetOptions options)
    : members_(std::move(members)),
      options_(options),
      random_(options.seed),
      bandit_(options.exploration),
      states_(members_.size()) {}

std::vector<std::string> ModelSet::Candidates(ModelRole role,
                                              bool rested) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].role != role || states_[i].out) continue;
    if (rested && states_[i].until > choices_) continue;
    names.push_back(members_[i].model->name());
  }
  return names;
}

absl::StatusOr<size_t> ModelSet::Choose(double idleness) {
  // One number for each choice, so that what is known of a model does not
  // shift the roles of later choices.
  const double unit = random_.Unit();
  const double share =
      (idleness - options_.busy) / (options_.idle - options_.busy);
  const ModelRole role = unit < share ? ModelRole::kFast : ModelRole::kAccurate;
  ++choices_;
  for (const bool rested : {true, false}) {
    for (const ModelRole candidate : {role, Other(role)}) {
      std::vector<std::string> names = Candidates(candidate, rested);
      if (names.empty()) continue;
      const std::string best = bandit_.Rank(std::move(names)).front();
      bandit_.Pull(best);
      const auto found = std::find_if(
          members_.begin(), members_.end(),
          [&](const ModelMember& m) { return m.model->name() == best; });
      return static_cast<size_t>(found - members_.begin());
    }
  }
  return absl::ResourceExhaustedError(
      "no model can be asked any more: keys, quotas or budgets are at an end");
}

double ModelSet::CheapestCost(ModelRole role) const {
  double cheapest = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].role != role || states_[i].told == 0) continue;
    cheapest = std::min(cheapest,
                        states_[i].cost / static_cast<double>(states_[i].told));
  }
  return cheapest;
}

void ModelSet::Tell(size_t index, double reward, double cost) {
  CHECK(index < members_.size());
  State& state = states_[index];
  state.failures = 0;
  ++state.told;
  state.cost += std::max(cost, 0.0);
  const double mean = state.cost / static_cast<double>(state.told);
  const double cheapest = CheapestCost(members_[index].role);
  // What costs nothing is as cheap as can be; beside it, all else is dear.
  const double ratio = mean > 0 ? cheapest / mean : 1;
  bandit_.Reward(
      members_[index].model->name(),
      reward * std::pow(std::max(ratio, 0.01), options_.cost_weight));
}

void ModelSet::TellError(size_t index, const absl::Status& status) {
  CHECK(index < members_.size());
  State& state = states_[index];
  bandit_.Forget(members_[index].model->name());
  if (absl::IsResourceExhausted(status) || absl::IsPermissionDenied(status) ||
      absl::IsNotFound(status)) {
    state.out = true;
  }
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    state.until = choices_ + 1 +
                  std::min(kLongestRest, uint64_t{1} << std::min<uint64_t>(
                                             state.failures, 6));
    ++state.failures;
  }
}

}  // namespace reprise::evolution
