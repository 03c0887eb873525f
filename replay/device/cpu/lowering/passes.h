// Runs LLVM passes over a function or a module with analyses of its own.
// Internal to the lowering. Not thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CPU_LOWERING_PASSES_H_
#define REPRISE_REPLAY_DEVICE_CPU_LOWERING_PASSES_H_

#include <llvm/Passes/PassBuilder.h>

namespace reprise::cpu {

class PassRunner {
 public:
  PassRunner() {
    builder_.registerModuleAnalyses(modules_);
    builder_.registerCGSCCAnalyses(sccs_);
    builder_.registerFunctionAnalyses(functions_);
    builder_.registerLoopAnalyses(loops_);
    builder_.crossRegisterProxies(loops_, functions_, sccs_, modules_);
  }
  void Run(llvm::Function& function, llvm::FunctionPassManager& passes) {
    const llvm::PreservedAnalyses preserved = passes.run(function, functions_);
    functions_.invalidate(function, preserved);
  }
  void Run(llvm::Module& module, llvm::ModulePassManager& passes) {
    const llvm::PreservedAnalyses preserved = passes.run(module, modules_);
    modules_.invalidate(module, preserved);
  }

 private:
  llvm::LoopAnalysisManager loops_;
  llvm::FunctionAnalysisManager functions_;
  llvm::CGSCCAnalysisManager sccs_;
  llvm::ModuleAnalysisManager modules_;
  llvm::PassBuilder builder_;
};

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_LOWERING_PASSES_H_
