// The change of target: triple, data layout, attributes, library.
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/AttributeMask.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/TargetParser/Triple.h>

#include "absl/strings/str_cat.h"
#include "replay/device/cpu/lowering/internal.h"

namespace reprise::cpu {
namespace {

using llvm::Attribute;
using llvm::CallBase;
using llvm::Function;
using llvm::Instruction;
using llvm::Value;

constexpr char kTriple[] = "x86_64-unknown-linux-gnu";
constexpr char kDataLayout[] =
    "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:"
    "64-S128";

// A progress guarantee would let the optimizer delete an endless loop and run
// on into whatever follows; here it hangs and is seen.
constexpr Attribute::AttrKind kDropped[] = {
    Attribute::Convergent, Attribute::MustProgress, Attribute::StackProtect,
    Attribute::StackProtectStrong};

void StripFunction(Function& function) {
  for (Attribute::AttrKind kind : kDropped) function.removeFnAttr(kind);
  llvm::AttributeMask strings;
  for (const Attribute attribute : function.getAttributes().getFnAttrs()) {
    if (attribute.isStringAttribute())
      strings.addAttribute(attribute.getKindAsString());
  }
  function.removeFnAttrs(strings);
  function.setCallingConv(llvm::CallingConv::C);
  function.setDSOLocal(!function.isDeclaration());
}

// The same promise, as Clang states it of single loops.
void DropLoopProgress(Instruction& instruction) {
  llvm::MDNode* loop = instruction.getMetadata(llvm::LLVMContext::MD_loop);
  if (loop == nullptr) return;
  llvm::SmallVector<llvm::Metadata*, 4> kept = {nullptr};
  for (const llvm::MDOperand& operand : llvm::drop_begin(loop->operands())) {
    const auto* node = llvm::dyn_cast<llvm::MDNode>(operand);
    const auto* name = node != nullptr && node->getNumOperands() > 0
                           ? llvm::dyn_cast<llvm::MDString>(node->getOperand(0))
                           : nullptr;
    if (name != nullptr && name->getString() == "llvm.loop.mustprogress") {
      continue;
    }
    kept.push_back(operand);
  }
  if (kept.size() == loop->getNumOperands()) return;
  llvm::MDNode* replacement = nullptr;
  if (kept.size() > 1) {
    replacement = llvm::MDNode::getDistinct(instruction.getContext(), kept);
    replacement->replaceOperandWith(0, replacement);
  }
  instruction.setMetadata(llvm::LLVMContext::MD_loop, replacement);
}

void SetSystemScope(Instruction& instruction) {
  if (auto* rmw = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
    rmw->setSyncScopeID(llvm::SyncScope::System);
  } else if (auto* exchange =
                 llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
    exchange->setSyncScopeID(llvm::SyncScope::System);
  } else if (auto* fence = llvm::dyn_cast<llvm::FenceInst>(&instruction)) {
    fence->setSyncScopeID(llvm::SyncScope::System);
  } else if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
    if (load->isAtomic()) load->setSyncScopeID(llvm::SyncScope::System);
  } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    if (store->isAtomic()) store->setSyncScopeID(llvm::SyncScope::System);
  }
}

// NVPTX saturates where IR's own conversion leaves the result open.
Value* SaturatingConversion(Instruction& instruction) {
  const bool is_signed = instruction.getOpcode() == Instruction::FPToSI;
  if (!is_signed && instruction.getOpcode() != Instruction::FPToUI)
    return nullptr;
  llvm::IRBuilder<> b(&instruction);
  Value* operand = instruction.getOperand(0);
  llvm::Type* target = instruction.getType();
  const auto id =
      is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  Value* result =
      b.CreateIntrinsic(id, {target, operand->getType()}, {operand});
  if (target->isVectorTy() || target->getIntegerBitWidth() < 64) return result;
  Value* top = llvm::ConstantInt::get(
      target, llvm::APInt::getSignMask(target->getIntegerBitWidth()));
  return b.CreateSelect(b.CreateFCmpUNO(operand, operand), top, result);
}

void KeepDebugFlags(llvm::Module& module) {
  llvm::SmallVector<llvm::Module::ModuleFlagEntry, 8> flags;
  module.getModuleFlagsMetadata(flags);
  if (llvm::NamedMDNode* node = module.getModuleFlagsMetadata())
    node->eraseFromParent();
  for (const auto& flag : flags) {
    const llvm::StringRef key = flag.Key->getString();
    if (key == "Dwarf Version" || key == "Debug Info Version") {
      module.addModuleFlag(flag.Behavior, key, flag.Val);
    }
  }
  module.setPICLevel(llvm::PICLevel::BigPIC);
  for (const char* name : {"nvvm.annotations", "nvvmir.version", "llvm.ident",
                           "opencl.ocl.version"}) {
    if (llvm::NamedMDNode* node = module.getNamedMetadata(name))
      node->eraseFromParent();
  }
}

}  // namespace

