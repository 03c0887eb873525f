// Device variables. Those that a host or another launch can see become
// external declarations whose address the executor supplies, with their initial
// bytes beside them; constants that only this code can see stay in the object.
#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/Constants.h>

#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/abi.h"
#include "replay/device/cpu/lowering/internal.h"

namespace reprise::cpu {
namespace {

using llvm::Constant;
using llvm::ConstantExpr;
using llvm::GlobalVariable;

constexpr unsigned kGlobalSpace = 1;
constexpr unsigned kSharedSpace = 3;
constexpr unsigned kConstantSpace = 4;

// True when every use only reads the variable.
bool OnlyRead(const llvm::Value& value, int depth = 0) {
  if (depth > 16) return false;
  for (const llvm::User* user : value.users()) {
    if (llvm::isa<llvm::LoadInst>(user)) continue;
    const auto* expression = llvm::dyn_cast<ConstantExpr>(user);
    const bool passes_on =
        llvm::isa<llvm::GetElementPtrInst>(user) ||
        llvm::isa<llvm::AddrSpaceCastInst>(user) ||
        (expression != nullptr &&
         (expression->getOpcode() == llvm::Instruction::GetElementPtr ||
          expression->getOpcode() == llvm::Instruction::AddrSpaceCast));
    if (!passes_on || !OnlyRead(*user, depth + 1)) return false;
  }
  return true;
}

bool IsPrivateConstant(const GlobalVariable& variable) {
  if (variable.isExternallyInitialized()) return false;
  return variable.isConstant() ||
         (variable.hasLocalLinkage() && OnlyRead(variable));
}

// threadIdx and the like exist as objects only to have members.
bool IsBuiltinObject(const GlobalVariable& variable) {
  return variable.isDeclaration() &&
         llvm::StringSwitch<bool>(variable.getName())
             .Cases({"threadIdx", "blockIdx", "blockDim"}, true)
             .Cases({"gridDim", "warpSize"}, true)
             .Default(false);
}

void ReplaceBy(GlobalVariable& old, GlobalVariable* replacement) {
  replacement->takeName(&old);
  old.replaceAllUsesWith(
      ConstantExpr::getAddrSpaceCast(replacement, old.getType()));
  old.eraseFromParent();
}

// In this object, in address space 0.
void KeepInObject(GlobalVariable& old) {
  Constant* initializer = old.hasInitializer()
                              ? old.getInitializer()
                              : Constant::getNullValue(old.getValueType());
  auto* replacement =
      new GlobalVariable(*old.getParent(), old.getValueType(), true,
                         GlobalVariable::InternalLinkage, initializer);
  replacement->setAlignment(old.getAlign());
  ReplaceBy(old, replacement);
}

void MoveToMemory(LoweringState& state, GlobalVariable& old) {
  llvm::Module& module = state.module;
  const llvm::DataLayout& layout = module.getDataLayout();
  const bool constant =
      old.getAddressSpace() == kConstantSpace || old.isConstant();
  v1::ModuleGlobal global;
  global.set_symbol(old.getName().str());
  global.set_bytes(layout.getTypeAllocSize(old.getValueType()));
  global.set_alignment(std::max(old.getAlign().valueOrOne(),
                                layout.getABITypeAlign(old.getValueType()))
                           .value());
  global.set_constant(constant);
  Constant* initializer = old.getInitializer();
  if (!initializer->isNullValue() &&
      !llvm::isa<llvm::UndefValue>(initializer)) {
    auto* initial = new GlobalVariable(
        module, old.getValueType(), true, GlobalVariable::ExternalLinkage,
        initializer, old.getName() + kInitialValueSuffix);
    initial->setAlignment(old.getAlign());
    initial->setDSOLocal(true);
    global.set_initial_symbol(initial->getName().str());
  }
  auto* declaration =
      new GlobalVariable(module, old.getValueType(), constant,
                         GlobalVariable::ExternalLinkage, nullptr);
  declaration->setAlignment(old.getAlign());
  ReplaceBy(old, declaration);
  state.globals.push_back(std::move(global));
}

}  // namespace

absl::Status LowerGlobals(LoweringState& state) {
  std::vector<GlobalVariable*> variables;
  for (GlobalVariable& variable : state.module.globals()) {
    if (variable.getAddressSpace() != 0) variables.push_back(&variable);
  }
  for (GlobalVariable* variable : variables) {
    variable->removeDeadConstantUsers();
    const unsigned space = variable->getAddressSpace();
    if (space == kSharedSpace) {
      state.shared_variables.push_back(variable);
    } else if (space != kGlobalSpace && space != kConstantSpace) {
      return absl::FailedPreconditionError(absl::StrCat(
          "variable ", variable->getName().str(), " is in address space ",
          space, ", which the cpu device does not have"));
    } else if (IsBuiltinObject(*variable)) {
      KeepInObject(*variable);
    } else if (variable->isDeclaration()) {
      if (variable->use_empty()) {
        variable->eraseFromParent();
        continue;
      }
      return absl::FailedPreconditionError(
          absl::StrCat("device variable ", variable->getName().str(),
                       " is declared but not defined; link the translation "
                       "unit that defines it"));
    } else if (IsPrivateConstant(*variable)) {
      KeepInObject(*variable);
    } else {
      MoveToMemory(state, *variable);
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise::cpu
