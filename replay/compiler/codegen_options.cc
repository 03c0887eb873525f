#include "replay/compiler/codegen_options.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Operator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "replay/base/check.h"

namespace reprise {
namespace {

constexpr char kFlushFlag[] = "nvvm-reflect-ftz";
constexpr char kDenormalAttribute[] = "denormal-fp-math-f32";

bool IsLibdevice(const llvm::Function& function) {
  return function.getName().starts_with("__nv_");
}

void SetFastMath(const v1::CodegenOptions& options, llvm::Module& module) {
  if (!options.has_fp_contract() && !options.has_reassociate() &&
      !options.has_no_signed_zeros() && !options.has_finite_math_only())
    return;
  for (llvm::Function& function : module) {
    if (IsLibdevice(function)) continue;
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (!llvm::isa<llvm::FPMathOperator>(instruction)) continue;
      llvm::FastMathFlags flags = instruction.getFastMathFlags();
      if (options.has_fp_contract())
        flags.setAllowContract(options.fp_contract());
      if (options.has_reassociate())
        flags.setAllowReassoc(options.reassociate());
      if (options.has_no_signed_zeros())
        flags.setNoSignedZeros(options.no_signed_zeros());
      if (options.has_finite_math_only()) {
        flags.setNoNaNs(options.finite_math_only());
        flags.setNoInfs(options.finite_math_only());
      }
      // copyFastMathFlags sets; setFastMathFlags would only add.
      instruction.copyFastMathFlags(flags);
    }
  }
}

void SetFlushDenormals(bool flush, llvm::Module& module) {
  module.setModuleFlag(llvm::Module::Override, kFlushFlag, flush ? 1 : 0);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    if (flush) {
      function.addFnAttr(kDenormalAttribute, "preserve-sign,preserve-sign");
    } else {
      function.removeFnAttr(kDenormalAttribute);
    }
  }
}

bool FlushesDenormals(const llvm::Module& module) {
  const auto* flag = llvm::mdconst::dyn_extract_or_null<llvm::ConstantInt>(
      module.getModuleFlag(kFlushFlag));
  return flag != nullptr && !flag->isZero();
}

// The text that a call of __nvvm_reflect asks for.
llvm::StringRef ReflectedName(const llvm::CallInst& call) {
  const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(
      call.getArgOperand(0)->stripPointerCasts());
  if (global == nullptr || !global->hasInitializer()) return "";
  const auto* text =
      llvm::dyn_cast<llvm::ConstantDataArray>(global->getInitializer());
  return text != nullptr && text->isCString() ? text->getAsCString() : "";
}

int ReflectedValue(llvm::StringRef name, const llvm::Module& module,
                   bool precise_sqrt, const llvm::Function& caller) {
  if (name == "__CUDA_FTZ") return FlushesDenormals(module) ? 1 : 0;
  if (name == "__CUDA_PREC_SQRT") return precise_sqrt ? 1 : 0;
  if (name != "__CUDA_ARCH") return 0;
  // "sm_90a" is 900.
  llvm::StringRef cpu = caller.getFnAttribute("target-cpu").getValueAsString();
  unsigned number = 0;
  if (!cpu.consume_front("sm_") || cpu.consumeInteger(10, number)) return 0;
  return static_cast<int>(number * 10);
}

