#include "evolution/llm/text.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace reprise::evolution {
namespace {

std::string_view Without(std::string_view text, std::string_view characters) {
  const size_t begin = text.find_first_not_of(characters);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(characters) + 1 - begin);
}

}  // namespace

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string_view Stripped(std::string_view text) {
  return Without(text, " \t\r\n");
}

std::string_view Undecorated(std::string_view text) {
  return Without(text, " \t\r\n*`#:\"'()[]");
}

}  // namespace reprise::evolution
