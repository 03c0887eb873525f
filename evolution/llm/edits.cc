#include "evolution/llm/edits.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "evolution/llm/match.h"
#include "evolution/llm/near_miss.h"
#include "evolution/llm/text.h"
#include "evolution/regions.h"
#include "evolution/unified_diff.h"

namespace reprise::evolution {
namespace {

constexpr size_t kMaxReports = 5;
constexpr size_t kMaxPlaces = 8;

// "..." in the place of code: alone, or in a comment that says so.
bool LooksElided(std::string_view line) {
  std::string_view text = Stripped(line);
  const bool comment = text.starts_with("//") || text.starts_with("/*");
  if (comment) {
    text = Stripped(text.substr(2));
    if (text.ends_with("*/")) text = Stripped(text.substr(0, text.size() - 2));
  }
  if (text == "..." || text == "…") return true;
  const bool starts = text.starts_with("...") || text.starts_with("…");
  const bool ends = text.ends_with("...") || text.ends_with("…");
  if (!comment || (!starts && !ends)) return false;
  if (starts && ends) return true;
  const std::string lower = absl::AsciiStrToLower(std::string(text));
  for (const char* word : {"existing", "unchanged", "rest", "same", "remain",
                           "previous", "code", "as before"}) {
    if (absl::StrContains(lower, word)) return true;
  }
  return false;
}

bool IsPathLike(std::string_view name) {
  if (name.empty() || name.find_first_of(" \t<>;{}=,") != std::string::npos)
    return false;
  const size_t dot = name.rfind('.');
  return dot != std::string_view::npos && dot > 0 && name.size() - dot <= 5;
}

bool NamesPath(std::string_view name, std::string_view path) {
  if (path == name) return true;
  while (name.starts_with("./")) name.remove_prefix(2);
  return !name.empty() && path.size() > name.size() && path.ends_with(name) &&
         (name[0] == '/' || path[path.size() - name.size() - 1] == '/');
}

class Applier {
 public:
  explicit Applier(const EvolvableSource& state)
      : before_(state), now_(state) {}

  absl::StatusOr<AppliedAnswer> Apply(const ParsedAnswer& answer) {
    for (const EditBlock& block : answer.edits)
      Note(block.line, ApplyEdit(block));
    for (const RegionBlock& block : answer.regions)
      Note(block.line, ApplyRegion(block));
    if (!failure_.ok()) return Failure();
    // Where regions meet they may lie otherwise than block after block showed;
    // this is how they are seen from now on.
    auto after = before_.At(now_.files());
    if (!after.ok()) return after.status();
    absl::Status closed = CheckSelfContained(before_, *after);
    if (!closed.ok()) return closed;
    AppliedAnswer applied{answer.format, before_.DropUnchanged(now_.files()),
                          ""};
    if (applied.files.empty()) {
      return absl::AlreadyExistsError(
          "answer: got the code as it is, expected a change of it");
    }
    applied.diff = UnifiedDiff(before_, applied.files);
    return applied;
  }

 private:
  void Note(size_t line, const absl::Status& status) {
    if (status.ok()) return;
    if (failure_.ok()) failure_ = status;
    ++failures_;
    if (failures_ <= kMaxReports) {
      absl::StrAppend(&report_, "block at line ", line, ": ",
                      std::string(status.message()), "\n");
    }
  }

  absl::Status Failure() const {
    return absl::Status(
        failure_.code(),
        absl::StrCat("answer: ", report_,
                     failures_ > kMaxReports
                         ? absl::StrCat("and ", failures_ - kMaxReports,
                                        " more blocks\n")
                         : ""));
  }

  absl::Status CheckNothingLeftOut(std::string_view text) const {
    for (const std::string_view line : SplitLines(text)) {
      if (!LooksElided(line)) continue;
      const std::string_view wanted = Stripped(line);
      const bool quoted =
          std::any_of(before_.files().begin(), before_.files().end(),
                      [&](const auto& file) {
                        return file.second.find(wanted) != std::string::npos;
                      });
      if (quoted) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("got \"", std::string(wanted),
                       "\" in the place of code, expected all of the code"));
    }
    return absl::OkStatus();
  }

