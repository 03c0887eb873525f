// Synchronization intrinsics, split from intrinsics.cc. Internal to the
// lowering.
#ifndef REPRISE_REPLAY_DEVICE_CPU_LOWERING_INTRINSICS_H_
#define REPRISE_REPLAY_DEVICE_CPU_LOWERING_INTRINSICS_H_

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/ADT/StringSwitch.h>

#include "replay/device/cpu/lowering/internal.h"

namespace reprise::cpu {

// Barriers, shuffles, votes, matches and reductions. `tokens` is the name
// behind "llvm.nvvm." split at its dots. True when the call is handled: the
// caller replaces it by *value (null: it has none) and erases it.
bool LowerSynchronization(llvm::IRBuilder<>& b,
                          llvm::ArrayRef<llvm::StringRef> tokens,
                          llvm::CallInst& call, llvm::Value** value);

// Calls carry their place in the code (a site) as an argument. It is unnamed
// until functions are inlined, so that every inlined copy is a place of its
// own; from then on no two calls share one, and optimizations that merge or
// move calls keep them apart.
llvm::Constant* UnnamedSite(llvm::Module& module);
void NameSites(llvm::Module& module);

// True for runtime functions that need one fiber per CUDA thread.
bool NeedsFibers(llvm::StringRef runtime_function);

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_LOWERING_INTRINSICS_H_
