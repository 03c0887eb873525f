// Several models, and which one to ask next. Where devices wait for work, a
// fast model keeps them busy; where they have enough, an accurate one makes
// better use of them. Between models of a role decides a bandit
// (evolution/bandit.h) on what they brought for their money.
//
// Deterministic: the same seed and the same calls give the same choices. Not
// thread-safe; the models themselves are called elsewhere, as often beside each
// other as is liked.
#ifndef REPRISE_EVOLUTION_LLM_MODEL_SET_H_
#define REPRISE_EVOLUTION_LLM_MODEL_SET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "evolution/bandit.h"
#include "evolution/llm/chat_model.h"
#include "evolution/random.h"

namespace reprise::evolution {

enum class ModelRole { kFast, kAccurate };

struct ModelMember {
  ChatModel* model = nullptr;  // outlives the set; names differ
  ModelRole role = ModelRole::kFast;
};

struct ModelSetOptions {
  uint64_t seed = 0;
  // Device idleness up to which accurate models are asked alone, and from which
  // fast ones are; between them, in proportion.
  double busy = 0.05;
  double idle = 0.5;
  // How much of a reward is left to a model that costs k times what the
  // cheapest of its role does: k^-cost_weight. 0: money does not matter.
  double cost_weight = 0.5;
  double exploration = 0.5;
};

class ModelSet {
 public:
  // INVALID_ARGUMENT: no models, two of one name, or options out of range.
  static absl::StatusOr<ModelSet> Create(std::vector<ModelMember> members,
                                         ModelSetOptions options = {});

  // The index of the model to ask. `idleness`: the share of the last while that
  // devices waited for work, 0 to 1. A role whose models are all out gives way
  // to the other one. Every choice is told of, once.
  // RESOURCE_EXHAUSTED: no model can be asked any more.
  absl::StatusOr<size_t> Choose(double idleness);

  // What came of a choice: `reward` from 0 to 1 (evolution/reward.h), `cost` in
  // any unit that is the same for all models, not negative.
  void Tell(size_t index, double reward, double cost);

  // The choice gave an error in place of a reply. UNAVAILABLE and
  // DEADLINE_EXCEEDED: the model is passed over for the next 1, 2, 4, ... up to
  // 64 choices, as long as there are others. RESOURCE_EXHAUSTED,
  // PERMISSION_DENIED and NOT_FOUND: for good. Others teach nothing.
  void TellError(size_t index, const absl::Status& status);

  ChatModel& model(size_t index) const { return *members_[index].model; }
  ModelRole role(size_t index) const { return members_[index].role; }
  size_t size() const { return members_.size(); }

 private:
  struct State {
    bool out = false;  // for good
    uint64_t failures = 0;
    uint64_t until = 0;  // the first choice that it takes part in again
    uint64_t told = 0;
    double cost = 0;
  };
  ModelSet(std::vector<ModelMember> members, ModelSetOptions options);
  std::vector<std::string> Candidates(ModelRole role, bool rested) const;
  double CheapestCost(ModelRole role) const;

  std::vector<ModelMember> members_;
  ModelSetOptions options_;
  Random random_;
  Bandit bandit_;
  std::vector<State> states_;
  uint64_t choices_ = 0;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_MODEL_SET_H_