void MoveToHost(LoweringState& state) {
  llvm::Module& module = state.module;
  module.setTargetTriple(llvm::Triple(kTriple));
  module.setDataLayout(kDataLayout);
  KeepDebugFlags(module);
  for (Function& function : module) {
    if (function.isIntrinsic()) continue;
    StripFunction(function);
    for (Instruction& instruction :
         llvm::make_early_inc_range(llvm::instructions(function))) {
      SetSystemScope(instruction);
      DropLoopProgress(instruction);
      if (auto* call = llvm::dyn_cast<CallBase>(&instruction)) {
        call->removeFnAttr(Attribute::Convergent);
        call->setCallingConv(llvm::CallingConv::C);
      } else if (Value* replacement = SaturatingConversion(instruction)) {
        instruction.replaceAllUsesWith(replacement);
        instruction.eraseFromParent();
      }
    }
  }
}

absl::Status LinkDeviceLibrary(LoweringState& state) {
  llvm::Module& module = state.module;
  auto library = llvm::parseBitcodeFile(
      llvm::MemoryBufferRef(DeviceLibraryBitcode(), "device_library"),
      module.getContext());
  if (!library) {
    return absl::InternalError(
        absl::StrCat("the device library does not load: ",
                     llvm::toString(library.takeError())));
  }
  (*library)->setTargetTriple(module.getTargetTriple());
  (*library)->setDataLayout(module.getDataLayout());
  for (const char* name : {"llvm.module.flags", "llvm.ident"}) {
    if (llvm::NamedMDNode* node = (*library)->getNamedMetadata(name))
      node->eraseFromParent();
  }
  std::vector<std::string> names;
  for (const Function& function : **library) {
    if (!function.isDeclaration()) names.push_back(function.getName().str());
  }
  if (llvm::Linker::linkModules(module, std::move(*library),
                                llvm::Linker::LinkOnlyNeeded)) {
    return absl::InternalError("the device library does not link");
  }
  for (const std::string& name : names) {
    Function* function = module.getFunction(name);
    if (function == nullptr || function->isDeclaration()) continue;
    StripFunction(*function);
    function->setLinkage(Function::InternalLinkage);
    function->addFnAttr(Attribute::AlwaysInline);
  }
  return absl::OkStatus();
}

llvm::Value* CallLibrary(llvm::IRBuilder<>& b, const llvm::Twine& name,
                         llvm::Type* result,
                         llvm::ArrayRef<llvm::Value*> arguments) {
  llvm::SmallVector<llvm::Type*, 4> types;
  for (Value* argument : arguments) types.push_back(argument->getType());
  llvm::Module* module = b.GetInsertBlock()->getModule();
  llvm::FunctionCallee callee = module->getOrInsertFunction(
      name.str(), llvm::FunctionType::get(result, types, false));
  return b.CreateCall(callee, arguments);
}

llvm::CallInst* CallRuntime(llvm::IRBuilder<>& b, llvm::StringRef name,
                            llvm::Type* result,
                            llvm::ArrayRef<llvm::Value*> arguments) {
  auto* call =
      llvm::cast<llvm::CallInst>(CallLibrary(b, name, result, arguments));
  Function* function = call->getCalledFunction();
  function->setDoesNotThrow();
  if (name == "__reprise_current_thread") {
    function->setMemoryEffects(
        llvm::MemoryEffects::inaccessibleMemOnly(llvm::ModRefInfo::Ref));
    function->addFnAttr(Attribute::WillReturn);
  } else if (name == "__reprise_is_space" || name == "__reprise_shared_base") {
    function->setMemoryEffects(
        llvm::MemoryEffects::inaccessibleMemOnly(llvm::ModRefInfo::Ref));
  } else if (name == "__reprise_trap" || name == "__reprise_assert_fail" ||
             name == "__reprise_exit_thread") {
    function->setDoesNotReturn();
    function->addFnAttr(Attribute::Cold);
  } else if (name.starts_with("__reprise_note_")) {
    function->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  }
  return call;
}

absl::Status CheckLowered(LoweringState& state) {
  for (const Function& function : state.module) {
    if (!function.isDeclaration() || function.use_empty()) continue;
    const llvm::StringRef name = function.getName();
    if (function.isIntrinsic() && !name.starts_with("llvm.nvvm.")) continue;
    if (name.starts_with("__reprise_")) continue;
    for (const llvm::User* user : function.users()) {
      if (auto* instruction = llvm::dyn_cast<Instruction>(user)) {
        return Refuse(state, *instruction, llvm::demangle(name.str()));
      }
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "the module refers to ", name.str(), ", which is not defined in it"));
  }
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(state.module, &stream)) {
    return absl::InternalError(
        absl::StrCat("lowered IR is malformed: ", problem));
  }
  return absl::OkStatus();
}

}  // namespace reprise::cpu
