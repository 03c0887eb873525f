#include "evolution/llm/quote.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace reprise::evolution {
namespace {

constexpr size_t kMaxLineBytes = 300;
constexpr char kReplacement[] = "\xef\xbf\xbd";

bool Continues(std::string_view text, size_t at) {
  return at < text.size() &&
         (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}

// Bytes of the UTF-8 sequence at the start of `text`; 0: it is none.
size_t SequenceLength(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  if (byte < 0x80) return 1;
  const size_t length = byte >= 0xf0 ? 4 : (byte >= 0xe0 ? 3 : 2);
  if (byte < 0xc2 || byte > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!Continues(text, i)) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  // Overlong, surrogates, beyond U+10FFFF; and C1 controls.
  if ((byte == 0xe0 && second < 0xa0) || (byte == 0xed && second > 0x9f) ||
      (byte == 0xf0 && second < 0x90) || (byte == 0xf4 && second > 0x8f) ||
      (byte == 0xc2 && second < 0xa0))
    return 0;
  return length;
}

size_t LongestRun(std::string_view text, char c) {
  size_t longest = 0;
  size_t run = 0;
  for (const char other : text) {
    run = other == c ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

}  // namespace

std::string CleanText(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    const size_t length = SequenceLength(text);
    const bool control =
        (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
    if (text.starts_with("\r\n")) {
      text.remove_prefix(1);
      continue;
    }
    if (length == 0 || control) {
      out += kReplacement;
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string Quoted(std::string_view text, std::string_view language) {
  const std::string clean = CleanText(text);
  const std::string fence(std::max<size_t>(4, LongestRun(clean, '`') + 1), '`');
  return absl::StrCat(fence, std::string(language), "\n", clean,
                      clean.ends_with('\n') || clean.empty() ? "" : "\n",
                      fence);
}

std::string QuotedLine(std::string_view text) {
  std::string line = CleanText(text);
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
    if (c == '`') c = '\'';
  }
  if (line.size() <= kMaxLineBytes) return line;
  size_t end = kMaxLineBytes;
  while (end > 0 && Continues(line, end)) --end;
  return line.substr(0, end) + " [...]";
}

}  // namespace reprise::evolution
