// What a model's answer says to change, before anything is known of the files:
// SEARCH/REPLACE blocks, or new texts of whole regions.
//
//   kernel.cu                      R2
//   <<<<<<< SEARCH                 ```cuda
//   old lines                      the region's whole new text
//   =======                        ```
//   new lines
//   >>>>>>> REPLACE
//
// Models write these with and without code fences, with prose around them,
// CRLF, other lengths of the markers, fences inside of blocks, or a fence's end
// in place of the last marker; all that is understood. An answer with any
// SEARCH marker is of the first sort. What a reasoning model thinks aloud
// before </think> does not count. Pure functions; thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_ANSWER_H_
#define REPRISE_EVOLUTION_LLM_ANSWER_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise::evolution {

// The ways to say a change.
enum class AnswerFormat { kEdits, kRegions };

std::string_view AnswerFormatName(AnswerFormat format);  // "edits", "regions"

// Lines end in "\n" but for the last one of a text, which has no end.
struct EditBlock {
  size_t line = 0;  // of the answer, 1-based
  std::string search;
  std::string replace;
  // Lines near the block that may name its file, the nearest first.
  std::vector<std::string> file_hints;
};

struct RegionBlock {
  size_t line = 0;
  std::string label;  // "R2"; "": none was given
  std::string text;
};

struct ParsedAnswer {
  AnswerFormat format = AnswerFormat::kEdits;
  std::vector<EditBlock> edits;
  // With labels; or a single one without.
  std::vector<RegionBlock> regions;
};

// Longer answers are refused.
inline constexpr size_t kMaxAnswerBytes = 1 << 20;

// INVALID_ARGUMENT says, in words for the model, which line of the answer is
// wrong: no block, or one that lacks a marker or its end.
absl::StatusOr<ParsedAnswer> ParseAnswer(std::string_view answer);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_ANSWER_H_
