// From a kernel to its thread function: everything inlined that can be, and
// the thread's position, block and shared memory as parameters.
#include <llvm/ADT/SCCIterator.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/InstSimplifyPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "absl/strings/str_cat.h"
#include "replay/device/cpu/abi.h"
#include "replay/device/cpu/lowering/intrinsics.h"
#include "replay/device/cpu/lowering/passes.h"
#include "replay/device/cpu/lowering/shared_variables.h"
#include "replay/device/cpu/lowering/threads.h"

namespace reprise::cpu {
namespace {

using llvm::Argument;
using llvm::Attribute;
using llvm::CallInst;
using llvm::Function;
using llvm::GlobalVariable;
using llvm::Instruction;
using llvm::IRBuilder;
using llvm::StringRef;
using llvm::Type;
using llvm::Value;

bool IsKernelFunction(const LoweringState& state, const Function& function) {
  return llvm::any_of(state.kernels, [&](const KernelState& kernel) {
    return kernel.function == &function;
  });
}

llvm::SmallPtrSet<const Function*, 8> RecursiveFunctions(llvm::Module& module) {
  llvm::SmallPtrSet<const Function*, 8> recursive;
  llvm::CallGraph graph(module);
  for (auto scc = llvm::scc_begin(&graph); !scc.isAtEnd(); ++scc) {
    if (!scc.hasCycle()) continue;
    for (const llvm::CallGraphNode* node : *scc)
      recursive.insert(node->getFunction());
  }
  return recursive;
}

void InlineDeviceFunctions(LoweringState& state) {
  llvm::Module& module = state.module;
  const auto recursive = RecursiveFunctions(module);
  for (Function& function : module) {
    if (function.isDeclaration()) continue;
    if (IsKernelFunction(state, function)) {
      function.removeFnAttr(Attribute::NoInline);
      function.removeFnAttr(Attribute::AlwaysInline);
      continue;
    }
    if (recursive.contains(&function) ||
        function.hasFnAttribute(Attribute::NoInline)) {
      function.removeFnAttr(Attribute::AlwaysInline);
      function.addFnAttr(Attribute::NoInline);
    } else {
      function.removeFnAttr(Attribute::OptimizeNone);
      function.addFnAttr(Attribute::AlwaysInline);
    }
  }
  PassRunner passes;
  llvm::ModulePassManager inliner;
  inliner.addPass(llvm::AlwaysInlinerPass(/*InsertLifetime=*/false));
  inliner.addPass(llvm::GlobalDCEPass());
  passes.Run(module, inliner);
}

// Registers and exits.

bool IsRegisterRead(const Instruction& instruction, StringRef* name) {
  const auto* call = llvm::dyn_cast<CallInst>(&instruction);
  const Function* callee =
      call != nullptr ? call->getCalledFunction() : nullptr;
  if (callee == nullptr) return false;
  *name = callee->getName();
  return name->consume_front("llvm.nvvm.read.ptx.sreg.");
}

Value* Product(IRBuilder<>& b, Value* const (&values)[3]) {
  return b.CreateMul(b.CreateMul(values[0], values[1]), values[2]);
}

Value* Linear(IRBuilder<>& b, const ThreadValues& v) {
  Value* row =
      b.CreateAdd(v.thread[1], b.CreateMul(v.block_dim[1], v.thread[2]));
  return b.CreateAdd(v.thread[0], b.CreateMul(v.block_dim[0], row));
}

Value* LaneMask(IRBuilder<>& b, StringRef kind, Value* lane) {
  Value* eq = b.CreateShl(b.getInt32(1), lane);
  if (kind == "eq") return eq;
  Value* lt = b.CreateSub(eq, b.getInt32(1));
  if (kind == "lt") return lt;
  if (kind == "ge") return b.CreateNot(lt);
  Value* le = b.CreateOr(lt, eq);
  return kind == "le" ? le : b.CreateNot(le);
}

Value* RegisterValue(IRBuilder<>& b, StringRef name, const ThreadValues& v,
                     uint32_t static_shared_bytes) {
  const auto [group, dimension] = name.split('.');
  const int d = dimension == "x" ? 0 : dimension == "y" ? 1 : 2;
  if (group == "tid") return v.thread[d];
  if (group == "ntid") return v.block_dim[d];
  if (group == "ctaid" || group == "clusterid") return v.block[d];
  if (group == "nctaid" || group == "nclusterid") return v.grid[d];
  if (name == "dynamic_smem_size") return v.dynamic_shared_bytes;
  if (name == "total_smem_size" || name == "aggr_smem_size") {
    return b.CreateAdd(v.dynamic_shared_bytes, b.getInt32(static_shared_bytes));
  }
  if (name == "nwarpid") {
    return b.CreateLShr(b.CreateAdd(Product(b, v.block_dim), b.getInt32(31)),
                        5);
  }
  Value* linear = Linear(b, v);
  if (name == "warpid") return b.CreateLShr(linear, 5);
  Value* lane = b.CreateAnd(linear, b.getInt32(31));
  if (name == "laneid") return lane;
  return LaneMask(b, dimension, lane);
}

void ReplaceRegisters(Function& function, const ThreadValues& values,
                      uint32_t static_shared_bytes) {
  for (Instruction& instruction :
       llvm::make_early_inc_range(llvm::instructions(function))) {
    StringRef name;
    if (!IsRegisterRead(instruction, &name)) continue;
    IRBuilder<> b(&instruction);
    instruction.replaceAllUsesWith(
        RegisterValue(b, name, values, static_shared_bytes));
    instruction.eraseFromParent();
  }
}

void ReplaceExits(Function& function, bool is_kernel) {
  std::vector<CallInst*> exits;
  for (Instruction& instruction : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (call != nullptr &&
        call->getIntrinsicID() == llvm::Intrinsic::nvvm_exit) {
      exits.push_back(call);
    }
  }
  for (CallInst* call : exits) {
    if (call->getParent() == nullptr) continue;
    IRBuilder<> b(call);
    llvm::UnreachableInst* end =
        new llvm::UnreachableInst(function.getContext(), call->getIterator());
    if (is_kernel) {
      IRBuilder<>(end).CreateRetVoid();
    } else {
      CallRuntime(b, "__reprise_exit_thread", b.getVoidTy(), {});
    }
    Instruction* last =
        is_kernel ? end->getPrevNode() : static_cast<Instruction*>(end);
    llvm::BasicBlock* block = call->getParent();
    // Everything behind the new terminator goes.
    for (llvm::BasicBlock* successor : llvm::successors(block))
      successor->removePredecessor(block);
    while (&block->back() != last) {
      Instruction& dead = block->back();
      if (!dead.use_empty())
        dead.replaceAllUsesWith(llvm::PoisonValue::get(dead.getType()));
      dead.eraseFromParent();
    }
  }
}

llvm::SmallSetVector<Function*, 8> ReachableFrom(Function& root) {
  llvm::SmallSetVector<Function*, 8> reached;
  reached.insert(&root);
  for (size_t i = 0; i < reached.size(); ++i) {
    for (Instruction& instruction : llvm::instructions(*reached[i])) {
      for (Value* operand : instruction.operands()) {
        auto* callee = llvm::dyn_cast<Function>(operand->stripPointerCasts());
        if (callee != nullptr && !callee->isDeclaration())
          reached.insert(callee);
      }
      const auto* call = llvm::dyn_cast<CallInst>(&instruction);
      if (call == nullptr || call->getCalledFunction() != nullptr ||
          call->isInlineAsm())
        continue;
      // An indirect call may reach whatever had its address taken.
      for (Function& function : *root.getParent()) {
        if (!function.isDeclaration() && function.hasAddressTaken())
          reached.insert(&function);
      }
    }
  }
  return reached;
}

bool CallsAny(const Function& function, bool (*predicate)(StringRef)) {
  for (const Instruction& instruction : llvm::instructions(function)) {
    const auto* call = llvm::dyn_cast<CallInst>(&instruction);
    const Function* callee =
        call != nullptr ? call->getCalledFunction() : nullptr;
    if (callee != nullptr && predicate(callee->getName())) return true;
  }
  return false;
}

bool IsExit(StringRef name) { return name == "llvm.nvvm.exit"; }
// A fault report names the thread where these are reached.
bool NamesThread(StringRef name) {
  return name == "__reprise_trap" || name == "__reprise_assert_fail";
}

// A function that stays out of line asks the runtime which thread it runs for.
ThreadValues ValuesOutOfLine(Function& function) {
  IRBuilder<> b(&*function.getEntryBlock().getFirstInsertionPt());
  Value* thread = CallRuntime(b, "__reprise_current_thread", b.getPtrTy(), {});
  auto field = [&](Value* base, size_t offset, Type* type) -> Value* {
    return b.CreateLoad(
        type, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), base, offset));
  };
  Value* block = field(thread, offsetof(ThreadContext, block), b.getPtrTy());
  ThreadValues v;
  for (int d = 0; d < 3; ++d) {
    v.thread[d] =
        field(thread, offsetof(ThreadContext, thread) + 4 * d, b.getInt32Ty());
    v.block[d] =
        field(block, offsetof(BlockContext, block) + 4 * d, b.getInt32Ty());
    v.grid[d] =
        field(block, offsetof(BlockContext, grid) + 4 * d, b.getInt32Ty());
    v.block_dim[d] =
        field(block, offsetof(BlockContext, block_dim) + 4 * d, b.getInt32Ty());
  }
  v.dynamic_shared_bytes = field(
      block, offsetof(BlockContext, dynamic_shared_bytes), b.getInt32Ty());
  v.shared = field(block, offsetof(BlockContext, shared), b.getPtrTy());
  v.dynamic_shared =
      field(block, offsetof(BlockContext, dynamic_shared), b.getPtrTy());
  return v;
}

