// What a device module says about its kernels, and removal of what is not
// asked for.
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Scalar/InstSimplifyPass.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "replay/device/cpu/lowering/internal.h"
#include "replay/device/cpu/lowering/passes.h"

namespace reprise::cpu {
namespace {

using llvm::CallInst;
using llvm::Function;
using llvm::GlobalVariable;
using llvm::StringRef;

bool IsKernel(const Function& function,
              const llvm::SmallPtrSetImpl<const Function*>& annotated) {
  return !function.isDeclaration() &&
         (function.getCallingConv() == llvm::CallingConv::PTX_Kernel ||
          annotated.contains(&function));
}

// Older front ends mark kernels in metadata only.
llvm::SmallPtrSet<const Function*, 8> AnnotatedKernels(
    const llvm::Module& module) {
  llvm::SmallPtrSet<const Function*, 8> kernels;
  const llvm::NamedMDNode* annotations =
      module.getNamedMetadata("nvvm.annotations");
  if (annotations == nullptr) return kernels;
  for (const llvm::MDNode* node : annotations->operands()) {
    if (node->getNumOperands() < 3) continue;
    const auto* kind = llvm::dyn_cast<llvm::MDString>(node->getOperand(1));
    if (kind == nullptr || kind->getString() != "kernel") continue;
    if (auto* function =
            llvm::mdconst::dyn_extract_or_null<Function>(node->getOperand(0))) {
      kernels.insert(function);
    }
  }
  return kernels;
}

void DescribeParameters(const Function& function, KernelState& kernel) {
  const llvm::DataLayout& layout = function.getParent()->getDataLayout();
  uint64_t end = 0;
  for (const llvm::Argument& argument : function.args()) {
    llvm::Type* type = argument.hasByValAttr() ? argument.getParamByValType()
                                               : argument.getType();
    llvm::Align align = layout.getABITypeAlign(type);
    if (argument.hasByValAttr())
      align = std::max(align, argument.getParamAlign().valueOrOne());
    const uint64_t offset = llvm::alignTo(end, align);
    const uint64_t bytes = layout.getTypeAllocSize(type);
    kernel.info.add_parameter_offsets(offset);
    kernel.info.add_parameter_bytes(bytes);
    end = offset + bytes;
  }
  kernel.argument_bytes = end;
}

void DescribeSource(const Function& function, KernelState& kernel) {
  if (const llvm::DISubprogram* subprogram = function.getSubprogram()) {
    std::string path = subprogram->getFilename().str();
    if (!path.empty() && path[0] != '/' &&
        !subprogram->getDirectory().empty()) {
      path = absl::StrCat(subprogram->getDirectory().str(), "/", path);
    }
    kernel.info.set_source_path(path);
    kernel.info.set_source_line(subprogram->getLine());
  }
  std::vector<std::string> names(function.arg_size());
  bool any = false;
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    for (const llvm::DbgVariableRecord& record :
         llvm::filterDbgVars(instruction.getDbgRecordRange())) {
      const unsigned number = record.getVariable()->getArg();
      if (number == 0 || number > names.size()) continue;
      names[number - 1] = record.getVariable()->getName().str();
      any = true;
    }
  }
  if (!any) return;
  for (const std::string& name : names) kernel.info.add_parameter_names(name);
}

// "tolerance:B" allows B absolutely and relatively, "tolerance:A,R" each on
// its own.
bool ParseTolerance(StringRef text, v1::Tolerance* tolerance) {
  if (!text.consume_front("tolerance:")) return false;
  const std::vector<std::string> parts = absl::StrSplit(text.str(), ',');
  double absolute = 0;
  double relative = 0;
  if (parts.size() > 2 ||
      !absl::SimpleAtod(absl::StripSuffix(parts[0], "f"), &absolute))
    return false;
  relative = absolute;
  if (parts.size() == 2 &&
      !absl::SimpleAtod(absl::StripSuffix(parts[1], "f"), &relative))
    return false;
  if (!(absolute >= 0) || !(relative >= 0)) return false;
  tolerance->set_absolute(absolute);
  tolerance->set_relative(relative);
  return true;
}

void AddTolerance(KernelState& kernel, int parameter, llvm::Value* text) {
  StringRef string;
  v1::Tolerance tolerance;
  if (!llvm::getConstantStringInfo(text->stripPointerCasts(), string) ||
      !ParseTolerance(string, &tolerance)) {
    return;
  }
  v1::ToleranceAnnotation* annotation = kernel.info.add_tolerances();
  annotation->set_parameter(parameter);
  *annotation->mutable_tolerance() = tolerance;
}

// An annotated parameter is stored to its stack slot, which carries the text.
void DescribeParameterTolerances(Function& function, KernelState& kernel) {
  llvm::DenseMap<llvm::Value*, int> slots;
  std::vector<CallInst*> annotations;
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      if (auto* argument =
              llvm::dyn_cast<llvm::Argument>(store->getValueOperand())) {
        slots[store->getPointerOperand()] = argument->getArgNo();
      }
    } else if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
      if (call->getIntrinsicID() == llvm::Intrinsic::var_annotation)
        annotations.push_back(call);
    }
  }
  for (CallInst* call : annotations) {
    const auto slot = slots.find(call->getArgOperand(0)->stripPointerCasts());
    if (slot != slots.end())
      AddTolerance(kernel, slot->second, call->getArgOperand(1));
  }
}

