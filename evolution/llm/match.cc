#include "evolution/llm/match.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "evolution/tokens.h"

namespace reprise::evolution {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool IsBlank(char c) {
  return absl::ascii_isspace(static_cast<unsigned char>(c));
}

bool WordsMeet(std::string_view text, size_t at) {
  return at > 0 && at < text.size() && IsWordCharacter(text[at - 1]) &&
         IsWordCharacter(text[at]);
}

// A text without blanks, but for one between two words.
struct Squeezed {
  explicit Squeezed(std::string_view all) {
    bool blank = false;
    for (size_t i = 0; i < all.size(); ++i) {
      if (IsBlank(all[i])) {
        blank = true;
        continue;
      }
      if (blank && !text.empty() && IsWordCharacter(text.back()) &&
          IsWordCharacter(all[i])) {
        text += ' ';
        offsets.push_back(i - 1);
      }
      blank = false;
      text += all[i];
      offsets.push_back(i);
    }
  }
  std::string text;
  std::vector<size_t> offsets;  // in the whole text, of each byte
};

// Overlapping ones too.
std::vector<size_t> Find(std::string_view text, std::string_view wanted) {
  std::vector<size_t> places;
  for (size_t at = text.find(wanted); at != kNone;
       at = text.find(wanted, at + 1)) {
    places.push_back(at);
  }
  return places;
}

bool IsWholeLines(std::string_view text, size_t begin, size_t end) {
  return (begin == 0 || text[begin - 1] == '\n') &&
         (end == text.size() || text[end] == '\n');
}

// Blanks that start the line of `offset`, where nothing else comes before it.
std::string_view IndentBefore(std::string_view text, size_t offset) {
  const size_t newline = text.substr(0, offset).rfind('\n');
  const size_t begin = newline == kNone ? 0 : newline + 1;
  const std::string_view before = text.substr(begin, offset - begin);
  return std::all_of(before.begin(), before.end(), IsBlank)
             ? before
             : std::string_view();
}

std::string WithLineEnds(std::string_view text, bool crlf) {
  if (!crlf) return std::string(text);
  std::string out;
  for (const char c : text) {
    if (c == '\n') out += '\r';
    out += c;
  }
  return out;
}

bool HasCrlf(std::string_view text) {
  const size_t newline = text.find('\n');
  return newline != kNone && newline > 0 && text[newline - 1] == '\r';
}

// Each line but the first with `from` at its start replaced by `to`.
std::string Reindented(std::string_view text, std::string_view from,
                       std::string_view to) {
  std::string out;
  bool first = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    const bool blank = std::all_of(line.begin(), line.end(), IsBlank);
    if (!first && !blank && line.starts_with(from)) {
      line.remove_prefix(from.size());
      out += to;
    }
    out += line;
    first = false;
  }
  return out;
}

}  // namespace

std::vector<Match> FindMatches(std::string_view text, std::string_view wanted,
                               MatchRule rule) {
  if (std::all_of(wanted.begin(), wanted.end(), IsBlank)) return {};
  std::vector<Match> matches;
  if (rule == MatchRule::kBlanksAside) {
    const Squeezed all(text), part(wanted);
    for (const size_t at : Find(all.text, part.text)) {
      const size_t end = at + part.text.size();
      if (WordsMeet(all.text, at) || WordsMeet(all.text, end)) continue;
      matches.push_back({all.offsets[at], all.offsets[end - 1] + 1, false});
    }
    return matches;
  }
  for (const size_t at : Find(text, wanted)) {
    const size_t end = at + wanted.size();
    const bool fits = rule == MatchRule::kWholeLines
                          ? IsWholeLines(text, at, end)
                          : !WordsMeet(text, at) && !WordsMeet(text, end);
    if (fits) matches.push_back({at, end, true});
  }
  return matches;
}

std::string FittedReplacement(std::string_view text, const Match& match,
                              std::string_view wanted,
                              std::string_view replacement) {
  const bool crlf = HasCrlf(text);
  if (match.exact) return WithLineEnds(replacement, crlf);
  const std::string_view has = IndentBefore(text, match.begin);
  const size_t first = wanted.find_first_not_of(" \t\r\n");
  const std::string_view given = IndentBefore(wanted, first);
  // The match begins behind the blanks that start its line, and ends before
  // those that end it.
  const size_t newline = replacement.find_first_not_of(" \t\r\n");
  if (newline == kNone) return "";
  const size_t end = replacement.find_last_not_of(" \t\r\n") + 1;
  const std::string_view own = IndentBefore(replacement, newline);
  std::string fitted =
      Reindented(replacement.substr(newline, end - newline), given, has);
  // A first line that is further in than the searched one stays so.
  if (own.size() > given.size() && own.starts_with(given))
    fitted.insert(0, own.substr(given.size()));
  return WithLineEnds(fitted, crlf);
}

}  // namespace reprise::evolution
