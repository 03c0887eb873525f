#include "replay/recorder/session/memory_image.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

constexpr uint64_t kPageBytes = ArenaMemory::kPageBytes;
constexpr uint64_t kSmallestGap = 1 << 20;
constexpr size_t kMostPiecesByType = 16;

using Types = google::protobuf::RepeatedPtrField<v1::TypedInterval>;
using AccessIntervals = google::protobuf::RepeatedPtrField<v1::AccessInterval>;

IntervalSet ToSet(const AccessIntervals& intervals) {
  IntervalSet set;
  for (const v1::AccessInterval& interval : intervals)
    set.Add(interval.address(), interval.address() + interval.bytes());
  return set;
}

uint64_t PageDown(uint64_t value) { return value / kPageBytes * kPageBytes; }
uint64_t PageUp(uint64_t value) { return PageDown(value + kPageBytes - 1); }

// Intervals of `set` that meet [begin, end), found by binary search.
std::vector<Interval> Meeting(const IntervalSet& set, uint64_t begin,
                              uint64_t end) {
  const std::vector<Interval>& all = set.intervals();
  auto at = std::partition_point(
      all.begin(), all.end(),
      [&](const Interval& interval) { return interval.end <= begin; });
  std::vector<Interval> found;
  for (; at != all.end() && at->begin < end; ++at)
    found.push_back({std::max(at->begin, begin), std::min(at->end, end)});
  return found;
}

IntervalSet Within(const IntervalSet& set, uint64_t begin, uint64_t end) {
  IntervalSet relative;
  for (const Interval& interval : Meeting(set, begin, end))
    relative.Add(interval.begin - begin, interval.end - begin);
  return relative;
}

// Runs of touched pages, gaps below kSmallestGap closed.
std::vector<Interval> TouchedPieces(const LiveRange& range,
                                    const IntervalSet& touched) {
  const uint64_t end = range.address + range.bytes;
  std::vector<Interval> pieces;
  for (const Interval& interval : Meeting(touched, range.address, end)) {
    const uint64_t first = std::max(PageDown(interval.begin), range.address);
    const uint64_t last = std::min(PageUp(interval.end), end);
    if (!pieces.empty() && first < pieces.back().end + kSmallestGap)
      pieces.back().end = std::max(pieces.back().end, last);
    else
      pieces.push_back({first, last});
  }
  return pieces;
}

struct TypedPiece {
  Interval interval;
  v1::ElementType type;
};

// Cuts a piece where the types of its pages change. Pages that were not touched
// go with what precedes them; touched pages of no single type are UNTYPED.
std::vector<TypedPiece> CutByType(const Interval& piece, const Types& types,
                                  const IntervalSet& touched) {
  std::vector<TypedPiece> cut;
  bool known = false;  // whether the last piece has a type yet
  for (uint64_t page = piece.begin; page < piece.end;
       page = std::min(PageDown(page) + kPageBytes, piece.end)) {
    const uint64_t end = std::min(PageDown(page) + kPageBytes, piece.end);
    v1::ElementType type = v1::ELEMENT_TYPE_UNTYPED;
    const auto entry = std::partition_point(
        types.begin(), types.end(), [&](const v1::TypedInterval& interval) {
          return interval.address() + interval.bytes() <= page;
        });
    if (entry != types.end() && entry->address() < end)
      type = entry->element_type();
    const bool touches = !Meeting(touched, page, end).empty();
    if (cut.empty()) {
      cut.push_back({{page, end}, type});
      known = touches;
    } else if (!touches || type == cut.back().type || !known) {
      cut.back().interval.end = end;
      if (touches && !known) cut.back().type = type;
      known = known || touches;
    } else {
      cut.push_back({{page, end}, type});
    }
    if (cut.size() > kMostPiecesByType)
      return {{piece, v1::ELEMENT_TYPE_UNTYPED}};
  }
  return cut;
}

ImageRange MakeRange(const LiveRange& live, const Interval& piece,
                     v1::ElementType type, const AccessSets& accesses) {
  ImageRange range;
  range.address = piece.begin;
  range.bytes = piece.end - piece.begin;
  range.origin = live.origin;
  range.symbol = live.symbol;
  range.element_type = type;
  range.reads = Within(accesses.reads, piece.begin, piece.end);
  range.writes = Within(accesses.writes, piece.begin, piece.end);
  range.reads_before_write =
      Within(accesses.reads_before_write, piece.begin, piece.end);
  return range;
}

absl::Status CheckInside(const std::map<uint64_t, LiveRange>& live,
                         const IntervalSet& touched, const char* verb) {
  IntervalSet allocated;
  for (const auto& [address, range] : live)
    allocated.Add(address, address + range.bytes);
  const IntervalSet outside = touched.Subtract(allocated);
  if (outside.empty()) return absl::OkStatus();
  const Interval& first = outside.intervals().front();
  auto after = live.upper_bound(first.begin);
  std::string place;
  if (after != live.begin()) {
    const LiveRange& range = std::prev(after)->second;
    place =
        absl::StrFormat(", %d bytes behind the end of %s of %d bytes at 0x%x",
                        first.begin - (range.address + range.bytes),
                        range.symbol.empty() ? "an allocation" : range.symbol,
                        range.bytes, range.address);
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("it %s %d bytes outside all memory, first at 0x%x%s",
                      verb, outside.bytes(), first.begin, place));
}

}  // namespace

AccessSets AccessSets::FromReport(const v1::AccessReport& report) {
  return {ToSet(report.reads()), ToSet(report.writes()),
          ToSet(report.reads_before_write())};
}

absl::StatusOr<std::vector<ImageRange>> CutImage(
    const std::map<uint64_t, LiveRange>& live, const AccessSets& accesses,
    const Types& types, const std::set<uint64_t>& whole) {
  RETURN_IF_ERROR(CheckInside(live, accesses.writes, "writes"));
  RETURN_IF_ERROR(CheckInside(live, accesses.reads, "reads"));
  const IntervalSet touched = accesses.reads.Union(accesses.writes);
  std::vector<ImageRange> image;
  for (const auto& [address, range] : live) {
    const Interval all{address, address + range.bytes};
    const bool global = !range.symbol.empty();
    std::vector<Interval> pieces = TouchedPieces(range, touched);
    if (global && (whole.contains(address) || !pieces.empty())) pieces = {all};
    for (const Interval& piece : pieces) {
      std::vector<TypedPiece> cut = CutByType(piece, types, touched);
      if (global && cut.size() > 1) cut = {{piece, v1::ELEMENT_TYPE_UNTYPED}};
      for (const TypedPiece& part : cut)
        image.push_back(MakeRange(range, part.interval, part.type, accesses));
    }
  }
  return image;
}

}  // namespace reprise
