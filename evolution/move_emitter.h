// The emitter that needs no model: combines moves (move.h). A proposal adds a
// move to a parent's set, removes one, or swaps one for another of its site; a
// bandit over kinds of move learns which pay. Not thread-safe.
#ifndef REPRISE_EVOLUTION_MOVE_EMITTER_H_
#define REPRISE_EVOLUTION_MOVE_EMITTER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "evolution/emitter.h"
#include "evolution/move.h"

namespace reprise::evolution {

struct MoveEmitterOptions {
  uint64_t seed = 0;
  // Moves that change the last bits of floating-point results.
  bool allow_inexact = true;
  int max_moves_per_proposal = 12;
  // Each kind is tried alone, once, at all the sites that take it together,
  // before combinations begin.
  bool singles_first = true;
};

// INVALID_ARGUMENT: two moves have one key, or a move's edits are not within
// `source`.
absl::StatusOr<std::unique_ptr<Emitter>> NewMoveEmitter(
    EvolvableSource source, std::vector<Move> moves,
    MoveEmitterOptions options = {});

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_MOVE_EMITTER_H_
