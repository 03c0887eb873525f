#include "evolution/move_emitter.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "evolution/archive.h"
#include "evolution/bandit.h"
#include "evolution/random.h"

namespace reprise::evolution {
namespace {

constexpr char kName[] = "moves";
constexpr char kSeparator[] = ";";
// Tries at random before the systematic search.
constexpr int kTries = 64;
// A gain of this much in log speed-up is a full reward.
constexpr double kFullReward = 0.2;

// How often a kind of move is added at all its sites at once.
constexpr double kGroupShare = 0.25;

using State = std::vector<size_t>;  // sorted indices of moves

class MoveEmitter : public Emitter {
 public:
  MoveEmitter(EvolvableSource source, std::vector<Move> moves,
              MoveEmitterOptions options)
      : source_(std::move(source)),
        moves_(std::move(moves)),
        options_(options),
        random_(options.seed) {
    for (size_t i = 0; i < moves_.size(); ++i) {
      index_[moves_[i].key] = i;
      auto& of_kind = by_kind_[moves_[i].kind];
      if (of_kind.empty()) kinds_.push_back(moves_[i].kind);
      of_kind.push_back(i);
    }
    // The recorded source itself is no proposal.
    seen_.insert(State());
    untried_ = kinds_;
    if (!options_.singles_first) untried_.clear();
    std::reverse(untried_.begin(), untried_.end());
  }

  std::string name() const override { return kName; }

 private:
  struct Parent {
    uint64_t id = 0;
    double objective = 0;
    State state;
  };
  struct Candidate {
    State state;
    std::vector<uint64_t> parents;
    std::string arm;  // kind of the move that was added; empty: none
    double parent_objective = 0;
  };
  struct Pending {
    std::string arm;
    double parent_objective = 0;
  };

  absl::StatusOr<std::vector<Proposal>> DoAsk(const Archive& archive,
                                              int n) override;
  void DoTell(const Proposal& proposal, const Evaluation& evaluation) override;
  absl::StatusOr<std::vector<Proposal>> DoSimplify(
      const Proposal& proposal) override;

  std::vector<Parent> Parents(const Archive& archive) const;
  std::optional<State> StateOf(const Proposal& proposal) const;
  bool CanAdd(const State& state, size_t move) const;
  State AddGroup(State state, size_t move) const;
  std::optional<Candidate> Next(const std::vector<Parent>& parents);
  std::optional<Candidate> Single(const Parent& recorded);
  std::optional<Candidate> Vary(const std::vector<Parent>& parents);
  std::optional<Candidate> Add(const Parent& parent);
  std::optional<Candidate> Remove(const Parent& parent);
  std::optional<Candidate> Swap(const Parent& parent);
  std::optional<Candidate> Merge(const Parent& a, const Parent& b);
  std::optional<Candidate> Extend(const Parent& parent) const;
  std::optional<Candidate> Systematic(const std::vector<Parent>& parents) const;
  absl::StatusOr<Proposal> Build(const Candidate& candidate) const;

