#include "evolution/archive.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

namespace reprise::evolution {

Archive::Archive() : Archive(Options()) {}
Archive::Archive(Options options) : options_(options) {}

AddStatus Archive::Add(const Proposal& solution, double objective) {
  if (!(objective >= options_.qd_score_offset)) return AddStatus::kNotAdded;
  std::string cell = absl::StrJoin(solution.kinds, "+");
  const auto found = cells_.find(cell);
  if (found == cells_.end()) {
    Elite elite{solution, objective, cell};
    cells_.emplace(std::move(cell), std::move(elite));
    return AddStatus::kNew;
  }
  if (objective <= found->second.objective) return AddStatus::kNotAdded;
  found->second.solution = solution;
  found->second.objective = objective;
  return AddStatus::kImproveExisting;
}

std::vector<const Elite*> Archive::elites() const {
  std::vector<const Elite*> all;
  for (const auto& [cell, elite] : cells_) all.push_back(&elite);
  return all;
}

std::vector<const Elite*> Archive::Ranked() const {
  std::vector<const Elite*> ranked = elites();
  std::sort(ranked.begin(), ranked.end(), [](const Elite* a, const Elite* b) {
    if (a->objective != b->objective) return a->objective > b->objective;
    return a->solution.id < b->solution.id;
  });
  return ranked;
}

const Elite* Archive::BestElite() const {
  const std::vector<const Elite*> ranked = Ranked();
  return ranked.empty() ? nullptr : ranked.front();
}

ArchiveStats Archive::stats() const {
  ArchiveStats stats;
  stats.num_elites = cells_.size();
  if (cells_.empty()) return stats;
  double sum = 0;
  stats.obj_max = cells_.begin()->second.objective;
  for (const auto& [cell, elite] : cells_) {
    sum += elite.objective;
    stats.obj_max = std::max(stats.obj_max, elite.objective);
  }
  const auto count = static_cast<double>(cells_.size());
  stats.obj_mean = sum / count;
  stats.qd_score = sum - count * options_.qd_score_offset;
  return stats;
}

}  // namespace reprise::evolution
