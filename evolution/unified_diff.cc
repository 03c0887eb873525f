#include "evolution/unified_diff.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace reprise::evolution {
namespace {

using Lines = std::vector<std::string_view>;  // each with its newline

// Beyond this many differing lines the rest is replaced as a whole.
constexpr int kMaxDifferences = 2000;

struct Step {
  char kind;  // ' ', '-', '+'
  std::string_view line;
};

Lines Split(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

// Myers' greedy algorithm with the reaches of every round kept for the way
// back. Empty: more than kMaxDifferences.
std::vector<std::vector<int>> Reaches(const Lines& a, const Lines& b) {
  const int n = static_cast<int>(a.size());
  const int m = static_cast<int>(b.size());
  std::vector<std::vector<int>> rounds;
  std::vector<int> reach;  // of the round before: [k + d] is diagonal k
  for (int d = 0; d <= kMaxDifferences; ++d) {
    // next[k + d + 1] is the reach on diagonal k; a margin on both sides.
    std::vector<int> next(2 * d + 5, 0);
    for (int k = -d; k <= d; k += 2) {
      const int left = k == -d ? -1 : reach[k - 1 + d];
      const int up = k == d ? -1 : reach[k + 1 + d];
      const bool down = k == -d || (k != d && left < up);
      int x = d == 0 ? 0 : (down ? up : left + 1);
      int y = x - k;
      while (x < n && y < m && a[x] == b[y]) {
        ++x;
        ++y;
      }
      next[k + d + 1] = x;
      if (x >= n && y >= m) {
        rounds.push_back(std::move(next));
        return rounds;
      }
    }
    reach = next;
    rounds.push_back(std::move(next));
  }
  return {};
}

std::vector<Step> Compare(const Lines& a, const Lines& b) {
  std::vector<Step> back;
  const auto rounds = Reaches(a, b);
  int x = static_cast<int>(a.size());
  int y = static_cast<int>(b.size());
  if (rounds.empty()) {
    while (y > 0) back.push_back({'+', b[--y]});
    while (x > 0) back.push_back({'-', a[--x]});
  }
  for (int d = static_cast<int>(rounds.size()) - 1; d >= 0; --d) {
    const int k = x - y;
    int from_x = 0;
    bool down = false;
    if (d > 0) {
      const std::vector<int>& reach = rounds[d - 1];
      const int left = k == -d ? -1 : reach[k - 1 + d];
      const int up = k == d ? -1 : reach[k + 1 + d];
      down = k == -d || (k != d && left < up);
      from_x = down ? up : left + 1;
    }
    while (x > from_x) {
      --x;
      --y;
      back.push_back({' ', a[x]});
    }
    if (d == 0) break;
    if (down) {
      back.push_back({'+', b[--y]});
    } else {
      back.push_back({'-', a[--x]});
    }
  }
  std::reverse(back.begin(), back.end());
  return back;
}

std::vector<Step> Steps(std::string_view before, std::string_view after) {
  const Lines a = Split(before);
  const Lines b = Split(after);
  size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) {
    ++tail;
  }
  std::vector<Step> steps;
  for (size_t i = 0; i < head; ++i) steps.push_back({' ', a[i]});
  for (const Step& step : Compare(Lines(a.begin() + head, a.end() - tail),
                                  Lines(b.begin() + head, b.end() - tail))) {
    steps.push_back(step);
  }
  for (size_t i = a.size() - tail; i < a.size(); ++i) {
    steps.push_back({' ', a[i]});
  }
  return steps;
}

// patch takes a name up to a tab, and quoted names as C does.
std::string Name(const std::string& prefix, const std::string& path) {
  const std::string name = prefix + path;
  bool quote = false;
  std::string escaped;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      char octal[5];
      std::snprintf(octal, sizeof(octal), "\\%03o", byte);
      escaped += octal;
      quote = true;
    } else {
      if (c == '"' || c == '\\') {
        escaped += '\\';
        quote = true;
      }
      escaped += c;
    }
  }
  if (quote) return absl::StrCat("\"", escaped, "\"");
  return name.find(' ') == std::string::npos ? name : name + "\t";
}

