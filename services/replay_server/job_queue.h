// Jobs in the order in which they are to go on: larger priorities first, then
// in the order they came. Not thread-safe. T has `int priority`, `uint64_t
// sequence` (unique) and `std::string unit`.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_JOB_QUEUE_H_
#define REPRISE_SERVICES_REPLAY_SERVER_JOB_QUEUE_H_

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reprise {

template <typename T>
class JobQueue {
 public:
  using Pointer = std::shared_ptr<T>;

  bool empty() const { return jobs_.empty(); }
  size_t size() const { return jobs_.size(); }

  void Push(Pointer job) {
    const Key key = KeyOf(*job);
    by_unit_[job->unit][key] = job;
    jobs_[key] = std::move(job);
  }

  // False: it is not here.
  bool Remove(const T& job) {
    const Key key = KeyOf(job);
    if (jobs_.erase(key) == 0) return false;
    const auto unit = by_unit_.find(job.unit);
    unit->second.erase(key);
    if (unit->second.empty()) by_unit_.erase(unit);
    return true;
  }

  // The first. Not of an empty queue.
  Pointer Pop() { return Take(jobs_.begin()->second); }

  // The first of this unit, where it has one of as large a priority as any;
  // otherwise the first of all. Not of an empty queue.
  Pointer PopPreferring(const std::string& unit) {
    const auto preferred = by_unit_.find(unit);
    const Pointer& first = jobs_.begin()->second;
    if (preferred == by_unit_.end()) return Take(first);
    const Pointer& own = preferred->second.begin()->second;
    return Take(own->priority == first->priority ? own : first);
  }

  // Takes out all of a unit, or all that `wanted` holds for.
  std::vector<Pointer> RemoveUnit(const std::string& unit) {
    return RemoveIf([&](const T& job) { return job.unit == unit; });
  }
  template <typename Wanted>
  std::vector<Pointer> RemoveIf(const Wanted& wanted) {
    std::vector<Pointer> removed;
    for (const auto& [key, job] : jobs_) {
      if (wanted(*job)) removed.push_back(job);
    }
    for (const Pointer& job : removed) Remove(*job);
    return removed;
  }

  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const auto& [key, job] : jobs_) visit(job);
  }

  // The largest of a unit's; nothing: it has no job.
  std::optional<int> PriorityOf(const std::string& unit) const {
    const auto found = by_unit_.find(unit);
    if (found == by_unit_.end()) return std::nullopt;
    return found->second.begin()->second->priority;
  }
  size_t CountOf(const std::string& unit) const {
    const auto found = by_unit_.find(unit);
    return found == by_unit_.end() ? 0 : found->second.size();
  }

 private:
  using Key = std::pair<int64_t, uint64_t>;
  static Key KeyOf(const T& job) {
    return {-int64_t{job.priority}, job.sequence};
  }

  Pointer Take(Pointer job) {
    Remove(*job);
    return job;
  }

  std::map<Key, Pointer> jobs_;
  std::map<std::string, std::map<Key, Pointer>> by_unit_;
};

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_JOB_QUEUE_H_
