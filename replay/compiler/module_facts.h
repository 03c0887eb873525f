// What a reply says about a module beside its code: kernels with the layout of
// their parameters, device variables, instruction counts. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_MODULE_FACTS_H_
#define REPRISE_REPLAY_COMPILER_MODULE_FACTS_H_

#include <string>
#include <vector>

#include "llvm/IR/Module.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// The kernels as NVPTX sees them: parameter layout, launch bound, static shared
// memory, and what the source says (kernel_metadata.h). For device modules,
// before any lowering to the host.
std::vector<v1::CompiledKernelInfo> KernelFacts(
    const std::vector<std::string>& kernels, const llvm::Module& module);

// Static shared memory that the function and what it calls use.
uint32_t StaticSharedBytes(const llvm::Function& kernel);

// Device variables that launches share, by symbol.
std::vector<v1::ModuleGlobal> GlobalFacts(const llvm::Module& module);

// Instructions by opcode name.
void CountInstructions(const llvm::Module& module, v1::CodeFacts& facts);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_MODULE_FACTS_H_