  const EvolvableSource source_;
  const std::vector<Move> moves_;
  const MoveEmitterOptions options_;
  Random random_;
  Bandit bandit_;
  std::map<std::string, size_t> index_;
  std::map<std::string, std::vector<size_t>> by_kind_;
  std::vector<std::string> kinds_;    // in the order of moves_
  std::vector<std::string> untried_;  // kinds not tried alone, next one last
  std::set<State> seen_;
  std::map<std::string, Pending> pending_;  // by genome
  std::map<State, Parent> told_;            // what was evaluated
};

State With(State state, size_t move) {
  state.insert(std::lower_bound(state.begin(), state.end(), move), move);
  return state;
}

std::optional<State> MoveEmitter::StateOf(const Proposal& proposal) const {
  if (proposal.files.empty()) return State();
  if (proposal.emitter != kName) return std::nullopt;
  State state;
  const std::vector<std::string> keys =
      absl::StrSplit(proposal.genome, kSeparator, absl::SkipEmpty());
  for (const std::string& key : keys) {
    const auto found = index_.find(key);
    if (found == index_.end()) return std::nullopt;
    state = With(std::move(state), found->second);
  }
  return state;
}

std::vector<MoveEmitter::Parent> MoveEmitter::Parents(
    const Archive& archive) const {
  std::vector<Parent> parents;
  bool recorded = false;
  for (const Elite* elite : archive.Ranked()) {
    auto state = StateOf(elite->solution);
    if (!state) continue;  // another emitter's
    recorded |= state->empty();
    parents.push_back({elite->solution.id, elite->objective, *state});
  }
  if (!recorded) parents.push_back({});
  return parents;
}

// Compilers take a minute over the 4,096 copies that three nested loops give,
// each unrolled by 16.
bool MoveEmitter::CanAdd(const State& state, size_t move) const {
  constexpr int kMostCopies = 128;
  int copies = std::max(moves_[move].copies, 1);
  for (const size_t other : state)
    copies =
        std::min(copies * std::max(moves_[other].copies, 1), kMostCopies + 1);
  if (copies > kMostCopies) return false;
  return std::all_of(state.begin(), state.end(), [&](size_t other) {
    return Compatible(moves_[other], moves_[move]);
  });
}

std::string ParameterOf(const Move& move) {
  return move.key.size() > move.site.size() ? move.key.substr(move.site.size())
                                            : "";
}

// `state` with `move`, and with the same kind of move at every other site that
// takes it: with the same parameter where there is such a move, else with any.
State MoveEmitter::AddGroup(State state, size_t move) const {
  const auto limit = static_cast<size_t>(options_.max_moves_per_proposal);
  const std::string parameter = ParameterOf(moves_[move]);
  state = With(std::move(state), move);
  for (const bool same : {true, false}) {
    for (const size_t other : by_kind_.at(moves_[move].kind)) {
      if (state.size() < limit &&
          (ParameterOf(moves_[other]) == parameter) == same &&
          CanAdd(state, other)) {
        state = With(std::move(state), other);
      }
    }
  }
  return state;
}

std::optional<MoveEmitter::Candidate> MoveEmitter::Single(
    const Parent& recorded) {
  while (!untried_.empty()) {
    const std::string kind = std::move(untried_.back());
    untried_.pop_back();
    const std::vector<size_t>& moves = by_kind_[kind];
    const State state = AddGroup(State(), moves[random_.Below(moves.size())]);
    if (seen_.count(state) > 0) continue;
    return Candidate{state, {recorded.id}, kind, recorded.objective};
  }
  return std::nullopt;
}

std::optional<MoveEmitter::Candidate> MoveEmitter::Add(const Parent& parent) {
  if (parent.state.size() >=
      static_cast<size_t>(options_.max_moves_per_proposal)) {
    return std::nullopt;
  }
  // The best-ranked kind that still fits, or now and then any.
  std::vector<std::string> ranked = bandit_.Rank(kinds_);
  if (random_.Unit() < 0.2) {
    std::swap(ranked[0], ranked[random_.Below(ranked.size())]);
  }
  for (const std::string& kind : ranked) {
    std::vector<size_t> fitting;
    for (const size_t move : by_kind_[kind]) {
      if (CanAdd(parent.state, move) &&
          seen_.count(With(parent.state, move)) == 0) {
        fitting.push_back(move);
      }
    }
    if (fitting.empty()) continue;
    const size_t move = fitting[random_.Below(fitting.size())];
    State state = With(parent.state, move);
    if (random_.Unit() < kGroupShare) {
      State group = AddGroup(parent.state, move);
      if (seen_.count(group) == 0) state = std::move(group);
    }
    return Candidate{std::move(state), {parent.id}, kind, parent.objective};
  }
  return std::nullopt;
}

std::optional<MoveEmitter::Candidate> MoveEmitter::Remove(
    const Parent& parent) {
  if (parent.state.size() < 2) return std::nullopt;
  State state = parent.state;
  state.erase(state.begin() + static_cast<long>(random_.Below(state.size())));
  return Candidate{state, {parent.id}, "", parent.objective};
}

std::optional<MoveEmitter::Candidate> MoveEmitter::Swap(const Parent& parent) {
  if (parent.state.empty()) return std::nullopt;
  State rest = parent.state;
  const size_t at = random_.Below(rest.size());
  const Move& old = moves_[rest[at]];
  rest.erase(rest.begin() + static_cast<long>(at));
  std::vector<size_t> others;
  for (const size_t move : by_kind_[old.kind]) {
    if (moves_[move].site == old.site && moves_[move].key != old.key &&
        CanAdd(rest, move)) {
      others.push_back(move);
    }
  }
  if (others.empty()) return std::nullopt;
  const size_t move = others[random_.Below(others.size())];
  return Candidate{With(rest, move), {parent.id}, old.kind, parent.objective};
}

std::optional<MoveEmitter::Candidate> MoveEmitter::Merge(const Parent& a,
                                                         const Parent& b) {
  State state = a.state;
  for (const size_t move : b.state) {
    if (state.size() < static_cast<size_t>(options_.max_moves_per_proposal) &&
        CanAdd(state, move)) {
      state = With(std::move(state), move);
    }
  }
  return Candidate{state, {a.id, b.id}, "", std::max(a.objective, b.objective)};
}

std::optional<MoveEmitter::Candidate> MoveEmitter::Vary(
    const std::vector<Parent>& parents) {
  for (int attempt = 0; attempt < kTries; ++attempt) {
    // Half of the time the best; else any elite, the recorded source included.
    const Parent& parent =
        parents[random_.Unit() < 0.5 ? 0 : random_.Below(parents.size())];
    const double operation = random_.Unit();
    auto candidate =
        operation < 0.6    ? Add(parent)
        : operation < 0.75 ? Swap(parent)
        : operation < 0.85
            ? Remove(parent)
            : Merge(parent, parents[random_.Below(parents.size())]);
    if (candidate && seen_.count(candidate->state) == 0) return candidate;
  }
  return std::nullopt;
}

std::optional<MoveEmitter::Candidate> MoveEmitter::Extend(
    const Parent& parent) const {
  if (parent.state.size() >=
      static_cast<size_t>(options_.max_moves_per_proposal)) {
    return std::nullopt;
  }
  for (size_t move = 0; move < moves_.size(); ++move) {
    if (!CanAdd(parent.state, move)) continue;
    State state = With(parent.state, move);
    if (seen_.count(state) > 0) continue;
    return Candidate{
        std::move(state), {parent.id}, moves_[move].kind, parent.objective};
  }
  return std::nullopt;
}

// From the elites first, then from anything that was evaluated: every set of
// compatible moves is reached in the end.
std::optional<MoveEmitter::Candidate> MoveEmitter::Systematic(
    const std::vector<Parent>& parents) const {
  for (const Parent& parent : parents) {
    if (auto candidate = Extend(parent)) return candidate;
  }
  for (const auto& [state, parent] : told_) {
    if (auto candidate = Extend(parent)) return candidate;
  }
  return std::nullopt;
}

std::optional<MoveEmitter::Candidate> MoveEmitter::Next(
    const std::vector<Parent>& parents) {
  if (moves_.empty()) return std::nullopt;
  const auto recorded =
      std::find_if(parents.begin(), parents.end(),
                   [](const Parent& parent) { return parent.state.empty(); });
  auto next = Single(*recorded);
  if (!next) next = Vary(parents);
  if (!next) next = Systematic(parents);
  return next;
}

absl::StatusOr<Proposal> MoveEmitter::Build(const Candidate& candidate) const {
  Proposal proposal;
  std::vector<const Move*> moves;
  std::vector<std::string> keys;
  std::vector<std::string> descriptions;
  std::set<std::string> kinds;
  std::set<std::string> claims;
  for (const size_t index : candidate.state) {
    const Move& move = moves_[index];
    moves.push_back(&move);
    keys.push_back(move.key);
    descriptions.push_back(move.description);
    kinds.insert(move.kind);
    if (!move.claim.empty()) claims.insert(move.claim);
    proposal.inexact |= move.inexact;
  }
  auto files = ApplyMoves(source_, moves);
  if (!files.ok()) return files.status();
  proposal.files = *std::move(files);
  proposal.emitter = kName;
  std::string sentence = absl::StrJoin(descriptions, "; ");
  if (!sentence.empty()) sentence[0] = absl::ascii_toupper(sentence[0]);
  proposal.description = absl::StrCat(sentence, ".");
  proposal.parents = candidate.parents;
  proposal.genome = absl::StrJoin(keys, kSeparator);
  proposal.kinds.assign(kinds.begin(), kinds.end());
  proposal.claim = absl::StrJoin(claims, "; ");
  return proposal;
}

absl::StatusOr<std::vector<Proposal>> MoveEmitter::DoAsk(const Archive& archive,
                                                         int n) {
  const std::vector<Parent> parents = Parents(archive);
  std::vector<Proposal> proposals;
  while (proposals.size() < static_cast<size_t>(n)) {
    auto candidate = Next(parents);
    if (!candidate) break;
    seen_.insert(candidate->state);
    auto proposal = Build(*candidate);
    if (!proposal.ok()) return proposal.status();
    if (!candidate->arm.empty()) bandit_.Pull(candidate->arm);
    pending_[proposal->genome] = {candidate->arm, candidate->parent_objective};
    proposals.push_back(*std::move(proposal));
  }
  return proposals;
}

absl::StatusOr<std::vector<Proposal>> MoveEmitter::DoSimplify(
    const Proposal& proposal) {
  std::vector<Proposal> simpler;
  const auto state = StateOf(proposal);
  if (!state || state->size() < 2) return simpler;
  for (size_t i = 0; i < state->size(); ++i) {
    State rest = *state;
    rest.erase(rest.begin() + static_cast<long>(i));
    seen_.insert(rest);
    auto built = Build({std::move(rest), {proposal.id}, "", 0});
    if (!built.ok()) return built.status();
    simpler.push_back(*std::move(built));
  }
  return simpler;
}

void MoveEmitter::DoTell(const Proposal& proposal,
                         const Evaluation& evaluation) {
  const auto found = pending_.find(proposal.genome);
  if (found == pending_.end()) return;
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  const double objective =
      evaluation.kind == v1::OUTCOME_KIND_OK ? evaluation.objective : 0;
  if (auto state = StateOf(proposal)) {
    told_[*state] = {proposal.id, objective, *state};
  }
  if (pending.arm.empty()) return;
  if (evaluation.kind == v1::OUTCOME_KIND_INFRASTRUCTURE) {
    bandit_.Forget(pending.arm);
    return;
  }
  const double gain = evaluation.kind == v1::OUTCOME_KIND_OK
                          ? (objective - pending.parent_objective) / kFullReward
                          : 0;
  bandit_.Reward(pending.arm, gain);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Emitter>> NewMoveEmitter(
    EvolvableSource source, std::vector<Move> moves,
    MoveEmitterOptions options) {
  std::set<std::string> keys;
  for (const Move& move : moves) {
    if (!keys.insert(move.key).second ||
        move.key.find(kSeparator) != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("move emitter: got key \"", move.key,
                       "\" twice or with a \";\" in it, expected distinct "
                       "keys without one"));
    }
    if (auto applied = ApplyMoves(source, {&move}); !applied.ok()) {
      return applied.status();
    }
  }
  if (!options.allow_inexact) {
    std::erase_if(moves, [](const Move& move) { return move.inexact; });
  }
  return std::make_unique<MoveEmitter>(std::move(source), std::move(moves),
                                       options);
}

}  // namespace reprise::evolution