bool UsesThread(const LoweringState& state, const Function& function) {
  if (!SharedUses(state, function).empty()) return true;
  for (const Instruction& instruction : llvm::instructions(function)) {
    StringRef name;
    if (IsRegisterRead(instruction, &name)) return true;
  }
  return false;
}

// Kernel parameters, then the position in the order of ThreadValues.
Function* MakeThreadFunction(KernelState& kernel, ThreadValues* values) {
  Function& old = *kernel.function;
  llvm::LLVMContext& context = old.getContext();
  Type* i32 = Type::getInt32Ty(context);
  Type* pointer = llvm::PointerType::get(context, 0);
  std::vector<Type*> types(old.getFunctionType()->params());
  types.insert(types.end(), 13, i32);
  types.insert(types.end(), 2, pointer);
  Function* thread = Function::Create(
      llvm::FunctionType::get(Type::getVoidTy(context), types, false),
      Function::InternalLinkage, "__reprise_thread_" + old.getName(),
      old.getParent());
  thread->copyAttributesFrom(&old);
  thread->setLinkage(Function::InternalLinkage);
  thread->setDSOLocal(true);
  thread->setSubprogram(old.getSubprogram());
  old.setSubprogram(nullptr);
  thread->splice(thread->begin(), &old);
  for (Argument& argument : old.args()) {
    Argument* replacement = thread->getArg(argument.getArgNo());
    replacement->takeName(&argument);
    argument.replaceAllUsesWith(replacement);
    if (argument.hasByValAttr())
      thread->removeParamAttr(argument.getArgNo(), Attribute::ByVal);
  }
  unsigned next = old.arg_size();
  for (auto* group :
       {&values->thread, &values->block, &values->block_dim, &values->grid}) {
    for (Value*& value : *group) value = thread->getArg(next++);
  }
  values->dynamic_shared_bytes = thread->getArg(next++);
  values->shared = thread->getArg(next++);
  values->dynamic_shared = thread->getArg(next++);
  return thread;
}

