#include "evolution/llm/answer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "evolution/llm/text.h"
#include "evolution/tokens.h"

namespace reprise::evolution {
namespace {

using Lines = std::vector<std::string_view>;

// What follows 5 to 12 of `mark` at the start; nullopt: something else stands
// there.
std::optional<std::string_view> AfterMarks(std::string_view line, char mark) {
  const std::string_view text = Stripped(line);
  const size_t count = std::min(text.find_first_not_of(mark), text.size());
  if (count < 5 || count > 12) return std::nullopt;
  return Stripped(text.substr(count));
}

bool StartsWithWord(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if (absl::ascii_toupper(text[i]) != word[i]) return false;
  }
  return text.size() == word.size() || !IsWordCharacter(text[word.size()]);
}

// What stands behind the marker, maybe a file's name.
std::optional<std::string_view> SearchMarker(std::string_view line) {
  const auto rest = AfterMarks(line, '<');
  if (!rest) return std::nullopt;
  for (const std::string_view word : {"SEARCH", "ORIGINAL", "HEAD"}) {
    if (StartsWithWord(*rest, word)) return rest->substr(word.size());
  }
  return std::nullopt;
}

bool IsDivider(std::string_view line) {
  const auto rest = AfterMarks(line, '=');
  return rest && rest->empty();
}

bool IsReplaceMarker(std::string_view line) {
  const auto rest = AfterMarks(line, '>');
  return rest && (rest->empty() || StartsWithWord(*rest, "REPLACE") ||
                  StartsWithWord(*rest, "UPDATED"));
}

struct Fence {
  char mark = '`';
  size_t count = 0;
  std::string_view info;
};

std::optional<Fence> FenceOf(std::string_view line) {
  const std::string_view text = Stripped(line);
  if (text.empty() || (text[0] != '`' && text[0] != '~')) return std::nullopt;
  const size_t count = std::min(text.find_first_not_of(text[0]), text.size());
  if (count < 3) return std::nullopt;
  const std::string_view info = Stripped(text.substr(count));
  // ```code``` within a line
  if (info.find('`') != std::string_view::npos) return std::nullopt;
  return Fence{text[0], count, info};
}

std::string Join(const Lines& lines) {
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    out += lines[i];
  }
  return out;
}

// A block's body without fences around all of it.
Lines WithoutFences(Lines lines) {
  const auto blank = [](std::string_view line) {
    return Stripped(line).empty();
  };
  const auto first = std::find_if_not(lines.begin(), lines.end(), blank);
  if (first == lines.end() || !FenceOf(*first)) return lines;
  const auto last = std::find_if_not(lines.rbegin(), lines.rend(), blank);
  if (last.base() - first < 2 || !FenceOf(*last)) return lines;
  return Lines(first + 1, last.base() - 1);
}

absl::Status Malformed(size_t line, std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "answer: got ", std::string(what), " at line ", line,
      ", expected <<<<<<< SEARCH, the old lines, =======, the new lines, "
      ">>>>>>> REPLACE, each marker on a line of its own"));
}

class EditParser {
 public:
  explicit EditParser(const Lines& lines) : lines_(lines) {}

  absl::StatusOr<std::vector<EditBlock>> Parse() {
    std::vector<EditBlock> blocks;
    for (size_t i = 0; i < lines_.size();) {
      if (!SearchMarker(lines_[i])) {
        ++i;
        continue;
      }
      EditBlock block;
      block.line = i + 1;
      block.file_hints = Hints(i);
      absl::Status status = ParseBlock(&i, &block);
      if (!status.ok()) return status;
      blocks.push_back(std::move(block));
    }
    return blocks;
  }

 private:
  // Behind the marker, at the fence around it, and in the line before.
  std::vector<std::string> Hints(size_t at) const {
    std::vector<std::string> hints = {std::string(*SearchMarker(lines_[at]))};
    while (at > 0) {
      const std::string_view line = lines_[--at];
      if (Stripped(line).empty()) continue;
      if (IsReplaceMarker(line)) break;
      if (const auto fence = FenceOf(line)) {
        hints.emplace_back(fence->info);
        continue;
      }
      hints.emplace_back(line);
      break;
    }
    std::erase_if(
        hints, [](const std::string& hint) { return Stripped(hint).empty(); });
    return hints;
  }

  // From the marker at *at; leaves *at behind the block.
  absl::Status ParseBlock(size_t* at, EditBlock* block) const {
    const size_t begin = *at + 1;
    size_t divider = begin;
    while (divider < lines_.size() && !IsDivider(lines_[divider])) {
      if (SearchMarker(lines_[divider]) || IsReplaceMarker(lines_[divider]))
        return Malformed(divider + 1, "another marker before the =======");
      ++divider;
    }
    if (divider == lines_.size())
      return Malformed(begin, "a SEARCH block without its =======");
    size_t end = divider + 1;
    while (end < lines_.size() && !IsReplaceMarker(lines_[end]) &&
           !SearchMarker(lines_[end])) {
      if (IsDivider(lines_[end])) return Malformed(end + 1, "a second =======");
      ++end;
    }
    const bool marked = end < lines_.size() && IsReplaceMarker(lines_[end]);
    *at = marked ? end + 1 : end;
    if (!marked) {
      // The end of the fence around it says as much.
      size_t fence = divider + 1;
      while (fence < end && !FenceOf(lines_[fence])) ++fence;
      if (fence == end || !FenceOf(lines_[fence])->info.empty())
        return Malformed(begin, "a SEARCH block without its >>>>>>> REPLACE");
      end = fence;
    }
    block->search = Join(WithoutFences(Part(begin, divider)));
    block->replace = Join(WithoutFences(Part(divider + 1, end)));
    return absl::OkStatus();
  }