void DescribeKernelTolerances(llvm::Module& module,
                              std::vector<KernelState>& kernels) {
  GlobalVariable* annotations =
      module.getGlobalVariable("llvm.global.annotations");
  if (annotations == nullptr || !annotations->hasInitializer()) return;
  auto* entries =
      llvm::dyn_cast<llvm::ConstantArray>(annotations->getInitializer());
  if (entries != nullptr) {
    for (llvm::Value* entry : entries->operands()) {
      auto* fields = llvm::dyn_cast<llvm::ConstantStruct>(entry);
      if (fields == nullptr || fields->getNumOperands() < 2) continue;
      llvm::Value* target = fields->getOperand(0)->stripPointerCasts();
      for (KernelState& kernel : kernels) {
        if (kernel.function == target)
          AddTolerance(kernel, -1, fields->getOperand(1));
      }
    }
  }
  annotations->eraseFromParent();
}

void EraseAnnotations(llvm::Module& module) {
  for (Function& function : module) {
    for (llvm::Instruction& instruction :
         llvm::make_early_inc_range(llvm::instructions(function))) {
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (call == nullptr) continue;
      if (call->getIntrinsicID() == llvm::Intrinsic::var_annotation) {
        call->eraseFromParent();
      } else if (call->getIntrinsicID() == llvm::Intrinsic::ptr_annotation ||
                 call->getIntrinsicID() == llvm::Intrinsic::annotation) {
        call->replaceAllUsesWith(call->getArgOperand(0));
        call->eraseFromParent();
      }
    }
  }
}

uint32_t MaxThreads(const Function& function) {
  const StringRef bound =
      function.getFnAttribute("nvvm.maxntid").getValueAsString();
  if (bound.empty()) return 0;
  uint64_t threads = 1;
  for (const auto& part : absl::StrSplit(bound.str(), ',')) {
    uint32_t value = 0;
    if (!absl::SimpleAtoi(part, &value)) return 0;
    threads *= value;
  }
  return static_cast<uint32_t>(std::min<uint64_t>(threads, UINT32_MAX));
}

int ReflectValue(const llvm::Module& module, const Function& function,
                 StringRef query) {
  if (query == "__CUDA_FTZ") {
    auto* flag = llvm::mdconst::extract_or_null<llvm::ConstantInt>(
        module.getModuleFlag("nvvm-reflect-ftz"));
    return flag != nullptr ? static_cast<int>(flag->getSExtValue()) : 0;
  }
  if (query == "__CUDA_PREC_SQRT" || query == "__CUDA_PREC_DIV") return 1;
  if (query == "__CUDA_ARCH") {
    StringRef cpu = function.getFnAttribute("target-cpu").getValueAsString();
    unsigned version = 0;
    if (cpu.consume_front("sm_") && !cpu.consumeInteger(10, version))
      return version * 10;
    return 900;
  }
  return 0;
}

}  // namespace

absl::Status FindKernels(LoweringState& state) {
  llvm::Module& module = state.module;
  const auto annotated = AnnotatedKernels(module);
  const std::vector<std::string>& wanted = state.options.kernels;
  std::vector<std::string> present;
  for (Function& function : module) {
    if (!IsKernel(function, annotated)) continue;
    present.push_back(function.getName().str());
    if (!wanted.empty() && !llvm::is_contained(wanted, present.back()))
      continue;
    KernelState kernel;
    kernel.function = &function;
    kernel.info.set_symbol(present.back());
    kernel.info.set_max_threads_per_block(MaxThreads(function));
    DescribeParameters(function, kernel);
    DescribeSource(function, kernel);
    DescribeParameterTolerances(function, kernel);
    state.kernels.push_back(std::move(kernel));
  }
  for (const std::string& name : wanted) {
    if (!llvm::is_contained(present, name)) {
      return absl::NotFoundError(absl::StrCat(
          "kernel ", name, " is not in the module; it has ",
          present.empty() ? "none" : absl::StrJoin(present, ", ")));
    }
  }
  DescribeKernelTolerances(module, state.kernels);
  EraseAnnotations(module);
  return absl::OkStatus();
}