void UseKnownLaunch(const v1::LaunchConfig& launch, llvm::LLVMContext& context,
                    ThreadValues* values) {
  Type* i32 = Type::getInt32Ty(context);
  auto constants = [&](const v1::Dim3& dim, Value*(&target)[3]) {
    const uint32_t sizes[3] = {dim.x(), dim.y(), dim.z()};
    for (int d = 0; d < 3; ++d) {
      if (sizes[d] != 0) target[d] = llvm::ConstantInt::get(i32, sizes[d]);
    }
  };
  if (launch.has_block()) constants(launch.block(), values->block_dim);
  if (launch.has_grid()) constants(launch.grid(), values->grid);
}

// The argument buffer is only read; a kernel that writes a struct parameter
// gets a copy per thread.
bool OnlyReadParameter(const Value& value, int depth = 0) {
  if (depth > 16) return false;
  for (const llvm::Use& use : value.uses()) {
    const llvm::User* user = use.getUser();
    if (llvm::isa<llvm::LoadInst>(user)) continue;
    if (const auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(user)) {
      if (use.getOperandNo() == 1 && !copy->isVolatile()) continue;
      return false;
    }
    const bool passes_on = llvm::isa<llvm::GetElementPtrInst>(user) ||
                           llvm::isa<llvm::AddrSpaceCastInst>(user);
    if (!passes_on || !OnlyReadParameter(*user, depth + 1)) return false;
  }
  return true;
}

void MarkInvariantLoads(Value& value) {
  for (llvm::User* user : value.users()) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(user)) {
      load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                        llvm::MDNode::get(load->getContext(), {}));
    } else if (llvm::isa<llvm::GetElementPtrInst>(user) ||
               llvm::isa<llvm::AddrSpaceCastInst>(user)) {
      MarkInvariantLoads(*user);
    }
  }
}