std::string Range(size_t before, size_t count) {
  // Of nothing, the range is that after line `before`; else it starts at the
  // next one.
  if (count == 0) return absl::StrCat(before, ",0");
  if (count == 1) return absl::StrCat(before + 1);
  return absl::StrCat(before + 1, ",", count);
}

std::string Hunks(const std::vector<Step>& steps, size_t context) {
  std::string out;
  size_t old_line = 0;
  size_t new_line = 0;
  size_t i = 0;
  while (i < steps.size()) {
    if (steps[i].kind == ' ') {
      ++i;
      ++old_line;
      ++new_line;
      continue;
    }
    // A hunk: from here, `context` back, to where 2 * context equal lines
    // follow.
    const size_t lead = std::min(context, i);
    size_t begin = i;
    while (i - begin < lead && steps[begin - 1].kind == ' ') --begin;
    size_t end = i;
    size_t last_change = i;
    while (end < steps.size() && end - last_change <= 2 * context + 1) {
      if (steps[end].kind != ' ') last_change = end;
      ++end;
    }
    end = std::min(steps.size(), last_change + 1 + context);
    old_line -= i - begin;
    new_line -= i - begin;
    size_t old_count = 0;
    size_t new_count = 0;
    std::string body;
    for (size_t s = begin; s < end; ++s) {
      old_count += steps[s].kind != '+' ? 1 : 0;
      new_count += steps[s].kind != '-' ? 1 : 0;
      body += steps[s].kind;
      body += steps[s].line;
      if (steps[s].line.back() != '\n') {
        body += "\n\\ No newline at end of file\n";
      }
    }
    absl::StrAppend(&out, "@@ -", Range(old_line, old_count), " +",
                    Range(new_line, new_count), " @@\n", body);
    old_line += old_count;
    new_line += new_count;
    i = end;
  }
  return out;
}

std::string Relative(const std::string& path, const std::string& root) {
  std::string prefix = root;
  if (!prefix.empty() && prefix.back() != '/') prefix += '/';
  if (!prefix.empty() && path.rfind(prefix, 0) == 0) {
    return path.substr(prefix.size());
  }
  const size_t start = path.find_first_not_of('/');
  return start == std::string::npos ? path : path.substr(start);
}

}  // namespace

std::string UnifiedDiff(const std::vector<FileChange>& changes,
                        const DiffOptions& options) {
  std::string out;
  for (const FileChange& change : changes) {
    if (change.before == change.after) continue;
    const std::string path = Relative(change.path, options.root);
    absl::StrAppend(
        &out, "--- ", Name("a/", path), "\n+++ ", Name("b/", path), "\n",
        Hunks(Steps(change.before, change.after),
              static_cast<size_t>(std::max(options.context_lines, 0))));
  }
  return out;
}

std::string UnifiedDiff(const EvolvableSource& source,
                        const FileContents& after, const DiffOptions& options) {
  std::vector<FileChange> changes;
  for (const auto& [path, content] : after) {
    const auto before = source.files().find(path);
    changes.push_back(
        {path, before == source.files().end() ? "" : before->second, content});
  }
  return UnifiedDiff(changes, options);
}

std::string CommonDirectory(const std::vector<std::string>& paths) {
  if (paths.empty()) return "";
  std::string common = paths[0].substr(0, paths[0].rfind('/') + 1);
  for (const std::string& path : paths) {
    while (!common.empty() && path.rfind(common, 0) != 0) {
      common.pop_back();
      common.resize(common.rfind('/') + 1);  // npos + 1 is 0
    }
  }
  if (common.size() > 1) common.pop_back();
  return common;
}

}  // namespace reprise::evolution