  Lines Part(size_t begin, size_t end) const {
    return Lines(lines_.begin() + static_cast<long>(begin),
                 lines_.begin() + static_cast<long>(end));
  }

  const Lines& lines_;
};

// The one word R<number> of a line; "": none, or several.
std::string LabelIn(std::string_view line) {
  std::string label;
  Lexer lexer(line);
  while (lexer.Next()) {
    const std::string_view word = lexer.token();
    if (word.size() < 2 || word.size() > 6 || word[0] != 'R' ||
        !std::all_of(word.begin() + 1, word.end(), absl::ascii_isdigit))
      continue;
    if (!label.empty() && label != word) return "";
    label = word;
  }
  return label;
}

// Of a comment that is all of its line.
std::string LabelInComment(std::string_view line) {
  const std::string_view text = Stripped(line);
  return text.starts_with("//") || text.starts_with("/*")
             ? LabelIn(text.substr(2))
             : "";
}

bool IsCode(std::string_view info) {
  const std::string language =
      absl::AsciiStrToLower(std::string(info.substr(0, info.find(' '))));
  for (const char* name : {"", "cuda", "cu", "cpp", "c++", "c", "cuh", "h"}) {
    if (language == name) return true;
  }
  return !LabelIn(info).empty();
}

absl::StatusOr<std::vector<RegionBlock>> ParseRegions(const Lines& lines) {
  std::vector<RegionBlock> blocks;
  std::string_view before;  // the last line with text outside of blocks
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto fence = FenceOf(lines[i]);
    if (!fence) {
      if (!Stripped(lines[i]).empty()) before = lines[i];
      continue;
    }
    RegionBlock block;
    block.line = i + 1;
    Lines body;
    bool closed = false;
    for (++i; i < lines.size() && !closed; ++i) {
      const auto end = FenceOf(lines[i]);
      closed = end && end->mark == fence->mark && end->count >= fence->count &&
               end->info.empty();
      if (!closed) body.push_back(lines[i]);
    }
    --i;
    if (!closed) {
      return absl::InvalidArgumentError(
          absl::StrCat("answer: got no end of the code block at line ",
                       block.line, ", expected the whole block"));
    }
    block.label = LabelIn(fence->info);
    if (block.label.empty()) block.label = LabelIn(before);
    if (block.label.empty() && !body.empty()) {
      block.label = LabelInComment(body[0]);
      if (!block.label.empty()) body.erase(body.begin());
    }
    before = {};
    block.text = Join(body);
    if (IsCode(fence->info)) blocks.push_back(std::move(block));
  }
  return blocks;
}

absl::StatusOr<std::vector<RegionBlock>> ChooseRegions(
    std::vector<RegionBlock> blocks) {
  const auto unnamed = [](const RegionBlock& block) {
    return block.label.empty();
  };
  // Beside blocks with labels, those without are examples.
  if (!std::all_of(blocks.begin(), blocks.end(), unnamed))
    std::erase_if(blocks, unnamed);
  if (blocks.empty()) {
    return absl::InvalidArgumentError(
        "answer: got neither a SEARCH/REPLACE block nor a code block with a "
        "region's new text, expected at least one");
  }
  if (blocks.size() > 1 && unnamed(blocks[0])) {
    return absl::InvalidArgumentError(absl::StrCat(
        "answer: got ", blocks.size(),
        " code blocks without a region's label, expected the label (R1, R2, "
        "...) on the line before each block"));
  }
  return blocks;
}

}  // namespace

std::string_view AnswerFormatName(AnswerFormat format) {
  return format == AnswerFormat::kEdits ? "edits" : "regions";
}

absl::StatusOr<ParsedAnswer> ParseAnswer(std::string_view answer) {
  if (answer.size() > kMaxAnswerBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("answer: got ", answer.size(), " bytes, expected at most ",
                     kMaxAnswerBytes));
  }
  constexpr std::string_view kThought = "</think>";
  const size_t thought = answer.rfind(kThought);
  const size_t skipped =
      thought == std::string_view::npos ? 0 : thought + kThought.size();
  Lines lines = SplitLines(answer);
  // Blank lines in the place of thoughts keep the numbers right.
  const auto gone = std::count(answer.begin(), answer.begin() + skipped, '\n');
  std::fill(lines.begin(), lines.begin() + gone, std::string_view());
  ParsedAnswer parsed;
  const bool edits = std::any_of(
      lines.begin(), lines.end(),
      [](std::string_view line) { return SearchMarker(line).has_value(); });
  if (edits) {
    auto blocks = EditParser(lines).Parse();
    if (!blocks.ok()) return blocks.status();
    parsed.edits = *std::move(blocks);
    return parsed;
  }
  parsed.format = AnswerFormat::kRegions;
  auto blocks = ParseRegions(lines);
  if (!blocks.ok()) return blocks.status();
  blocks = ChooseRegions(*std::move(blocks));
  if (!blocks.ok()) return blocks.status();
  parsed.regions = *std::move(blocks);
  return parsed;
}

}  // namespace reprise::evolution
