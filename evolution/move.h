// A move: one self-contained rewrite of the recorded source, as text edits. A
// source state is a set of moves that do not conflict. Plain values and pure
// functions; thread-safe.
#ifndef REPRISE_EVOLUTION_MOVE_H_
#define REPRISE_EVOLUTION_MOVE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "evolution/source.h"

namespace reprise::evolution {

// Replaces bytes [offset, offset + length) of a recorded file.
struct TextEdit {
  std::string path;
  size_t offset = 0;
  size_t length = 0;
  std::string text;
  // Among insertions at one place, lower ranks come first; equal ranks at one
  // place conflict.
  int rank = 0;
  friend bool operator==(const TextEdit&, const TextEdit&) = default;
};

struct Move {
  // Names the move among those of its source: "unroll@kernel.cu:12:5=4".
  std::string key;
  std::string kind;  // "unroll"
  // Moves of one site exclude each other: "unroll@kernel.cu:12:5".
  std::string site;
  std::string description;  // "unroll the loop at kernel.cu:12 by 4"
  bool inexact = false;     // as Proposal::inexact
  std::string claim;        // as Proposal::claim
  // How many copies it makes of the code it is about; those of moves on nested
  // loops multiply.
  int copies = 1;
  std::vector<TextEdit> edits;
  // Moves that share a tag exclude each other though their edits do not
  // overlap.
  std::vector<std::string> tags;
};

// Whether both can be in one state: other sites, no common tag, no overlapping
// edits.
bool Compatible(const Move& a, const Move& b);

// The recorded files with the moves applied. INVALID_ARGUMENT: two moves
// conflict, or an edit lies outside of its file. PERMISSION_DENIED: an edit
// lies outside of the evolvable regions.
absl::StatusOr<FileContents> ApplyMoves(const EvolvableSource& source,
                                        const std::vector<const Move*>& moves);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_MOVE_H_
