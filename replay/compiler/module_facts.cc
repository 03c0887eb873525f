#include "replay/compiler/module_facts.h"

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/Alignment.h"
#include "replay/compiler/address_spaces.h"
#include "replay/compiler/kernel_metadata.h"
#include "replay/compiler/kernel_selection.h"

namespace reprise {
namespace {

void AddParameterLayout(const llvm::Function& kernel,
                        v1::CompiledKernelInfo& info) {
  const llvm::DataLayout& layout = kernel.getParent()->getDataLayout();
  uint64_t offset = 0;
  for (const llvm::Argument& argument : kernel.args()) {
    llvm::Type* type = argument.getType();
    llvm::Align alignment = layout.getABITypeAlign(type);
    if (argument.hasByValAttr()) {
      type = argument.getParamByValType();
      alignment =
          argument.getParamAlign().value_or(layout.getABITypeAlign(type));
    }
    offset = llvm::alignTo(offset, alignment);
    const uint64_t bytes = layout.getTypeAllocSize(type).getFixedValue();
    info.add_parameter_offsets(static_cast<uint32_t>(offset));
    info.add_parameter_bytes(static_cast<uint32_t>(bytes));
    offset += bytes;
  }
}

// "256" or "32,8,1".
uint32_t LaunchBound(const llvm::Function& kernel) {
  const std::string text =
      kernel.getFnAttribute("nvvm.maxntid").getValueAsString().str();
  if (text.empty()) return 0;
  uint32_t threads = 1;
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(text, ','))) {
    uint32_t dimension = 0;
    if (!absl::SimpleAtoi(part, &dimension)) return 0;
    threads *= dimension;
  }
  return threads;
}

void Collect(const llvm::Value& value, std::set<const llvm::Value*>& seen,
             std::vector<const llvm::Function*>& functions,
             std::vector<const llvm::GlobalVariable*>& shared) {
  if (!llvm::isa<llvm::Constant>(value) || !seen.insert(&value).second) return;
  if (const auto* function = llvm::dyn_cast<llvm::Function>(&value)) {
    functions.push_back(function);
    return;
  }
  const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(&value);
  if (global != nullptr && global->getAddressSpace() == kSharedSpace &&
      !global->isDeclaration())
    shared.push_back(global);
  for (const llvm::Use& operand : llvm::cast<llvm::User>(value).operands())
    Collect(*operand.get(), seen, functions, shared);
}

}  // namespace

uint32_t StaticSharedBytes(const llvm::Function& kernel) {
  std::set<const llvm::Value*> seen = {&kernel};
  std::vector<const llvm::Function*> functions = {&kernel};
  std::vector<const llvm::GlobalVariable*> shared;
  for (size_t i = 0; i < functions.size(); ++i) {
    for (const llvm::Instruction& instruction :
         llvm::instructions(*functions[i])) {
      for (const llvm::Use& operand : instruction.operands())
        Collect(*operand.get(), seen, functions, shared);
    }
  }
  const llvm::DataLayout& layout = kernel.getParent()->getDataLayout();
  uint64_t bytes = 0;
  for (const llvm::GlobalVariable* variable : shared) {
    const llvm::Align alignment = variable->getAlign().value_or(
        layout.getABITypeAlign(variable->getValueType()));
    bytes = llvm::alignTo(bytes, alignment) +
            layout.getTypeAllocSize(variable->getValueType()).getFixedValue();
  }
  return static_cast<uint32_t>(bytes);
}

std::vector<v1::CompiledKernelInfo> KernelFacts(
    const std::vector<std::string>& kernels, const llvm::Module& module) {
  std::vector<v1::CompiledKernelInfo> facts;
  for (const std::string& name : kernels) {
    const llvm::Function* kernel = module.getFunction(name);
    if (kernel == nullptr) continue;
    v1::CompiledKernelInfo& info = facts.emplace_back();
    info.set_symbol(name);
    AddParameterLayout(*kernel, info);
    info.set_static_shared_bytes(StaticSharedBytes(*kernel));
    info.set_max_threads_per_block(LaunchBound(*kernel));
    ReadKernelMetadata(module, info);
  }
  return facts;
}

std::vector<v1::ModuleGlobal> GlobalFacts(const llvm::Module& module) {
  const llvm::DataLayout& layout = module.getDataLayout();
  std::vector<v1::ModuleGlobal> facts;
  for (const llvm::GlobalVariable& global : module.globals()) {
    if (!IsDeviceState(global)) continue;
    v1::ModuleGlobal& fact = facts.emplace_back();
    fact.set_symbol(global.getName().str());
    fact.set_bytes(
        layout.getTypeAllocSize(global.getValueType()).getFixedValue());
    fact.set_alignment(static_cast<uint32_t>(
        global.getAlign()
            .value_or(layout.getABITypeAlign(global.getValueType()))
            .value()));
    fact.set_constant(global.getAddressSpace() == kConstantSpace);
  }
  return facts;
}

void CountInstructions(const llvm::Module& module, v1::CodeFacts& facts) {
  auto& features = *facts.mutable_ir_features();
  for (const llvm::Function& function : module) {
    for (const llvm::Instruction& instruction : llvm::instructions(function))
      ++features[instruction.getOpcodeName()];
  }
}

}  // namespace reprise