  // The files that a block may mean. Empty hints, or prose: all.
  absl::StatusOr<std::vector<std::string>> FilesOf(const EditBlock& block) {
    for (const std::string& hint : block.file_hints) {
      const std::vector<std::string> words =
          absl::StrSplit(hint, absl::ByAnyChar(" \t:"), absl::SkipEmpty());
      for (const std::string& word : words) {
        const std::string_view name = Undecorated(word);
        std::vector<std::string> files;
        for (const auto& [path, text] : now_.files()) {
          if (NamesPath(name, path)) files.push_back(path);
        }
        if (files.empty()) continue;
        named_ = files;
        return files;
      }
      if (words.size() == 1 && IsPathLike(Undecorated(words[0]))) {
        return absl::InvalidArgumentError(
            absl::StrCat("got file ", std::string(Undecorated(words[0])),
                         ", expected one that may change: ", ListFiles()));
      }
    }
    std::vector<std::string> all;
    for (const auto& [path, text] : now_.files()) all.push_back(path);
    return all;
  }

  std::string ListFiles() const {
    return absl::StrJoin(now_.files(), ", ",
                         [](std::string* out, const auto& file) {
                           absl::StrAppend(out, file.first);
                         });
  }

  struct Place {
    std::string path;
    Match match;
  };

  bool TouchesRegion(const Place& place) const {
    return std::any_of(now_.regions().begin(), now_.regions().end(),
                       [&](const Region& region) {
                         return region.path == place.path &&
                                place.match.begin <= region.end &&
                                region.begin <= place.match.end;
                       });
  }

  std::string Where(const Place& place) const {
    return absl::StrCat(place.path, ":",
                        LineOf(now_.files().at(place.path), place.match.begin));
  }

  absl::StatusOr<Place> Find(const EditBlock& block,
                             const std::vector<std::string>& files) const {
    std::optional<Place> outside;
    for (const MatchRule rule : {MatchRule::kWholeLines, MatchRule::kTokens,
                                 MatchRule::kBlanksAside}) {
      std::vector<Place> places;
      for (const std::string& path : files) {
        for (const Match& match :
             FindMatches(now_.files().at(path), block.search, rule)) {
          const Place place{path, match};
          if (TouchesRegion(place)) {
            places.push_back(place);
          } else if (!outside) {
            outside = place;
          }
        }
      }
      if (places.size() > 1) places = OfTheNamedFile(std::move(places));
      if (places.size() > 1) return Ambiguous(places);
      if (!places.empty()) return places[0];
    }
    if (outside) {
      return absl::PermissionDeniedError(
          absl::StrCat("got a change at ", Where(*outside),
                       ", outside of the regions, expected changes inside of "
                       "them only"));
    }
    return absl::NotFoundError(absl::StrCat(
        "got a SEARCH text that is nowhere in the regions, expected lines "
        "exactly as they stand there\n",
        NearestMiss(now_, block.search)));
  }

  // A block without a name goes on in the file that was named last.
  std::vector<Place> OfTheNamedFile(std::vector<Place> places) const {
    std::vector<Place> of_named = places;
    std::erase_if(of_named, [&](const Place& place) {
      return std::find(named_.begin(), named_.end(), place.path) ==
             named_.end();
    });
    return of_named.empty() ? places : of_named;
  }

  absl::Status Ambiguous(const std::vector<Place>& places) const {
    std::vector<std::string> lines;
    for (const Place& place : places) {
      if (lines.size() == kMaxPlaces) break;
      lines.push_back(Where(place));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "got a SEARCH text that is at ", places.size(),
        " places, expected one; add lines around it: ",
        absl::StrJoin(lines, ", "), places.size() > kMaxPlaces ? ", ..." : ""));
  }

