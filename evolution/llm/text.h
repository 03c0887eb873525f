// Lines of text as models write them. Pure functions; thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_TEXT_H_
#define REPRISE_EVOLUTION_LLM_TEXT_H_

#include <string_view>
#include <vector>

namespace reprise::evolution {

// Without the ends of lines, "\n" or "\r\n". The text's last line may have no
// end; behind an end there is no further line.
std::vector<std::string_view> SplitLines(std::string_view text);

// Without blanks at both ends.
std::string_view Stripped(std::string_view text);

// Without what decorates a name in Markdown: blanks, *, `, #, :, quotes.
std::string_view Undecorated(std::string_view text);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_TEXT_H_