// Values that libdevice asks for are known now; the branches on them go, so
// that even a pipeline that simplifies nothing is left with one form.
void ResolveReflection(bool precise_sqrt, llvm::Module& module) {
  llvm::Function* reflect = module.getFunction("__nvvm_reflect");
  if (reflect == nullptr) return;
  std::set<llvm::Function*> changed;
  std::vector<llvm::CallInst*> calls;
  for (llvm::User* user : reflect->users()) {
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(user))
      calls.push_back(call);
  }
  for (llvm::CallInst* call : calls) {
    llvm::Function& caller = *call->getFunction();
    const int value =
        ReflectedValue(ReflectedName(*call), module, precise_sqrt, caller);
    call->replaceAllUsesWith(
        llvm::ConstantInt::get(call->getType(), static_cast<uint64_t>(value)));
    call->eraseFromParent();
    changed.insert(&caller);
  }
  for (llvm::Function* function : changed) {
    for (llvm::BasicBlock& block : *function) {
      llvm::SimplifyInstructionsInBlock(&block);
      llvm::ConstantFoldTerminator(&block, /*DeleteDeadConditions=*/true);
    }
    llvm::removeUnreachableBlocks(*function);
  }
  if (reflect->use_empty()) reflect->eraseFromParent();
}

void SetKernelLimits(const v1::CodegenOptions& options, const UnitOptions& unit,
                     llvm::Module& module) {
  const uint32_t registers = options.has_max_registers()
                                 ? options.max_registers()
                                 : unit.max_registers;
  for (llvm::Function& function : module) {
    if (function.getCallingConv() != llvm::CallingConv::PTX_Kernel) continue;
    if (registers != 0)
      function.addFnAttr("nvvm.maxnreg", absl::StrCat(registers));
    if (options.has_max_threads_per_block()) {
      function.removeFnAttr("nvvm.maxntid");
      if (options.max_threads_per_block() != 0)
        function.addFnAttr("nvvm.maxntid",
                           absl::StrCat(options.max_threads_per_block()));
    }
    if (options.has_min_blocks_per_multiprocessor()) {
      function.removeFnAttr("nvvm.minctasm");
      if (options.min_blocks_per_multiprocessor() != 0)
        function.addFnAttr(
            "nvvm.minctasm",
            absl::StrCat(options.min_blocks_per_multiprocessor()));
    }
  }
}

bool TakesPreciseSqrt(const v1::CodegenOptions& options,
                      const UnitOptions& unit) {
  if (options.has_approximate_sqrt()) return !options.approximate_sqrt();
  return unit.precise_sqrt.value_or(false);
}

}  // namespace

void ApplyCodegenOptions(const v1::CodegenOptions& options,
                         const UnitOptions& unit, llvm::Module& module) {
  SetFastMath(options, module);
  if (options.has_flush_denormals())
    SetFlushDenormals(options.flush_denormals(), module);
  ResolveReflection(TakesPreciseSqrt(options, unit), module);
  SetKernelLimits(options, unit, module);
}

ScopedLlvmOptions::ScopedLlvmOptions(const v1::CodegenOptions& options,
                                     const UnitOptions& unit) {
  if (options.has_unroll_threshold()) {
    // NVPTX unrolls partially by a threshold of its own.
    Set("unroll-threshold", absl::StrCat(options.unroll_threshold()));
    Set("unroll-partial-threshold", absl::StrCat(options.unroll_threshold()));
  }
  if (options.has_inline_threshold())
    Set("inline-threshold", absl::StrCat(options.inline_threshold()));
  if (options.has_approximate_division()) {
    Set("nvptx-prec-divf32", options.approximate_division() ? "1" : "2");
  } else if (unit.division_precision) {
    Set("nvptx-prec-divf32", absl::StrCat(*unit.division_precision));
  }
  if (options.has_approximate_sqrt() || unit.precise_sqrt)
    Set("nvptx-prec-sqrtf32", TakesPreciseSqrt(options, unit) ? "1" : "0");
}

ScopedLlvmOptions::~ScopedLlvmOptions() {
  auto& all = llvm::cl::getRegisteredOptions();
  for (const std::string& name : names_) {
    all[name]->setDefault();
    all[name]->reset();
  }
}

void ScopedLlvmOptions::Set(const std::string& name, const std::string& value) {
  auto& all = llvm::cl::getRegisteredOptions();
  const auto option = all.find(name);
  CHECK(option != all.end());
  names_.push_back(name);
  CHECK(!option->second->addOccurrence(0, name, value));
}

}  // namespace reprise