void CopyWrittenParameters(const KernelState& kernel,
                           const std::vector<Type*>& by_value) {
  Function& thread = *kernel.thread;
  const llvm::DataLayout& layout = thread.getParent()->getDataLayout();
  for (unsigned i = 0; i < by_value.size(); ++i) {
    if (by_value[i] == nullptr) continue;
    Argument* argument = thread.getArg(i);
    if (OnlyReadParameter(*argument)) {
      MarkInvariantLoads(*argument);
      continue;
    }
    IRBuilder<> b(&*thread.getEntryBlock().getFirstInsertionPt());
    llvm::AllocaInst* copy = b.CreateAlloca(by_value[i]);
    const llvm::Align align = argument->getParamAlign().valueOrOne();
    copy->setAlignment(std::max(align, layout.getABITypeAlign(by_value[i])));
    argument->replaceAllUsesWith(copy);
    b.CreateMemCpy(copy, copy->getAlign(), argument, align,
                   layout.getTypeAllocSize(by_value[i]));
  }
}

}  // namespace

void CleanUp(Function& function) {
  PassRunner passes;
  llvm::FunctionPassManager cleanup;
  cleanup.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  cleanup.addPass(llvm::EarlyCSEPass());
  cleanup.addPass(llvm::InstSimplifyPass());
  cleanup.addPass(llvm::SimplifyCFGPass());
  passes.Run(function, cleanup);
}

namespace {

std::vector<Function*> OutOfLineFunctions(const LoweringState& state) {
  std::vector<Function*> functions;
  for (Function& function : state.module) {
    if (!function.isDeclaration() && !IsKernelFunction(state, function)) {
      functions.push_back(&function);
    }
  }
  return functions;
}

void BuildThreadFunction(LoweringState& state, KernelState& kernel,
                         const CommonShared& common) {
  Function* old = kernel.function;
  bool reaches_common = false;
  for (Function* function : ReachableFrom(*old)) {
    const bool own = function == old;
    if (!own && !SharedUses(state, *function).empty()) reaches_common = true;
    kernel.uses_fibers |= CallsAny(*function, NeedsFibers) ||
                          (!own && CallsAny(*function, IsExit));
    kernel.needs_current_thread |= CallsAny(*function, NamesThread) ||
                                   (!own && UsesThread(state, *function));
  }
  VariableOffsets offsets = common.offsets;
  const auto uses = SharedUses(state, *old);
  for (GlobalVariable* variable : uses) {
    reaches_common |= common.offsets.contains(variable);
  }
  uint32_t bytes = reaches_common ? common.bytes : 0;
  for (GlobalVariable* variable : uses) PlaceShared(*variable, offsets, &bytes);
  kernel.info.set_static_shared_bytes(bytes);
  kernel.info.set_has_barriers(kernel.uses_fibers);
  for (Argument& argument : old->args()) {
    kernel.by_value.push_back(
        argument.hasByValAttr() ? argument.getParamByValType() : nullptr);
  }
  ThreadValues values;
  kernel.thread = MakeThreadFunction(kernel, &values);
  UseKnownLaunch(state.options.launch, state.module.getContext(), &values);
  ReplaceExits(*kernel.thread, true);
  ReplaceShared(state, *kernel.thread, values, offsets,
                &*kernel.thread->getEntryBlock().getFirstInsertionPt());
  ReplaceRegisters(*kernel.thread, values, bytes);
  CopyWrittenParameters(kernel, kernel.by_value);
  CleanUp(*kernel.thread);
}

}  // namespace

absl::Status BuildThreadFunctions(LoweringState& state) {
  InlineDeviceFunctions(state);
  NameSites(state.module);
  for (KernelState& kernel : state.kernels) CleanUp(*kernel.function);
  llvm::SmallVector<llvm::Constant*, 8> shared(state.shared_variables.begin(),
                                               state.shared_variables.end());
  llvm::convertUsersOfConstantsToInstructions(shared);
  const std::vector<Function*> out_of_line = OutOfLineFunctions(state);
  CommonShared common;
  for (Function* function : out_of_line) {
    for (GlobalVariable* variable : SharedUses(state, *function)) {
      PlaceShared(*variable, common.offsets, &common.bytes);
    }
  }
  for (KernelState& kernel : state.kernels) {
    BuildThreadFunction(state, kernel, common);
  }
  for (Function* function : out_of_line) {
    ReplaceExits(*function, false);
    if (!UsesThread(state, *function)) continue;
    const ThreadValues values = ValuesOutOfLine(*function);
    Instruction* at =
        llvm::cast<Instruction>(values.dynamic_shared)->getNextNode();
    ReplaceShared(state, *function, values, common.offsets, at);
    ReplaceRegisters(*function, values, common.bytes);
  }
  for (GlobalVariable* variable : state.shared_variables) {
    variable->removeDeadConstantUsers();
    if (!variable->use_empty()) {
      return absl::InternalError(absl::StrCat("shared variable ",
                                              variable->getName().str(),
                                              " is used outside of functions"));
    }
    variable->eraseFromParent();
  }
  state.shared_variables.clear();
  return absl::OkStatus();
}

}  // namespace reprise::cpu
