#include "evolution/archive.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::evolution {
namespace {

bool IsMeasured(const std::vector<double>& costs) {
  return std::none_of(costs.begin(), costs.end(),
                      [](double cost) { return std::isnan(cost); });
}

bool Dominates(const std::vector<double>& a, const std::vector<double>& b) {
  bool better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

}  // namespace

bool RanksBefore(const Elite* a, const Elite* b) {
  if (a->objective != b->objective) return a->objective > b->objective;
  return a->solution.id < b->solution.id;
}

Archive::Archive() : Archive(Options()) {}
Archive::Archive(Options options) : options_(std::move(options)) {
  if (options_.cells == nullptr) options_.cells = NewKindCells();
}

size_t Archive::Place(Cell& cell, Elite elite, bool before_equal) {
  const auto place =
      std::find_if(cell.begin(), cell.end(), [&](const Elite& other) {
        return elite.objective > other.objective ||
               (before_equal && elite.objective == other.objective);
      });
  const auto index = static_cast<size_t>(place - cell.begin());
  cell.insert(place, std::move(elite));
  if (cell.size() > 1 + options_.bench) cell.pop_back();
  return index;
}

absl::StatusOr<AddStatus> Archive::Add(const Proposal& solution,
                                       double objective,
                                       const std::vector<double>& measures) {
  absl::StatusOr<std::string> name =
      options_.cells->CellOf(solution.kinds, measures);
  if (!name.ok()) return name.status();
  ++evaluations_;
  if (!(objective >= options_.qd_score_offset)) return AddStatus::kNotAdded;
  Elite elite;
  elite.solution = solution;
  elite.objective = objective;
  elite.cell = *std::move(name);
  elite.measures = measures;
  return Adopt(std::move(elite));
}

AddStatus Archive::Adopt(Elite elite) {
  elite.measured_at = evaluations_;
  Cell& cell = cells_[elite.cell];
  const bool first = cell.empty();
  if (Place(cell, std::move(elite), /*before_equal=*/false) > 0)
    return AddStatus::kNotAdded;
  return first ? AddStatus::kNew : AddStatus::kImproveExisting;
}

std::vector<const Elite*> Archive::DueForRemeasurement(size_t n) const {
  std::vector<const Elite*> due;
  for (const auto& [name, cell] : cells_) {
    const Elite& elite = cell.front();
    const bool old =
        options_.remeasure_after > 0 &&
        evaluations_ - elite.measured_at >= options_.remeasure_after;
    if (!elite.believed() || old) due.push_back(&elite);
  }
  std::sort(due.begin(), due.end(), [](const Elite* a, const Elite* b) {
    if (a->believed() != b->believed()) return !a->believed();
    if (a->believed() && a->measured_at != b->measured_at)
      return a->measured_at < b->measured_at;
    return RanksBefore(a, b);
  });
  due.resize(std::min(due.size(), n));
  return due;
}

absl::Status Archive::Remeasured(uint64_t solution_id, double objective) {
  for (auto& [name, cell] : cells_) {
    const auto found = std::find_if(
        cell.begin(), cell.end(),
        [&](const Elite& elite) { return elite.solution.id == solution_id; });
    if (found == cell.end()) continue;
    ++evaluations_;
    Elite elite = std::move(*found);
    cell.erase(found);
    const double before = elite.objective * elite.remeasurements;
    ++elite.remeasurements;
    elite.objective = (before + objective) / elite.remeasurements;
    elite.measured_at = evaluations_;
    if (elite.objective >= options_.qd_score_offset)
      Place(cell, std::move(elite), /*before_equal=*/true);
    if (cell.empty()) cells_.erase(name);
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("got a measurement of solution ", solution_id,
                   ", which is no elite or runner-up of the archive any more"));
}

std::vector<const Elite*> Archive::elites() const {
  std::vector<const Elite*> all;
  for (const auto& [name, cell] : cells_) all.push_back(&cell.front());
  return all;
}

std::vector<const Elite*> Archive::Ranked() const {
  std::vector<const Elite*> ranked = elites();
  std::sort(ranked.begin(), ranked.end(), RanksBefore);
  return ranked;
}

const Elite* Archive::BestElite() const {
  const std::vector<const Elite*> all = elites();
  const auto best = std::min_element(all.begin(), all.end(), RanksBefore);
  return best == all.end() ? nullptr : *best;
}

absl::StatusOr<const Elite*> Archive::Retrieve(
    const std::vector<std::string>& kinds,
    const std::vector<double>& measures) const {
  const absl::StatusOr<std::string> name =
      options_.cells->CellOf(kinds, measures);
  if (!name.ok()) return name.status();
  const auto found = cells_.find(*name);
  return found == cells_.end() ? nullptr : &found->second.front();
}

std::vector<const Elite*> Archive::SampleElites(size_t n,
                                                Random& random) const {
  const std::vector<const Elite*> all = elites();
  std::vector<const Elite*> sampled;
  while (!all.empty() && sampled.size() < n)
    sampled.push_back(all[random.Below(all.size())]);
  return sampled;
}

ArchiveStats Archive::stats() const {
  ArchiveStats stats;
  stats.num_elites = cells_.size();
  const Elite* const best = BestElite();
  if (best == nullptr) return stats;
  stats.obj_max = best->objective;
  double sum = 0;
  for (const Elite* elite : elites()) sum += elite->objective;
  const auto elites = static_cast<double>(cells_.size());
  stats.obj_mean = sum / elites;
  stats.qd_score = sum - elites * options_.qd_score_offset;
  if (options_.cells->count() == 0) return stats;
  const auto count = static_cast<double>(options_.cells->count());
  stats.coverage = elites / count;
  stats.norm_qd_score = stats.qd_score / count;
  return stats;
}

std::vector<size_t> ParetoFront(const std::vector<std::vector<double>>& costs) {
  std::vector<size_t> front;
  for (size_t i = 0; i < costs.size(); ++i) {
    const bool dominated =
        std::any_of(costs.begin(), costs.end(), [&](const auto& other) {
          return IsMeasured(other) && Dominates(other, costs[i]);
        });
    if (IsMeasured(costs[i]) && !dominated) front.push_back(i);
  }
  return front;
}

}  // namespace reprise::evolution