  absl::Status ApplyEdit(const EditBlock& block) {
    if (Stripped(block.search).empty()) {
      return absl::InvalidArgumentError(
          "got an empty SEARCH text, expected the lines to be replaced");
    }
    for (const std::string* text : {&block.search, &block.replace}) {
      absl::Status whole = CheckNothingLeftOut(*text);
      if (!whole.ok()) return whole;
    }
    auto files = FilesOf(block);
    if (!files.ok()) return files.status();
    auto place = Find(block, *files);
    if (!place.ok()) return place.status();
    const std::string& text = now_.files().at(place->path);
    Match match = place->match;
    std::string replacement =
        FittedReplacement(text, match, block.search, block.replace);
    // Of lines that go nothing stays, not even their end.
    if (replacement.empty() && match.end < text.size() &&
        text[match.end] == '\n' &&
        (match.begin == 0 || text[match.begin - 1] == '\n') &&
        RegionAround(now_, place->path, match.begin, match.end + 1) != nullptr)
      ++match.end;
    return Replace(place->path, match.begin, match.end, replacement);
  }

  absl::StatusOr<size_t> IndexOf(const RegionBlock& block) const {
    const std::vector<Region>& regions = now_.regions();
    if (block.label.empty()) {
      std::vector<size_t> kernels;
      for (size_t i = 0; i < regions.size(); ++i) {
        if (regions[i].kind == RegionKind::kKernel) kernels.push_back(i);
      }
      if (kernels.size() == 1) return kernels[0];
    }
    for (size_t i = 0; i < regions.size(); ++i) {
      if (RegionLabel(i) == block.label) return i;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("got region \"", block.label, "\", expected one of R1 to ",
                     RegionLabel(regions.size() - 1)));
  }

  absl::Status ApplyRegion(const RegionBlock& block) {
    absl::Status whole = CheckNothingLeftOut(block.text);
    if (!whole.ok()) return whole;
    auto index = IndexOf(block);
    if (!index.ok()) return index.status();
    const Region region = now_.regions()[*index];
    const std::string& text = now_.files().at(region.path);
    return Replace(region.path, region.begin, region.end,
                   FittedReplacement(text, {region.begin, region.end, true}, "",
                                     OwnText(text, region, block.text)));
  }

  // Without what stands outside of the region in its first and last line,
  // "#define" or ";", which models write along.
  static std::string_view OwnText(std::string_view file, const Region& region,
                                  std::string_view text) {
    text = Stripped(text);
    const size_t newline = file.substr(0, region.begin).rfind('\n');
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view before =
        Stripped(file.substr(line, region.begin - line));
    const size_t end = file.find('\n', region.end);
    const std::string_view after =
        Stripped(file.substr(region.end, end - region.end));
    if (text.starts_with(before)) text.remove_prefix(before.size());
    if (text.ends_with(after)) text.remove_suffix(after.size());
    return Stripped(text);
  }

  absl::Status Replace(const std::string& path, size_t begin, size_t end,
                       const std::string& by) {
    std::string changed = now_.files().at(path);
    changed.replace(begin, end - begin, by);
    auto after = now_.At({{path, std::move(changed)}});
    if (!after.ok()) return after.status();
    now_ = *std::move(after);
    return absl::OkStatus();
  }

  const EvolvableSource& before_;
  EvolvableSource now_;
  std::vector<std::string> named_;
  absl::Status failure_;  // the first
  size_t failures_ = 0;
  std::string report_;
};

}  // namespace

std::string RegionLabel(size_t index) { return absl::StrCat("R", index + 1); }

absl::StatusOr<AppliedAnswer> ApplyAnswer(const EvolvableSource& state,
                                          std::string_view answer) {
  auto parsed = ParseAnswer(answer);
  if (!parsed.ok()) return parsed.status();
  return Applier(state).Apply(*parsed);
}

}  // namespace reprise::evolution