void ResolveReflect(llvm::Module& module) {
  llvm::SmallSetVector<Function*, 16> touched;
  for (Function& function : module) {
    for (llvm::Instruction& instruction :
         llvm::make_early_inc_range(llvm::instructions(function))) {
      auto* call = llvm::dyn_cast<CallInst>(&instruction);
      Function* callee = call != nullptr ? call->getCalledFunction() : nullptr;
      if (callee == nullptr ||
          (callee->getName() != "__nvvm_reflect" &&
           callee->getIntrinsicID() != llvm::Intrinsic::nvvm_reflect)) {
        continue;
      }
      StringRef query;
      llvm::getConstantStringInfo(call->getArgOperand(0)->stripPointerCasts(),
                                  query);
      call->replaceAllUsesWith(llvm::ConstantInt::get(
          call->getType(), ReflectValue(module, function, query)));
      call->eraseFromParent();
      touched.insert(&function);
    }
  }
  PassRunner passes;
  llvm::FunctionPassManager cleanup;
  cleanup.addPass(llvm::InstSimplifyPass());
  cleanup.addPass(llvm::SimplifyCFGPass());
  for (Function* function : touched) passes.Run(*function, cleanup);
}

void RemoveUnused(LoweringState& state) {
  llvm::Module& module = state.module;
  for (Function& function : module) {
    if (function.isDeclaration()) continue;
    const bool kept =
        llvm::any_of(state.kernels, [&](const KernelState& kernel) {
          return kernel.function == &function;
        });
    function.setComdat(nullptr);
    function.setLinkage(kept ? Function::ExternalLinkage
                             : Function::InternalLinkage);
    function.setVisibility(Function::DefaultVisibility);
  }
  const bool all = state.options.kernels.empty();
  if (GlobalVariable* used = module.getGlobalVariable("llvm.used"))
    used->eraseFromParent();
  for (GlobalVariable& variable : module.globals()) {
    if (variable.getName().starts_with("llvm.")) continue;
    variable.setComdat(nullptr);
    const bool stays =
        state.options.keep_variables && variable.hasExternalLinkage();
    if (!all && !stays && !variable.isDeclaration())
      variable.setLinkage(GlobalVariable::InternalLinkage);
  }
  auto drop_used = [&] {
    if (GlobalVariable* used = module.getGlobalVariable("llvm.compiler.used")) {
      used->eraseFromParent();
    }
  };
  if (!all) drop_used();
  PassRunner passes;
  llvm::ModulePassManager cleanup;
  cleanup.addPass(llvm::GlobalDCEPass());
  passes.Run(module, cleanup);
  drop_used();
}

std::string PlaceOf(const llvm::Instruction& instruction) {
  // The instruction itself may sit in a header's wrapper; where the function
  // was called from is the user's own code.
  const llvm::DILocation* location = instruction.getDebugLoc().get();
  while (location != nullptr && location->getInlinedAt() != nullptr) {
    location = location->getInlinedAt();
  }
  if (location != nullptr) {
    return absl::StrCat(location->getFilename().str(), ":",
                        location->getLine());
  }
  const Function* function = instruction.getFunction();
  if (const llvm::DISubprogram* subprogram = function->getSubprogram()) {
    return absl::StrCat(subprogram->getFilename().str(), ":",
                        subprogram->getLine());
  }
  return absl::StrCat("function ", llvm::demangle(function->getName().str()));
}

llvm::Constant* SiteString(llvm::Module& module,
                           const llvm::Instruction& instruction) {
  // A number behind the terminator keeps equal places from being merged.
  const std::string text =
      PlaceOf(instruction) + '\0' + std::to_string(module.global_size());
  auto* data = llvm::ConstantDataArray::getString(module.getContext(), text);
  return new GlobalVariable(module, data->getType(), true,
                            GlobalVariable::InternalLinkage, data,
                            "__reprise_site");
}

absl::Status Refuse(const LoweringState& state, const llvm::Instruction& at,
                    const llvm::Twine& what) {
  // Which kernel reaches the function.
  llvm::SmallSetVector<const Function*, 16> reached;
  reached.insert(at.getFunction());
  std::string kernel;
  for (size_t i = 0; i < reached.size() && kernel.empty(); ++i) {
    for (const KernelState& candidate : state.kernels) {
      if (candidate.function == reached[i] || candidate.thread == reached[i]) {
        kernel = candidate.info.symbol();
      }
    }
    for (const llvm::User* user : reached[i]->users()) {
      if (auto* user_instruction = llvm::dyn_cast<llvm::Instruction>(user)) {
        reached.insert(user_instruction->getFunction());
      }
    }
  }
  return absl::FailedPreconditionError(absl::StrCat(
      kernel.empty() ? "the module" : absl::StrCat("kernel ", kernel), " uses ",
      what.str(), " at ", PlaceOf(at), ", which the cpu device cannot run"));
}

}  // namespace reprise::cpu
