#include "replay/unit/interval_set.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

void AppendLeb128(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

// Reads one number off the front. Only the shortest form of a number is
// accepted, so that equal sets have equal encodings.
absl::StatusOr<uint64_t> TakeLeb128(std::string_view* bytes, size_t total) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes->size(); ++i) {
    const auto byte = static_cast<unsigned char>((*bytes)[i]);
    const bool last = (byte & 0x80) == 0;
    const bool overflows = i == 9 && byte > 1;
    const bool padded = last && byte == 0 && i > 0;
    if (overflows || padded) {
      return absl::InvalidArgumentError(absl::StrCat(
          "malformed interval set: the number at byte ", total - bytes->size(),
          overflows ? " does not fit 64 bits"
                    : " is not in its shortest form"));
    }
    value |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (last) {
      bytes->remove_prefix(i + 1);
      return value;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("malformed interval set: ends inside the number at byte ",
                   total - bytes->size()));
}

}  // namespace

void IntervalSet::Add(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  if (intervals_.empty() || begin > intervals_.back().end) {
    intervals_.push_back({begin, end});
    return;
  }
  if (begin >= intervals_.back().begin) {
    intervals_.back().end = std::max(intervals_.back().end, end);
    return;
  }
  // [first, last) are the intervals that the new one touches.
  const auto first =
      std::lower_bound(intervals_.begin(), intervals_.end(), begin,
                       [](const Interval& interval, uint64_t value) {
                         return interval.end < value;
                       });
  const auto last =
      std::upper_bound(first, intervals_.end(), end,
                       [](uint64_t value, const Interval& interval) {
                         return value < interval.begin;
                       });
  if (first == last) {
    intervals_.insert(first, {begin, end});
    return;
  }
  first->begin = std::min(first->begin, begin);
  first->end = std::max((last - 1)->end, end);
  intervals_.erase(first + 1, last);
}

bool IntervalSet::Contains(uint64_t byte) const {
  const auto after =
      std::upper_bound(intervals_.begin(), intervals_.end(), byte,
                       [](uint64_t value, const Interval& interval) {
                         return value < interval.begin;
                       });
  return after != intervals_.begin() && byte < (after - 1)->end;
}

uint64_t IntervalSet::bytes() const {
  uint64_t sum = 0;
  for (const Interval& interval : intervals_)
    sum += interval.end - interval.begin;
  return sum;
}

IntervalSet IntervalSet::Union(const IntervalSet& other) const {
  IntervalSet result;
  auto a = intervals_.begin();
  auto b = other.intervals_.begin();
  while (a != intervals_.end() || b != other.intervals_.end()) {
    const bool take_a = b == other.intervals_.end() ||
                        (a != intervals_.end() && a->begin <= b->begin);
    const Interval& next = take_a ? *a++ : *b++;
    result.Add(next.begin, next.end);
  }
  return result;
}

IntervalSet IntervalSet::Intersect(const IntervalSet& other) const {
  IntervalSet result;
  auto a = intervals_.begin();
  auto b = other.intervals_.begin();
  while (a != intervals_.end() && b != other.intervals_.end()) {
    result.Add(std::max(a->begin, b->begin), std::min(a->end, b->end));
    if (a->end < b->end) {
      ++a;
    } else {
      ++b;
    }
  }
  return result;
}

IntervalSet IntervalSet::Subtract(const IntervalSet& other) const {
  IntervalSet result;
  auto b = other.intervals_.begin();
  for (const Interval& interval : intervals_) {
    uint64_t begin = interval.begin;
    while (b != other.intervals_.end() && b->end <= begin) ++b;
    // `b` itself may reach into the next interval, so walk with a copy.
    for (auto cut = b;
         cut != other.intervals_.end() && cut->begin < interval.end; ++cut) {
      result.Add(begin, cut->begin);
      begin = cut->end;
      b = cut;
    }
    result.Add(begin, interval.end);
  }
  return result;
}

std::string IntervalSet::Encode() const {
  std::string out;
  uint64_t previous_end = 0;
  for (const Interval& interval : intervals_) {
    AppendLeb128(interval.begin - previous_end, &out);
    AppendLeb128(interval.end - interval.begin, &out);
    previous_end = interval.end;
  }
  return out;
}

absl::StatusOr<IntervalSet> IntervalSet::Decode(std::string_view bytes,
                                                uint64_t limit) {
  IntervalSet result;
  const size_t total = bytes.size();
  uint64_t end = 0;
  while (!bytes.empty()) {
    const size_t at = total - bytes.size();
    absl::StatusOr<uint64_t> gap = TakeLeb128(&bytes, total);
    if (!gap.ok()) return gap.status();
    absl::StatusOr<uint64_t> length = TakeLeb128(&bytes, total);
    if (!length.ok()) return length.status();
    if (*length == 0 || (*gap == 0 && at > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("malformed interval set: the interval at byte ", at,
                       *length == 0 ? " is empty" : " touches the one before"));
    }
    if (*gap > limit - end || *length > limit - end - *gap) {
      return absl::InvalidArgumentError(
          absl::StrCat("malformed interval set: the interval at byte ", at,
                       " ends past the range: gap ", *gap, " and length ",
                       *length, " after ", end, ", expected at most ", limit));
    }
    result.intervals_.push_back({end + *gap, end + *gap + *length});
    end = result.intervals_.back().end;
  }
  return result;
}

}  // namespace reprise
