// Puts text of others into a prompt so that it stays data: no line of it can
// end the block that it stands in. Pure functions; thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_QUOTE_H_
#define REPRISE_EVOLUTION_LLM_QUOTE_H_

#include <string>
#include <string_view>

namespace reprise::evolution {

// A block between two lines of backticks, one more than the longest run of them
// in `text` and at least four; after the first, `language`. The text is valid
// UTF-8 with "\n" ends of lines afterwards: other bytes and control characters
// become U+FFFD.
std::string Quoted(std::string_view text, std::string_view language = "");

// `text` as valid UTF-8 with "\n" ends of lines, otherwise as Quoted.
std::string CleanText(std::string_view text);

// One line without backticks or control characters, of at most 300 bytes: names
// and sentences of others.
std::string QuotedLine(std::string_view text);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_QUOTE_H_
