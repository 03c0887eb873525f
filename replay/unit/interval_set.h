// A set of bytes as sorted, disjoint, non-touching half-open intervals. Not
// thread-safe.
#ifndef REPRISE_REPLAY_UNIT_INTERVAL_SET_H_
#define REPRISE_REPLAY_UNIT_INTERVAL_SET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

struct Interval {
  uint64_t begin = 0;
  uint64_t end = 0;  // one past the last byte
  friend bool operator==(const Interval&, const Interval&) = default;
};

class IntervalSet {
 public:
  IntervalSet() = default;

  // Adds [begin, end); merges with what it touches. Amortised O(1) for
  // ascending adds.
  void Add(uint64_t begin, uint64_t end);
  bool Contains(uint64_t byte) const;
  uint64_t bytes() const;
  bool empty() const { return intervals_.empty(); }
  const std::vector<Interval>& intervals() const { return intervals_; }

  IntervalSet Union(const IntervalSet& other) const;
  IntervalSet Intersect(const IntervalSet& other) const;
  IntervalSet Subtract(const IntervalSet& other) const;

  // LEB128 pairs (gap since the previous end, length).
  std::string Encode() const;
  // INVALID_ARGUMENT on a malformed encoding, a zero length, or a value past
  // `limit`.
  static absl::StatusOr<IntervalSet> Decode(std::string_view bytes,
                                            uint64_t limit);

  friend bool operator==(const IntervalSet&, const IntervalSet&) = default;

 private:
  std::vector<Interval> intervals_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_INTERVAL_SET_H_
