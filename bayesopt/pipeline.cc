#include "bayesopt/pipeline.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::bayesopt {
namespace {

constexpr int kMaxDepth = 16;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<PassNode>> Parse() {
    auto list = List(0);
    if (!list.ok()) return list;
    if (Peek() != '\0') return Error("an unmatched ')'");
    return list;
  }

 private:
  absl::StatusOr<std::vector<PassNode>> List(int depth) {
    if (depth > kMaxDepth) return Error("nesting deeper than 16");
    std::vector<PassNode> nodes;
    while (true) {
      auto node = Element(depth);
      if (!node.ok()) return node.status();
      nodes.push_back(*std::move(node));
      if (Peek() != ',') return nodes;
      ++at_;
    }
  }

  absl::StatusOr<PassNode> Element(int depth) {
    PassNode node;
    Peek();
    const size_t begin = at_;
    while (at_ < text_.size() && IsNameCharacter(text_[at_])) ++at_;
    node.name = std::string(text_.substr(begin, at_ - begin));
    if (node.name.empty()) return Error("no pass name");
    if (Peek() == '<') {
      auto parameters = Bracketed();
      if (!parameters.ok()) return parameters.status();
      node.parameters = *std::move(parameters);
    }
    if (Peek() == '(') {
      ++at_;
      node.adaptor = true;
      auto children = List(depth + 1);
      if (!children.ok()) return children.status();
      node.children = *std::move(children);
      if (Peek() != ')') return Error("no ')'");
      ++at_;
    }
    return node;
  }

  absl::StatusOr<std::string> Bracketed() {
    const size_t begin = ++at_;
    int open = 1;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '<') ++open;
      if (c == '>' && --open == 0) {
        std::string parameters(text_.substr(begin, at_ - begin - 1));
        while (!parameters.empty() && parameters.back() == ';') {
          parameters.pop_back();
        }
        return parameters;
      }
    }
    return Error("no '>'");
  }

  static bool IsNameCharacter(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ||
           c == '_';
  }

  // The next character that is not white space; '\0' at the end.
  char Peek() {
    while (at_ < text_.size() &&
           std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "pipeline: got ", std::string(what), " at offset ", at_, ", before \"",
        std::string(text_.substr(std::min(at_, text_.size()), 24)),
        "\"; expected pass[<parameters>][(passes)], separated by commas"));
  }

  std::string_view text_;
  size_t at_ = 0;
};

void Print(const std::vector<PassNode>& nodes, std::string& out) {
  bool first = true;
  for (const PassNode& node : nodes) {
    if (!first) out += ',';
    first = false;
    absl::StrAppend(&out, node.name);
    if (!node.parameters.empty())
      absl::StrAppend(&out, "<", node.parameters, ">");
    if (node.adaptor) {
      out += '(';
      Print(node.children, out);
      out += ')';
    }
  }
}

void Flatten(const std::vector<PassNode>& nodes, const std::string& prefix,
             std::vector<std::string>& out) {
  for (const PassNode& node : nodes) {
    if (node.adaptor) {
      Flatten(node.children, absl::StrCat(prefix, node.name, "/"), out);
    } else if (node.parameters.empty()) {
      out.push_back(absl::StrCat(prefix, node.name));
    } else {
      out.push_back(absl::StrCat(prefix, node.name, "<", node.parameters, ">"));
    }
  }
}

}  // namespace

std::string_view PassLevelName(PassLevel level) {
  switch (level) {
    case PassLevel::kModule:
      return "module";
    case PassLevel::kCgscc:
      return "cgscc";
    case PassLevel::kFunction:
      return "function";
    case PassLevel::kLoop:
      return "loop";
    case PassLevel::kLoopMssa:
      return "loop-mssa";
  }
  return "unknown";
}

absl::StatusOr<Pipeline> ParsePipeline(std::string_view text) {
  auto elements = Parser(text).Parse();
  if (!elements.ok()) return elements.status();
  return Pipeline{*std::move(elements)};
}

std::string PrintPipeline(const Pipeline& pipeline) {
  std::string out;
  Print(pipeline.elements, out);
  return out;
}

std::vector<std::string> FlattenPipeline(const Pipeline& pipeline) {
  std::vector<std::string> out;
  Flatten(pipeline.elements, "", out);
  return out;
}

int PipelineDistance(const std::vector<std::string>& a,
                     const std::vector<std::string>& b, int limit) {
  // Myers' greedy algorithm: the furthest reach in `a` on each diagonal x - y.
  const int n = static_cast<int>(a.size());
  const int m = static_cast<int>(b.size());
  std::vector<int> reach(2 * limit + 3, 0);
  const int middle = limit + 1;
  for (int d = 0; d <= limit; ++d) {
    for (int k = -d; k <= d; k += 2) {
      const bool down =
          k == -d || (k != d && reach[middle + k - 1] < reach[middle + k + 1]);
      int x = down ? reach[middle + k + 1] : reach[middle + k - 1] + 1;
      if (d == 0) x = 0;
      int y = x - k;
      if (x > n || y > m || y < 0) {
        // Off the grid: keeps the diagonal from being continued.
        reach[middle + k] = x;
        continue;
      }
      while (x < n && y < m && a[x] == b[y]) {
        ++x;
        ++y;
      }
      reach[middle + k] = x;
      if (x >= n && y >= m) return d;
    }
  }
  return limit + 1;
}

PipelineEdits EditsBetween(const std::vector<std::string>& from,
                           const std::vector<std::string>& to) {
  // kept[i][j]: the longest common subsequence of what follows i and j.
  std::vector<std::vector<int>> kept(from.size() + 1,
                                     std::vector<int>(to.size() + 1, 0));
  for (size_t i = from.size(); i-- > 0;) {
    for (size_t j = to.size(); j-- > 0;) {
      kept[i][j] = from[i] == to[j] ? kept[i + 1][j + 1] + 1
                                    : std::max(kept[i + 1][j], kept[i][j + 1]);
    }
  }
  PipelineEdits edits;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    if (i < from.size() && j < to.size() && from[i] == to[j]) {
      ++i;
      ++j;
    } else if (j == to.size() ||
               (i < from.size() && kept[i + 1][j] >= kept[i][j + 1])) {
      edits.removed.push_back(from[i++]);
    } else {
      edits.added.push_back(to[j++]);
    }
  }
  return edits;
}

}  // namespace reprise::bayesopt
