#include "replay/compiler/kernel_selection.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "llvm/IR/Constants.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "replay/base/sha256.h"
#include "replay/compiler/address_spaces.h"
#include "replay/compiler/pipeline.h"
#include "replay/device/cuda/access_notes.h"

namespace reprise {
namespace {

void RunGlobalDce(llvm::Module& module) {
  llvm::ModulePassManager passes;
  passes.addPass(llvm::GlobalDCEPass());
  RunPasses(passes, module);
}

void MakeInternal(llvm::GlobalValue& value) {
  value.setLinkage(llvm::GlobalValue::InternalLinkage);
  value.setVisibility(llvm::GlobalValue::DefaultVisibility);
  if (auto* object = llvm::dyn_cast<llvm::GlobalObject>(&value))
    object->setComdat(nullptr);
}

}  // namespace

std::vector<std::string> KernelNames(const llvm::Module& module) {
  std::vector<std::string> names;
  for (const llvm::Function& function : module) {
    if (!function.isDeclaration() &&
        function.getCallingConv() == llvm::CallingConv::PTX_Kernel)
      names.push_back(function.getName().str());
  }
  return names;
}

bool IsDeviceState(const llvm::GlobalVariable& global) {
  const unsigned space = global.getAddressSpace();
  return !global.isDeclaration() &&
         global.getName() != cuda::kAccessNotesSymbol &&
         (space == kGlobalSpace || space == kConstantSpace) &&
         (global.isExternallyInitialized() || !global.isConstant());
}

void NameVariablesByUnit(const v1::CompileTranslationUnit& unit,
                         llvm::Module& module) {
  const auto& arguments = unit.clang_args();
  if (std::find(arguments.begin(), arguments.end(), "-fgpu-rdc") ==
      arguments.end())
    return;
  const std::string hash =
      HexEncode(Sha256(absl::StrCat(unit.directory(), "\n", unit.main_file())));
  for (llvm::GlobalVariable& global : module.globals()) {
    if (!global.hasLocalLinkage() || !IsDeviceState(global)) continue;
    // As Clang names those that it makes external itself.
    global.setName(
        absl::StrCat(global.getName().str(), "__static__", hash.substr(0, 16)));
  }
}

absl::Status SelectKernels(const std::vector<std::string>& kernels,
                           bool keep_variables, llvm::Module& module) {
  const std::set<std::string> wanted(kernels.begin(), kernels.end());
  for (const std::string& kernel : kernels) {
    const llvm::Function* function = module.getFunction(kernel);
    if (function == nullptr || function->isDeclaration()) {
      return absl::NotFoundError(absl::StrCat(
          "kernel ", kernel,
          " is not in the compiled source any more; a variant keeps its name "
          "and parameter types. The source has: ",
          absl::StrJoin(KernelNames(module), ", ")));
    }
  }
  for (const char* name : {"llvm.used", "llvm.compiler.used",
                           "llvm.global_ctors", "llvm.global_dtors"}) {
    if (auto* list = module.getGlobalVariable(name, /*AllowInternal=*/true))
      list->eraseFromParent();
  }
  for (llvm::Function& function : module) {
    if (!function.isDeclaration() &&
        wanted.count(function.getName().str()) == 0)
      MakeInternal(function);
  }
  for (llvm::GlobalVariable& global : module.globals()) {
    const bool stays = keep_variables && IsDeviceState(global);
    if (!global.isDeclaration() && !stays) MakeInternal(global);
  }
  for (llvm::GlobalAlias& alias : module.aliases()) MakeInternal(alias);
  RunGlobalDce(module);
  for (const std::string& kernel : kernels) {
    llvm::Function& function = *module.getFunction(kernel);
    function.setLinkage(llvm::GlobalValue::ExternalLinkage);
    function.setComdat(nullptr);
  }
  for (llvm::GlobalVariable& global : module.globals()) {
    if (!IsDeviceState(global)) continue;
    global.setLinkage(llvm::GlobalValue::ExternalLinkage);
    global.setExternallyInitialized(true);
  }
  return absl::OkStatus();
}

absl::Status CheckKept(
    const std::vector<std::string>& entries, bool keep_variables,
    const llvm::Module& module,
    google::protobuf::RepeatedPtrField<v1::ModuleGlobal>& globals) {
  for (const std::string& entry : entries) {
    const llvm::Function* function = module.getFunction(entry);
    if (function == nullptr || function->isDeclaration() ||
        !function->hasExternalLinkage()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the pipeline removed or hid ", entry, ", which must stay"));
    }
  }
  std::set<std::string> known;
  for (const v1::ModuleGlobal& global : globals) known.insert(global.symbol());
  for (const llvm::GlobalVariable& global : module.globals()) {
    if (IsDeviceState(global) && known.count(global.getName().str()) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the pipeline made a device variable ",
                       global.getName().str(), " that the source lacks"));
    }
  }
  if (keep_variables) return absl::OkStatus();
  globals.erase(std::remove_if(globals.begin(), globals.end(),
                               [&](const v1::ModuleGlobal& global) {
                                 return module.getNamedValue(global.symbol()) ==
                                        nullptr;
                               }),
                globals.end());
  return absl::OkStatus();
}

}  // namespace reprise
