// The elites so far: the best source variants of each cell (evolution/cells.h),
// so that a faster variant of one sort does not push out the best of another.
//
// A first measurement is high for having been chosen for it. So an elite is
// believed only after it was measured again; from then on its objective is the
// mean of those later measurements. Where that falls below what a runner-up of
// its cell has, the two change places. Believed elites are due again after a
// number of evaluations, since devices change.
//
// The same calls give the same archive: it is restored by telling it again what
// a campaign's journal holds. An archive is of one kind of device; times of
// different ones do not compare. Names follow pyribs (archive.add,
// ArchiveStats). Not thread-safe.
#ifndef REPRISE_EVOLUTION_ARCHIVE_H_
#define REPRISE_EVOLUTION_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "evolution/cells.h"
#include "evolution/emitter.h"
#include "evolution/random.h"

namespace reprise::evolution {

struct Elite {
  bool believed() const { return remeasurements > 0; }

  Proposal solution;
  // Log speed-up: the first measurement, or the mean of the later ones.
  double objective = 0;
  std::string cell;
  std::vector<double> measures;  // one per dimension of the cells
  int remeasurements = 0;
  uint64_t measured_at = 0;  // evaluations of the archive then
};

// The order of elites: by objective, best first; ties by proposal id.
bool RanksBefore(const Elite* a, const Elite* b);

// kNew: the first of its cell; kImproveExisting: it took the place of another;
// kNotAdded: it is a runner-up at best.
enum class AddStatus { kNotAdded = 0, kImproveExisting = 1, kNew = 2 };

struct ArchiveStats {
  size_t num_elites = 0;
  // Share of cells that have an elite; 0 where there is no number of cells.
  double coverage = 0;
  // Sum over elites of (objective - qd_score_offset), and that by cell.
  double qd_score = 0;
  double norm_qd_score = 0;
  double obj_max = 0;   // 0 while empty
  double obj_mean = 0;  // 0 while empty
};

class Archive {
 public:
  struct Options {
    // Log speed-up of the worst variant worth keeping; lower ones are not
    // added.
    double qd_score_offset = -0.7;
    // Null: a cell for every set of kinds of change.
    std::shared_ptr<const Cells> cells = nullptr;
    // Runners-up of a cell that are kept.
    size_t bench = 2;
    // Evaluations after which a believed elite is due again; 0: never.
    uint64_t remeasure_after = 500;
  };
  Archive();
  explicit Archive(Options options);

  // Keeps `solution` when its cell is empty or it beats the elite there; on a
  // tie the elite stays. Counts as an evaluation. INVALID_ARGUMENT: as
  // Cells::CellOf.
  absl::StatusOr<AddStatus> Add(const Proposal& solution, double objective,
                                const std::vector<double>& measures = {});

  // Takes an elite of another archive with the same cells, with all that is
  // known of it. Not an evaluation.
  AddStatus Adopt(Elite elite);

  // Up to n elites that are to be measured again: those that are not believed
  // by objective, best first; then those measured longest ago.
  std::vector<const Elite*> DueForRemeasurement(size_t n) const;
  // What that gave. One below qd_score_offset, or not a number (it failed),
  // removes the solution. NOT_FOUND: it is in the archive no more. Counts as an
  // evaluation.
  absl::Status Remeasured(uint64_t solution_id, double objective);

  // By cell name.
  std::vector<const Elite*> elites() const;
  // As RanksBefore.
  std::vector<const Elite*> Ranked() const;
  const Elite* BestElite() const;  // nullptr: empty
  // The elite of the cell that these would be in; nullptr: none.
  absl::StatusOr<const Elite*> Retrieve(
      const std::vector<std::string>& kinds,
      const std::vector<double>& measures) const;
  // n elites, each with equal probability, with repeats; none while empty.
  std::vector<const Elite*> SampleElites(size_t n, Random& random) const;
  ArchiveStats stats() const;
  const Cells& cells() const { return *options_.cells; }
  uint64_t evaluations() const { return evaluations_; }

 private:
  // By objective, best first: the elite, then its runners-up.
  using Cell = std::vector<Elite>;

  // Puts it where its objective belongs, before or after equal ones; returns
  // its place.
  size_t Place(Cell& cell, Elite elite, bool before_equal);

  Options options_;
  std::map<std::string, Cell> cells_;  // none is empty
  uint64_t evaluations_ = 0;
};

// Those of `costs` (all of one length, lower is better) that no other is at
// least as good as in everything and better in something, e.g. of time, error
// and registers. Ascending indices; one with a NaN is never among them.
std::vector<size_t> ParetoFront(const std::vector<std::vector<double>>& costs);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_ARCHIVE_H_
