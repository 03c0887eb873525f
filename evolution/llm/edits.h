// Applies a model's answer to a state of the evolvable source.
//
// A SEARCH text has to be at exactly one place that touches a region. It is
// looked for as whole lines; then, where it is nowhere so, between any two
// tokens; then without regard to blanks, indentation and ends of lines, and the
// new text gets the file's indentation and ends of lines. Blocks are applied
// one after the other, each to what the ones before gave. All are, or none.
//
// Pure functions; thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_EDITS_H_
#define REPRISE_EVOLUTION_LLM_EDITS_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "evolution/llm/answer.h"
#include "evolution/source.h"

namespace reprise::evolution {

struct AppliedAnswer {
  AnswerFormat format = AnswerFormat::kEdits;
  FileContents files;  // those that differ from the state's, whole
  std::string diff;    // against the state, as UnifiedDiff
};

// Applies the blocks of `answer` to `state`: the recorded source or what
// EvolvableSource::At gives. Labels R1, R2, ... are state.regions() in their
// order. Every result is within the regions and ends what it begins
// (CheckSelfContained).
//
// Errors are words for the model, with every block that failed (the first five
// of them):
// INVALID_ARGUMENT     not an answer (ParseAnswer), text left out with "...",
// no
//                      such file or label, or something left open
// NOT_FOUND            a SEARCH text is nowhere; the nearest miss is shown
// FAILED_PRECONDITION  a SEARCH text is at several places; they are listed
// PERMISSION_DENIED    a change outside of the regions; file and line are named
// ALREADY_EXISTS       it changes nothing
absl::StatusOr<AppliedAnswer> ApplyAnswer(const EvolvableSource& state,
                                          std::string_view answer);

// The label of a region by its index in regions(): "R1" for 0.
std::string RegionLabel(size_t index);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_EDITS_H_
