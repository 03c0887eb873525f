// LLVM's back ends: target machines for a GPU and for this host, and the text
// or object they make of a module. Thread-safe for different modules.
#ifndef REPRISE_REPLAY_COMPILER_CODEGEN_H_
#define REPRISE_REPLAY_COMPILER_CODEGEN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

// NVPTX for "sm_90a" and the like; the PTX version is the one Clang's driver
// chose for the module's functions, or `newest_ptx` (84 for 8.4) where that is
// older. `fuse`: the backend may fuse a*b+c.
inline constexpr int kAnyPtx = 1000;
absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> CreateGpuTargetMachine(
    const std::string& architecture, const llvm::Module& module, bool fuse,
    int newest_ptx = kAnyPtx);

// This host with all its features. Position-independent: code and constants lie
// together, device memory anywhere in the address space and is reached through
// the global offset table.
absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> CreateHostTargetMachine(
    bool fuse);

// Gives the module's functions the host's processor and features and the wanted
// vector width, declared variables no closeness that they do not have, and
// names of source places a section of their own.
void AdoptHost(const llvm::TargetMachine& target,
               const v1::CodegenOptions& options, llvm::Module& module);

// PTX text (AssemblyFile) or a relocatable object (ObjectFile).
absl::StatusOr<std::string> EmitCode(llvm::TargetMachine& target,
                                     llvm::CodeGenFileType type,
                                     llvm::Module& module);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_CODEGEN_H_
