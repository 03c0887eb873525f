#include "replay/device/cuda/executor/tiles.h"

namespace reprise::cuda {
namespace {

constexpr uint64_t kCoalescedGap = 64;
constexpr size_t kManyIntervals = 1 << 20;

// Calls add(offset, bytes) for pieces of at most kTileBytes, the first of which
// ends at a multiple of 16 of `address`.
template <typename Add>
void Cut(uint64_t address, uint64_t bytes, const Add& add) {
  uint64_t at = 0;
  while (at < bytes) {
    const uint64_t skew = (address + at) % 16;
    const uint64_t piece = std::min(bytes - at, kTileBytes - skew);
    add(at, piece);
    at += piece;
  }
}

}  // namespace

void AddCopy(uint64_t to, uint64_t from, uint64_t bytes, CopyTiles* tiles) {
  tiles->bytes += bytes;
  Cut(to, bytes, [&](uint64_t at, uint64_t piece) {
    tiles->classes[TileClass(piece)].push_back({to + at, from + at, piece});
  });
}

void AddFill(uint64_t at, uint64_t bytes, FillTiles* tiles) {
  tiles->bytes += bytes;
  Cut(at, bytes, [&](uint64_t offset, uint64_t piece) {
    tiles->classes[TileClass(piece)].push_back({at + offset, piece});
  });
}

void AddCompare(uint64_t job, uint64_t begin, uint64_t end,
                uint64_t got_address, std::vector<CompareTile>* tiles) {
  Cut(got_address + begin, end - begin, [&](uint64_t at, uint64_t piece) {
    tiles->push_back({job, begin + at, begin + at + piece});
  });
}

IntervalSet Coalesced(const IntervalSet& set) {
  IntervalSet result = set;
  for (uint64_t gap = kCoalescedGap;; gap *= 8) {
    IntervalSet next;
    uint64_t begin = 0, end = 0;
    for (const Interval& interval : result.intervals()) {
      if (end != 0 && interval.begin - end <= gap) {
        end = interval.end;
        continue;
      }
      if (end != 0) next.Add(begin, end);
      begin = interval.begin;
      end = interval.end;
    }
    if (end != 0) next.Add(begin, end);
    result = std::move(next);
    if (result.intervals().size() <= kManyIntervals) return result;
  }
}

}  // namespace reprise::cuda
