// Emitters propose source variants; the coordinator has them evaluated and
// tells. Terms as in pyribs: solution, objective, archive, emitter, ask/tell.
//
//   AST rewrites      evolution/move_emitter.h
//   language models   evolution/llm/llm_emitter.h
//
// Objective: log of the speed-up over the baseline; higher is better, 0 is the
// baseline.
#ifndef REPRISE_EVOLUTION_EMITTER_H_
#define REPRISE_EVOLUTION_EMITTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "evolution/source.h"
#include "reprise/v1/types.pb.h"

namespace reprise::evolution {

class Archive;

// A source variant.
struct Proposal {
  // Set by whoever asked, from 1 in the order of asking; 0 is the recorded
  // source.
  uint64_t id = 0;
  // Whole new contents of the changed files; empty: the recorded source.
  FileContents files;
  std::string emitter;
  std::string description;  // one sentence for a person
  std::vector<uint64_t> parents;
  // What the emitter needs to go on from here; opaque to others, printable.
  std::string genome;
  // Kinds of change, sorted, each once: the archive's measure.
  std::vector<std::string> kinds;
  // Results may differ in the last bits: needs a tolerance to pass.
  bool inexact = false;
  // Rests on a claim that the source alone does not prove (no aliasing, say),
  // in words; verification decides. Empty: none.
  std::string claim;
};

// What came of a proposal.
struct Evaluation {
  v1::OutcomeKind kind = v1::OUTCOME_KIND_UNSPECIFIED;
  double objective = 0;      // of the best build; meaningful where kind is OK
  double objective_low = 0;  // lower bound of its 95 % confidence interval
  std::string diagnostics;
  // All else that is known of it; null: nothing.
  std::shared_ptr<const v1::Outcome> outcome = nullptr;
};

// Not thread-safe. Deterministic: the same seed and the same sequence of calls
// give the same proposals.
class Emitter {
 public:
  virtual ~Emitter() = default;

  virtual std::string name() const = 0;

  // Up to n proposals that this emitter has not made before; fewer, at last
  // none, when it has no more. Every changed file stays within the evolvable
  // source, and kernel symbol and parameters stay.
  absl::StatusOr<std::vector<Proposal>> Ask(const Archive& archive, int n) {
    return n <= 0 ? std::vector<Proposal>() : DoAsk(archive, n);
  }

  // `proposal` with one of its changes left out, each in turn: what a winner
  // can do without. Empty where that is not known or there is only one. Needs
  // no Tell.
  absl::StatusOr<std::vector<Proposal>> Simplify(const Proposal& proposal) {
    return DoSimplify(proposal);
  }

  // In any order, at most once per proposal of this emitter. INFRASTRUCTURE
  // teaches nothing.
  void Tell(const Proposal& proposal, const Evaluation& evaluation) {
    DoTell(proposal, evaluation);
  }

 private:
  virtual absl::StatusOr<std::vector<Proposal>> DoAsk(const Archive& archive,
                                                      int n) = 0;
  virtual void DoTell(const Proposal& proposal,
                      const Evaluation& evaluation) = 0;
  virtual absl::StatusOr<std::vector<Proposal>> DoSimplify(
      const Proposal& proposal) {
    return std::vector<Proposal>();
  }
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_EMITTER_H_
