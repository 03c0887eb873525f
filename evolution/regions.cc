#include "evolution/regions.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "evolution/tokens.h"

namespace reprise::evolution {
namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr size_t kMaxPlaces = 1000;

using Pieces = std::vector<std::string_view>;

// Between regions: one more than there are regions.
Pieces FixedPieces(std::string_view text, const std::vector<Region>& regions) {
  Pieces pieces;
  size_t at = 0;
  for (const Region& region : regions) {
    pieces.push_back(text.substr(at, region.begin - at));
    at = region.end;
  }
  pieces.push_back(text.substr(at));
  return pieces;
}

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return static_cast<size_t>(end - a.begin());
}

size_t CommonSuffix(std::string_view a, std::string_view b) {
  const auto end =
      std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first;
  return static_cast<size_t>(end - a.rbegin());
}

// The length of the longest start of `piece` that is somewhere in `text`.
size_t LongestStartIn(std::string_view piece, std::string_view text) {
  size_t low = 0;
  size_t high = piece.size();
  while (low < high) {  // what holds for a start holds for shorter ones
    const size_t middle = (low + high + 1) / 2;
    if (text.find(piece.substr(0, middle)) != kNone) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

class Locator {
 public:
  Locator(std::string_view before, const std::vector<Region>& regions,
          std::string_view after)
      : before_(before),
        regions_(regions),
        after_(after),
        pieces_(FixedPieces(before, regions)) {}

  absl::StatusOr<std::vector<Region>> Locate() {
    absl::Status status = FindFirstPlaces();
    if (!status.ok()) return status;
    FindAllPlaces();
    ChoosePlaces();
    return Result();
  }

 private:
  // A place where a fixed piece can be, and the best choice of those before it.
  struct Place {
    size_t offset = 0;
    size_t cost = std::numeric_limits<size_t>::max();
    size_t previous = 0;  // index among the places of the piece before
  };

  absl::Status Outside(size_t piece, size_t within) const {
    const size_t offset =
        static_cast<size_t>(pieces_[piece].data() - before_.data()) + within;
    return absl::PermissionDeniedError(absl::StrCat(
        "source: got a change at ", regions_[0].path, ":",
        LineOf(before_, offset),
        ", outside of the kernel and what it uses; expected changes inside of "
        "the evolvable regions only"));
  }

  // Each piece as far to the front as it can be.
  absl::Status FindFirstPlaces() {
    const size_t last = pieces_.size() - 1;
    if (!after_.starts_with(pieces_[0]))
      return Outside(0, CommonPrefix(pieces_[0], after_));
    first_ = {0};
    size_t at = pieces_[0].size();
    for (size_t i = 1; i < last; ++i) {
      const size_t found = after_.find(pieces_[i], at);
      if (found == kNone) {
        return Outside(i, LongestStartIn(pieces_[i], after_.substr(at)));
      }
      first_.push_back(found);
      at = found + pieces_[i].size();
    }
    if (after_.size() < at + pieces_[last].size() ||
        !after_.ends_with(pieces_[last])) {
      return Outside(last, LongestStartIn(pieces_[last], after_.substr(at)));
    }
    first_.push_back(after_.size() - pieces_[last].size());
    return absl::OkStatus();
  }

  void FindAllPlaces() {
    places_.assign(pieces_.size(), {});
    places_[0] = {{0, 0, 0}};
    const size_t last = pieces_.size() - 1;
    places_[last] = {{first_[last], std::numeric_limits<size_t>::max(), 0}};
    size_t limit = first_[last];
    for (size_t i = last; i-- > 1;) {
      limit = after_.rfind(pieces_[i], limit - pieces_[i].size());
      for (size_t at = first_[i]; at <= limit;) {
        places_[i].push_back({at, std::numeric_limits<size_t>::max(), 0});
        at = after_.find(pieces_[i], at + 1);
      }
      // The first place of each piece is always possible, so it stays.
      if (places_[i].size() > kMaxPlaces) {
        places_[i].erase(places_[i].begin() + kMaxPlaces / 2,
                         places_[i].end() - kMaxPlaces / 2);
      }
    }
  }

  // Dynamic programming over regions: the cost of one is what it and its text
  // now do not have in common.
  void ChoosePlaces() {
    for (size_t i = 1; i < pieces_.size(); ++i) {
      const std::string_view text = before_.substr(
          regions_[i - 1].begin, regions_[i - 1].end - regions_[i - 1].begin);
      std::vector<size_t> suffixes;
      for (const Place& end : places_[i])
        suffixes.push_back(CommonSuffix(text, after_.substr(0, end.offset)));
      for (size_t p = 0; p < places_[i - 1].size(); ++p) {
        const Place& from = places_[i - 1][p];
        if (from.cost == std::numeric_limits<size_t>::max()) continue;
        const size_t start = from.offset + pieces_[i - 1].size();
        const size_t prefix = CommonPrefix(text, after_.substr(start));
        for (size_t e = 0; e < places_[i].size(); ++e) {
          Place& end = places_[i][e];
          if (end.offset < start) continue;
          const size_t size = end.offset - start;
          const size_t common =
              std::min({prefix + suffixes[e], text.size(), size});
          const size_t cost = from.cost + text.size() + size - 2 * common;
          if (cost >= end.cost) continue;
          end.cost = cost;
          end.previous = p;
        }
      }
    }
  }

  std::vector<Region> Result() const {
    std::vector<Region> located = regions_;
    size_t chosen = 0;
    for (size_t i = pieces_.size() - 1; i > 0; --i) {
      const Place& end = places_[i][chosen];
      const Place& start = places_[i - 1][end.previous];
      located[i - 1].begin = start.offset + pieces_[i - 1].size();
      located[i - 1].end = end.offset;
      chosen = end.previous;
    }
    return located;
  }

  const std::string_view before_;
  const std::vector<Region>& regions_;
  const std::string_view after_;
  const Pieces pieces_;
  std::vector<size_t> first_;
  std::vector<std::vector<Place>> places_;
};

}  // namespace

size_t LineOf(std::string_view text, size_t offset) {
  const std::string_view until = text.substr(0, std::min(offset, text.size()));
  return 1 + static_cast<size_t>(std::count(until.begin(), until.end(), '\n'));
}

absl::StatusOr<std::vector<Region>> LocateRegions(
    std::string_view before, const std::vector<Region>& regions,
    std::string_view after) {
  if (regions.empty()) return std::vector<Region>();
  return Locator(before, regions, after).Locate();
}

const Region* RegionAround(const EvolvableSource& source, std::string_view path,
                           size_t begin, size_t end) {
  for (const Region& region : source.regions()) {
    if (region.path == path && region.begin <= begin && end <= region.end)
      return &region;
  }
  return nullptr;
}

std::string_view TextOf(const EvolvableSource& source, const Region& region) {
  return std::string_view(source.files().at(region.path))
      .substr(region.begin, region.end - region.begin);
}

namespace {

// With the end of its line, where only blanks stand between.
std::string WithLineEnd(const EvolvableSource& source, const Region& region) {
  const std::string_view file = source.files().at(region.path);
  const size_t next = file.find_first_not_of(" \t\r", region.end);
  const bool ends_line = next == kNone || file[next] == '\n';
  return absl::StrCat(std::string(TextOf(source, region)),
                      ends_line ? "\n" : "");
}

}  // namespace

absl::Status CheckSelfContained(const EvolvableSource& before,
                                const EvolvableSource& after) {
  for (size_t i = 0; i < after.regions().size(); ++i) {
    const Region& region = after.regions()[i];
    if (TextOf(after, region) == TextOf(before, before.regions()[i])) continue;
    const std::string open = WhyNotSelfContained(WithLineEnd(after, region));
    if (open.empty() ||
        !WhyNotSelfContained(WithLineEnd(before, before.regions()[i])).empty())
      continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "source: got ", open, " in ", std::string(RegionKindName(region.kind)),
        " ", region.name, " at ", region.path, ":",
        LineOf(after.files().at(region.path), region.begin),
        ", expected text that ends what it begins"));
  }
  return absl::OkStatus();
}

}  // namespace reprise::evolution
