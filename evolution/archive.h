// The elites so far: the best source variant of each cell. A cell is a set of
// kinds of change, so that a faster variant of one sort does not push out the
// best of another. This is the plain archive the first coordinator needs to
// pick parents; grid and CVT archives with islands take its place.
//
// Names follow pyribs (archive.add, ArchiveStats). Not thread-safe.
#ifndef REPRISE_EVOLUTION_ARCHIVE_H_
#define REPRISE_EVOLUTION_ARCHIVE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evolution/emitter.h"

namespace reprise::evolution {

struct Elite {
  Proposal solution;
  double objective = 0;
  std::string cell;
};

enum class AddStatus { kNotAdded = 0, kImproveExisting = 1, kNew = 2 };

struct ArchiveStats {
  size_t num_elites = 0;
  // Sum over elites of (objective - qd_score_offset).
  double qd_score = 0;
  double obj_max = 0;   // 0 while empty
  double obj_mean = 0;  // 0 while empty
};

class Archive {
 public:
  struct Options {
    // Log speed-up of the worst variant worth keeping; lower ones are not
    // added.
    double qd_score_offset = -0.7;
  };
  Archive();
  explicit Archive(Options options);

  // Keeps `solution` when its cell is empty or it beats the elite there. On a
  // tie the elite stays.
  AddStatus Add(const Proposal& solution, double objective);

  // By cell name.
  std::vector<const Elite*> elites() const;
  // By objective, best first; ties by proposal id.
  std::vector<const Elite*> Ranked() const;
  const Elite* BestElite() const;  // nullptr: empty
  ArchiveStats stats() const;

 private:
  Options options_;
  std::map<std::string, Elite> cells_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_ARCHIVE_H_
