// Where variables of a block's shared memory lie, and code that names them.
// Internal to the lowering.
#ifndef REPRISE_REPLAY_DEVICE_CPU_LOWERING_SHARED_VARIABLES_H_
#define REPRISE_REPLAY_DEVICE_CPU_LOWERING_SHARED_VARIABLES_H_

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>

#include <cstdint>

#include "replay/device/cpu/lowering/internal.h"

namespace reprise::cpu {

// Of static variables, from the base of shared memory.
using VariableOffsets = llvm::DenseMap<llvm::GlobalVariable*, uint32_t>;

// Variables that code outside of kernels names lie at one place for all.
struct CommonShared {
  VariableOffsets offsets;
  uint32_t bytes = 0;
};

// Those of state.shared_variables that the function's instructions use.
llvm::SmallSetVector<llvm::GlobalVariable*, 8> SharedUses(
    const LoweringState& state, const llvm::Function& function);

// Gives the variable a place at or behind *end, if it has none and is not
// dynamic shared memory.
void PlaceShared(llvm::GlobalVariable& variable, VariableOffsets& offsets,
                 uint32_t* end);

// Uses in `function` become addresses, computed in front of `at`.
void ReplaceShared(LoweringState& state, llvm::Function& function,
                   const ThreadValues& values, const VariableOffsets& offsets,
                   llvm::Instruction* at);

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_LOWERING_SHARED_VARIABLES_H_
