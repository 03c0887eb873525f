// Several archives that evolve apart, so that one lucky line of descent does
// not take over everything, and exchange elites now and then.
//
// - Migration: an island's best elites are copied to the next one (ring) or to
//   any other (random), after a number of its evaluations or a time. What came
//   by migration does not migrate on from there: one program would soon be
//   everywhere.
// - Stagnation: an island whose best did not improve for a number of its
//   evaluations starts anew from the best elite of all. The island that has
//   that elite goes on, so that nothing better is lost.
// - Staleness: evaluations come back long after they were asked for. A proposal
//   whose island has taken in too many elites since, or started anew, is not
//   worth evaluating. What was evaluated is never thrown away.
//
// Deterministic: the same seed and the same calls give the same decisions, so
// that telling a journal again restores them. Not thread-safe.
#ifndef REPRISE_EVOLUTION_ISLANDS_H_
#define REPRISE_EVOLUTION_ISLANDS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "evolution/archive.h"
#include "evolution/emitter.h"
#include "evolution/random.h"

namespace reprise::evolution {

// How parents are chosen: each with a probability in proportion.
struct ParentWeights {
  double fitness = 0.6;  // in proportion to the rank by objective
  double novelty = 0.2;  // of those that were parents least often, any
  double recency = 0.2;  // in proportion to the rank by age, the youngest first
};

class Islands {
 public:
  enum class Topology { kRing, kRandom };
  struct Options {
    int islands = 4;
    Archive::Options archive = {};
    ParentWeights parents = {};
    Topology topology = Topology::kRing;
    uint64_t migrate_after = 50;  // evaluations of an island; 0: not by them
    absl::Duration migrate_every = absl::InfiniteDuration();
    size_t migrants = 1;
    uint64_t restart_after =
        200;  // evaluations without a better best; 0: never
    uint64_t most_overtaken = 32;  // elites an island took in meanwhile
    uint64_t seed = 0;
  };

  // Of one proposal, from when it is asked for until it is told.
  struct Ticket {
    size_t island = 0;
    uint64_t accepted = 0;
    uint64_t restarts = 0;
  };

  // What telling an outcome brought about.
  struct Effects {
    AddStatus status = AddStatus::kNotAdded;
    size_t migrated = 0;  // elites that the other island kept
    bool restarted = false;
  };

  // INVALID_ARGUMENT: no island, or weights that are negative or all 0.
  static absl::StatusOr<std::unique_ptr<Islands>> Create(Options options);

  size_t size() const { return islands_.size(); }
  const Archive& archive(size_t island) const {
    return islands_[island].archive;
  }

  // For the next proposal: the island with the fewest evaluations, those under
  // way included; the first of several.
  Ticket Next();
  // A proposal that came to nothing before it was evaluated.
  void Drop(const Ticket& ticket);
  // Whether evaluating it is no longer worth while.
  bool IsStale(const Ticket& ticket) const;

  // A parent from the island's elites; nullptr: it has none. The pointer holds
  // until the next call that is not const.
  const Elite* ChooseParent(size_t island);

  // Tells an evaluation that came out OK; then migrates and starts anew where
  // that is due at `now`. As Archive::Add.
  absl::StatusOr<Effects> Tell(const Ticket& ticket, const Proposal& solution,
                               double objective,
                               const std::vector<double>& measures,
                               absl::Time now);
  // An evaluation that failed counts as well.
  Effects TellFailure(const Ticket& ticket, absl::Time now);

  // Of all islands, each once: those that are not believed by objective, best
  // first; then the others that are due.
  std::vector<const Elite*> DueForRemeasurement(size_t n) const;
  // On every island that has it. NOT_FOUND: none has.
  absl::Status Remeasured(uint64_t solution_id, double objective);

  // Of all islands, as RanksBefore; an elite that several have comes once.
  std::vector<const Elite*> Ranked() const;
  const Elite* BestElite() const;  // nullptr: there is none

 private:
  struct Island {
    Archive archive;
    uint64_t under_way = 0;
    uint64_t evaluations = 0;
    uint64_t accepted = 0;  // elites, in all
    uint64_t restarts = 0;
    uint64_t migrated_at = 0;  // evaluations then
    std::optional<absl::Time> migrated_time;
    uint64_t improved_at = 0;    // evaluations when the best became better
    std::optional<double> best;  // of the archive
    std::set<uint64_t> immigrants;
    std::map<uint64_t, uint64_t> children;  // by parent
  };

  explicit Islands(Options options);

  Effects AfterEvaluation(size_t index, absl::Time now);
  void NoteBest(Island& island);
  bool MigrationIsDue(const Island& island, absl::Time now) const;
  size_t Migrate(size_t from);
  bool RestartIfStuck(size_t index);
  size_t ByRank(size_t count);

  const Options options_;
  std::vector<Island> islands_;
  Random random_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_ISLANDS_H_
