#include "replay/compiler/test_faults.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "llvm/IR/Instructions.h"
#include "llvm/Support/ErrorHandling.h"

namespace reprise {
namespace {

[[noreturn]] void Hang() {
  for (;;) pause();
}

void ExhaustMemory() {
  std::vector<char*> blocks;
  for (;;) {
    constexpr size_t kBytes = size_t{64} << 20;
    char* block = new char[kBytes];
    // Touched at one end only: the limit is on addresses.
    block[0] = 1;
    blocks.push_back(block);
  }
}

// A value used before its block defines it.
void BreakIr(llvm::Function& function) {
  for (llvm::BasicBlock& block : function) {
    llvm::Instruction* first = &*block.begin();
    llvm::Instruction* last = block.getTerminator();
    if (first == last || first->use_empty()) continue;
    first->moveBefore(last->getIterator());
    return;
  }
}

struct FaultPass : llvm::PassInfoMixin<FaultPass> {
  explicit FaultPass(llvm::StringRef given) : fault(given.str()) {}
  llvm::PreservedAnalyses run(llvm::Function& function,
                              llvm::FunctionAnalysisManager&) {
    if (fault == "reprise-crash") raise(SIGSEGV);
    if (fault == "reprise-abort")
      llvm::report_fatal_error("a fault on purpose");
    if (fault == "reprise-hang") Hang();
    if (fault == "reprise-exhaust-memory") ExhaustMemory();
    if (fault == "reprise-break-ir") BreakIr(function);
    return llvm::PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
  std::string fault;
};

}  // namespace

void RegisterTestFaults(llvm::PassBuilder& builder) {
  builder.registerPipelineParsingCallback(
      [](llvm::StringRef name, llvm::FunctionPassManager& passes,
         llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
        if (name != "reprise-crash" && name != "reprise-abort" &&
            name != "reprise-hang" && name != "reprise-exhaust-memory" &&
            name != "reprise-break-ir")
          return false;
        passes.addPass(FaultPass(name));
        return true;
      });
}

}  // namespace reprise
