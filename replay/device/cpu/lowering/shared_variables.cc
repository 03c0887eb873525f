#include "replay/device/cpu/lowering/shared_variables.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>

namespace reprise::cpu {
namespace {

using llvm::Function;
using llvm::GlobalVariable;
using llvm::Instruction;
using llvm::IRBuilder;
using llvm::Value;

bool IsDynamic(const GlobalVariable& variable) {
  return variable.isDeclaration() ||
         variable.getParent()->getDataLayout().getTypeAllocSize(
             variable.getValueType()) == 0;
}

}  // namespace

void PlaceShared(GlobalVariable& variable, VariableOffsets& offsets,
                 uint32_t* end) {
  if (IsDynamic(variable) || offsets.contains(&variable)) return;
  const llvm::DataLayout& layout = variable.getParent()->getDataLayout();
  const llvm::Align align =
      std::max(variable.getAlign().valueOrOne(),
               layout.getABITypeAlign(variable.getValueType()));
  const uint64_t offset = llvm::alignTo(*end, align);
  offsets[&variable] = offset;
  *end = offset + layout.getTypeAllocSize(variable.getValueType());
}

llvm::SmallSetVector<GlobalVariable*, 8> SharedUses(const LoweringState& state,
                                                    const Function& function) {
  llvm::SmallSetVector<GlobalVariable*, 8> uses;
  for (GlobalVariable* variable : state.shared_variables) {
    for (const llvm::User* user : variable->users()) {
      const auto* instruction = llvm::dyn_cast<Instruction>(user);
      if (instruction != nullptr && instruction->getFunction() == &function) {
        uses.insert(variable);
      }
    }
  }
  return uses;
}

void ReplaceShared(LoweringState& state, Function& function,
                   const ThreadValues& values, const VariableOffsets& offsets,
                   Instruction* at) {
  for (GlobalVariable* variable : SharedUses(state, function)) {
    IRBuilder<> b(at);
    Value* pointer =
        IsDynamic(*variable)
            ? values.dynamic_shared
            : b.CreateInBoundsGEP(b.getInt8Ty(), values.shared,
                                  b.getInt64(offsets.lookup(variable)),
                                  variable->getName());
    Value* typed = nullptr;
    for (llvm::Use& use : llvm::make_early_inc_range(variable->uses())) {
      auto* user = llvm::dyn_cast<Instruction>(use.getUser());
      if (user == nullptr || user->getFunction() != &function) continue;
      if (auto* cast = llvm::dyn_cast<llvm::AddrSpaceCastInst>(user)) {
        if (cast->getType() == pointer->getType()) {
          cast->replaceAllUsesWith(pointer);
          cast->eraseFromParent();
          continue;
        }
      }
      if (typed == nullptr)
        typed = b.CreateAddrSpaceCast(pointer, variable->getType());
      use.set(typed);
    }
  }
}

}  // namespace reprise::cpu
