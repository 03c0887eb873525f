// LLVM's middle end: a textual pipeline over a module.
#ifndef REPRISE_REPLAY_COMPILER_PIPELINE_H_
#define REPRISE_REPLAY_COMPILER_PIPELINE_H_

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Target/TargetMachine.h"

namespace reprise {

// Hears what the compiler is about to do; for naming the pass that crashed.
using ProgressNote = std::function<void(std::string_view)>;

// Runs `pipeline` (empty: "default<O3>") with the target's cost model and
// passes, then the verifier. INVALID_ARGUMENT: LLVM does not understand the
// text, or the passes left invalid IR; with LLVM's message. `test_faults`: the
// text may name the passes of test_faults.h. One call at a time for a module
// and its context.
absl::Status RunPipeline(const std::string& pipeline,
                         llvm::TargetMachine& target, const ProgressNote& note,
                         bool test_faults, llvm::Module& module);

// Runs passes that need no target, without the verifier. As RunPipeline.
void RunPasses(llvm::ModulePassManager& passes, llvm::Module& module);

// The verifier's complaint, or empty.
std::string VerifierErrors(const llvm::Module& module);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_PIPELINE_H_
