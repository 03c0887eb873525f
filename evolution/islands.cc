#include "evolution/islands.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace reprise::evolution {

absl::StatusOr<std::unique_ptr<Islands>> Islands::Create(Options options) {
  if (options.islands < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", options.islands, " islands, expected 1 or more"));
  }
  const ParentWeights& weights = options.parents;
  const double sum = weights.fitness + weights.novelty + weights.recency;
  if (!(weights.fitness >= 0) || !(weights.novelty >= 0) ||
      !(weights.recency >= 0) || !(sum > 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got parent weights ", weights.fitness, ", ", weights.novelty, ", ",
        weights.recency, ", expected 0 or more, and one above 0"));
  }
  return std::unique_ptr<Islands>(new Islands(std::move(options)));
}

Islands::Islands(Options options)
    : options_(std::move(options)), random_(options_.seed) {
  for (int i = 0; i < options_.islands; ++i)
    islands_.emplace_back().archive = Archive(options_.archive);
}

Islands::Ticket Islands::Next() {
  size_t least = 0;
  const auto load = [this](size_t i) {
    return islands_[i].evaluations + islands_[i].under_way;
  };
  for (size_t i = 1; i < islands_.size(); ++i) {
    if (load(i) < load(least)) least = i;
  }
  Island& island = islands_[least];
  ++island.under_way;
  return {least, island.accepted, island.restarts};
}

void Islands::Drop(const Ticket& ticket) {
  --islands_[ticket.island].under_way;
}

bool Islands::IsStale(const Ticket& ticket) const {
  const Island& island = islands_[ticket.island];
  return island.restarts != ticket.restarts ||
         island.accepted - ticket.accepted > options_.most_overtaken;
}

// 0 with the greatest probability, count - 1 with the least: in proportion to
// how many are not before it.
size_t Islands::ByRank(size_t count) {
  size_t ticket = random_.Below(count * (count + 1) / 2);
  size_t rank = 0;
  for (size_t share = count; ticket >= share; --share, ++rank) ticket -= share;
  return rank;
}

const Elite* Islands::ChooseParent(size_t index) {
  Island& island = islands_[index];
  std::vector<const Elite*> elites = island.archive.Ranked();
  if (elites.empty()) return nullptr;
  const ParentWeights& weights = options_.parents;
  const double turn =
      random_.Unit() * (weights.fitness + weights.novelty + weights.recency);
  const Elite* chosen = nullptr;
  if (turn < weights.fitness) {
    chosen = elites[ByRank(elites.size())];
  } else if (turn < weights.fitness + weights.recency) {
    std::stable_sort(elites.begin(), elites.end(),
                     [](const Elite* a, const Elite* b) {
                       return a->solution.id > b->solution.id;
                     });
    chosen = elites[ByRank(elites.size())];
  } else {
    const auto children = [&](const Elite* elite) {
      const auto found = island.children.find(elite->solution.id);
      return found == island.children.end() ? 0 : found->second;
    };
    uint64_t fewest = children(elites[0]);
    for (const Elite* elite : elites)
      fewest = std::min(fewest, children(elite));
    std::erase_if(elites,
                  [&](const Elite* elite) { return children(elite) > fewest; });
    chosen = elites[random_.Below(elites.size())];
  }
  ++island.children[chosen->solution.id];
  return chosen;
}

absl::StatusOr<Islands::Effects> Islands::Tell(
    const Ticket& ticket, const Proposal& solution, double objective,
    const std::vector<double>& measures, absl::Time now) {
  Island& island = islands_[ticket.island];
  const absl::StatusOr<AddStatus> added =
      island.archive.Add(solution, objective, measures);
  if (!added.ok()) return added.status();
  if (*added != AddStatus::kNotAdded) ++island.accepted;
  --island.under_way;
  Effects effects = AfterEvaluation(ticket.island, now);
  effects.status = *added;
  return effects;
}

Islands::Effects Islands::TellFailure(const Ticket& ticket, absl::Time now) {
  --islands_[ticket.island].under_way;
  return AfterEvaluation(ticket.island, now);
}

