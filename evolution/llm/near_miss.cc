#include "evolution/llm/near_miss.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "evolution/llm/text.h"
#include "evolution/regions.h"
#include "evolution/unified_diff.h"

namespace reprise::evolution {
namespace {

constexpr size_t kMaxLines = 40;
// Of a line, for its likeness.
constexpr size_t kMaxColumns = 200;
// What is less alike is no near miss.
constexpr double kLeastLikeness = 0.3;

struct Line {
  std::string_view text;
  std::vector<uint16_t> pairs;  // sorted
};

Line LineOfText(std::string_view text) {
  Line line{text, {}};
  uint16_t last = 0;
  for (const char c : text.substr(0, kMaxColumns)) {
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) continue;
    const auto pair =
        static_cast<uint16_t>((last << 8) | static_cast<unsigned char>(c));
    line.pairs.push_back(pair);
    last = static_cast<unsigned char>(c);
  }
  std::sort(line.pairs.begin(), line.pairs.end());
  return line;
}

std::vector<Line> LinesOf(std::string_view text) {
  std::vector<Line> lines;
  for (const std::string_view line : SplitLines(text))
    lines.push_back(LineOfText(line));
  return lines;
}

size_t Common(const Line& a, const Line& b) {
  size_t common = 0;
  auto x = a.pairs.begin();
  auto y = b.pairs.begin();
  while (x != a.pairs.end() && y != b.pairs.end()) {
    if (*x == *y) {
      ++common;
      ++x;
      ++y;
    } else if (*x < *y) {
      ++x;
    } else {
      ++y;
    }
  }
  return common;
}

struct Window {
  double likeness = 0;
  std::string path;
  size_t first = 0;  // line, from 0
  size_t count = 0;
};

void Look(const EvolvableSource& state, const Region& region,
          const std::vector<Line>& file, const std::vector<Line>& search,
          Window* best) {
  const std::string_view text = state.files().at(region.path);
  const size_t begin = LineOf(text, region.begin) - 1;
  const size_t end = std::min(LineOf(text, region.end), file.size());
  for (size_t at = begin; at < end; ++at) {
    const size_t count = std::min(search.size(), end - at);
    size_t common = 0;
    size_t all = 0;
    for (size_t i = 0; i < search.size(); ++i) {
      all += search[i].pairs.size();
      if (i >= count) continue;
      all += file[at + i].pairs.size();
      common += Common(search[i], file[at + i]);
    }
    const double likeness =
        all == 0 ? 0
                 : 2.0 * static_cast<double>(common) / static_cast<double>(all);
    if (likeness > best->likeness) *best = {likeness, region.path, at, count};
  }
}

std::string Join(const std::vector<Line>& lines, size_t first, size_t count) {
  std::string out;
  for (size_t i = first; i < first + count; ++i)
    absl::StrAppend(&out, std::string(lines[i].text), "\n");
  return out;
}

}  // namespace

std::string NearestMiss(const EvolvableSource& state, std::string_view search) {
  std::vector<Line> wanted = LinesOf(search);
  if (wanted.size() > kMaxLines) wanted.resize(kMaxLines);
  Window best;
  for (const auto& [path, text] : state.files()) {
    const std::vector<Line> lines = LinesOf(text);
    for (const Region& region : state.regions()) {
      if (region.path == path) Look(state, region, lines, wanted, &best);
    }
  }
  if (best.likeness < kLeastLikeness) return "";
  const std::vector<Line> lines = LinesOf(state.files().at(best.path));
  std::string diff = UnifiedDiff(
      {{"f", Join(lines, best.first, best.count),
        Join(wanted, 0, wanted.size())}},
      {.context_lines = static_cast<int>(kMaxLines) * 2, .root = ""});
  // One hunk; its numbers are those of the windows.
  diff.erase(0, std::min(diff.size(), diff.find("@@\n") + 3));
  return absl::StrCat("nearest is ", best.path, ":", best.first + 1, "-",
                      best.first + best.count,
                      " (- what stands there, + what was searched for):\n",
                      diff.empty() ? "only blanks differ\n" : diff);
}

}  // namespace reprise::evolution
