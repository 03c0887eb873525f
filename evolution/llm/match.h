// Finds a text in a file as people and models quote it. Pure functions;
// thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_MATCH_H_
#define REPRISE_EVOLUTION_LLM_MATCH_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::evolution {

// Bytes [begin, end) of a file.
struct Match {
  size_t begin = 0;
  size_t end = 0;
  bool exact = true;  // else blanks differ
};

// From the strictest on.
enum class MatchRule { kWholeLines, kTokens, kBlanksAside };

// Places of `wanted` in `text` by one rule, in order. None for a text of blanks
// alone. Linear time but for texts that repeat themselves.
std::vector<Match> FindMatches(std::string_view text, std::string_view wanted,
                               MatchRule rule);

// `replacement` for the text at `match`, which was searched for as `wanted`:
// with the file's ends of lines, and where blanks differ with the file's
// indentation.
std::string FittedReplacement(std::string_view text, const Match& match,
                              std::string_view wanted,
                              std::string_view replacement);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_MATCH_H_
