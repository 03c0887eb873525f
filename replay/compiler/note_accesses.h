// Makes device code mark every access to global memory, as
// replay/device/cuda/access_notes.h says, and sum its operations and bytes.
//
// An access is a load, a store, an atomic operation, a copy or a fill, an
// intrinsic or inline PTX that does one. Before it (after it where it is a
// comparison that has to hold) comes a call of a function of note_functions.cc,
// which is linked into the module. Local, shared and parameter memory is left
// out where the IR shows it, by a test of the address elsewhere; constants that
// nobody can write are left out too.
//
// Each function sums in variables of its own, which become registers, and adds
// them to the totals where it ends.
#ifndef REPRISE_REPLAY_COMPILER_NOTE_ACCESSES_H_
#define REPRISE_REPLAY_COMPILER_NOTE_ACCESSES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "llvm/IR/Module.h"

namespace reprise {

// Run this pipeline before: local variables become values, which are no
// accesses, and small functions become part of their callers, which know more
// about pointers. Not infer-address-spaces: where a local table is reached by
// its own address space, LLVM's instcombine later puts the constant that it is
// a copy of in its place and leaves addresses that are poison.
inline constexpr char kPipelineBeforeNotes[] =
    "always-inline,"
    "cgscc(devirt<4>(inline,function(sroa,early-cse<memssa>,simplifycfg))),"
    "globaldce";

// Changes the module in place; run the wanted pipeline after it. Returns what
// accesses memory and could not be noted, one sentence each; empty: the notes
// will be complete. INVALID_ARGUMENT: the module has a name that begins with
// "__reprise_". Thread-safe for modules of different contexts.
absl::StatusOr<std::vector<std::string>> NoteAccesses(llvm::Module& module);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_NOTE_ACCESSES_H_