Islands::Effects Islands::AfterEvaluation(size_t index, absl::Time now) {
  Island& island = islands_[index];
  ++island.evaluations;
  // The first begins the time until the first migration.
  if (!island.migrated_time) island.migrated_time = now;
  NoteBest(island);
  Effects effects;
  if (MigrationIsDue(island, now)) {
    island.migrated_at = island.evaluations;
    island.migrated_time = now;
    effects.migrated = Migrate(index);
  }
  effects.restarted = RestartIfStuck(index);
  return effects;
}

void Islands::NoteBest(Island& island) {
  const Elite* const best = island.archive.BestElite();
  if (best == nullptr || (island.best && best->objective <= *island.best))
    return;
  island.best = best->objective;
  island.improved_at = island.evaluations;
}

bool Islands::MigrationIsDue(const Island& island, absl::Time now) const {
  if (islands_.size() < 2) return false;
  const bool by_number =
      options_.migrate_after > 0 &&
      island.evaluations - island.migrated_at >= options_.migrate_after;
  return by_number || now - *island.migrated_time >= options_.migrate_every;
}

size_t Islands::Migrate(size_t from) {
  const size_t step = options_.topology == Topology::kRing
                          ? 1
                          : 1 + random_.Below(islands_.size() - 1);
  Island& target = islands_[(from + step) % islands_.size()];
  size_t sent = 0, kept = 0;
  for (const Elite* elite : islands_[from].archive.Ranked()) {
    if (sent == options_.migrants) break;
    if (islands_[from].immigrants.count(elite->solution.id) > 0) continue;
    ++sent;
    // It may have arrived, or been made, there before.
    if (!target.immigrants.insert(elite->solution.id).second) continue;
    if (target.archive.Adopt(*elite) == AddStatus::kNotAdded) continue;
    ++target.accepted;
    ++kept;
  }
  NoteBest(target);
  return kept;
}

bool Islands::RestartIfStuck(size_t index) {
  Island& island = islands_[index];
  if (options_.restart_after == 0 ||
      island.evaluations - island.improved_at < options_.restart_after)
    return false;
  island.improved_at = island.evaluations;  // another try, whatever comes
  const Elite* const best = BestElite();
  if (best == nullptr || island.best >= best->objective) return false;
  const Elite seed = *best;
  island.archive = Archive(options_.archive);
  island.immigrants = {seed.solution.id};
  island.children.clear();
  island.archive.Adopt(seed);
  ++island.restarts;
  ++island.accepted;
  island.best = seed.objective;
  return true;
}

std::vector<const Elite*> Islands::DueForRemeasurement(size_t n) const {
  std::map<uint64_t, const Elite*> by_id;
  for (const Island& island : islands_) {
    for (const Elite* elite : island.archive.DueForRemeasurement(n))
      by_id.emplace(elite->solution.id, elite);
  }
  std::vector<const Elite*> due;
  for (const auto& [id, elite] : by_id) due.push_back(elite);
  std::sort(due.begin(), due.end(), [](const Elite* a, const Elite* b) {
    if (a->believed() != b->believed()) return !a->believed();
    return RanksBefore(a, b);
  });
  due.resize(std::min(due.size(), n));
  return due;
}

absl::Status Islands::Remeasured(uint64_t solution_id, double objective) {
  absl::Status status = absl::NotFoundError("there is no island");
  bool found = false;
  for (Island& island : islands_) {
    status = island.archive.Remeasured(solution_id, objective);
    found = found || status.ok();
    // It may have been the best, and not be as good as it seemed.
    const Elite* const best = island.archive.BestElite();
    if (status.ok()) {
      island.best.reset();
      if (best != nullptr) island.best = best->objective;
    }
  }
  return found ? absl::OkStatus() : status;
}

std::vector<const Elite*> Islands::Ranked() const {
  std::map<uint64_t, const Elite*> by_id;
  for (const Island& island : islands_) {
    for (const Elite* elite : island.archive.elites())
      by_id.emplace(elite->solution.id, elite);
  }
  std::vector<const Elite*> ranked;
  for (const auto& [id, elite] : by_id) ranked.push_back(elite);
  std::sort(ranked.begin(), ranked.end(), RanksBefore);
  return ranked;
}

const Elite* Islands::BestElite() const {
  const std::vector<const Elite*> ranked = Ranked();
  return ranked.empty() ? nullptr : ranked.front();
}

}  // namespace reprise::evolution
