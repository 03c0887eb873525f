// Notes in the code: floating-point operations per basic block, and every
// access to memory that is neither local nor shared.
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>

#include "replay/device/cpu/abi.h"
#include "replay/device/cpu/lowering/internal.h"
#include "replay/device/cpu/lowering/thread_loop.h"
#include "replay/device/instruction_facts.h"

namespace reprise::cpu {
namespace {

using llvm::Function;
using llvm::Instruction;
using llvm::IRBuilder;
using llvm::StringRef;
using llvm::Type;
using llvm::Value;

// What the lowering made of PTX's own operations counts by its name.
uint64_t Flops(const Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  const Function* callee =
      call != nullptr ? call->getCalledFunction() : nullptr;
  StringRef name = callee != nullptr ? callee->getName() : "";
  if (!name.consume_front("__reprise_")) return CommonFlops(instruction);
  if (name.starts_with("fma_")) return 2;
  for (const char* one : {"add_", "mul_", "div_", "sqrt_", "ex2_", "lg2_",
                          "sin_", "cos_", "tanh_"}) {
    if (name.starts_with(one)) return 1;
  }
  return 0;
}

AccessType TypeOfAccess(const Type* type) {
  return static_cast<AccessType>(ElementTypeOf(type));
}

class AccessNotes {
 public:
  AccessNotes(LoweringState& state, Function& function)
      : function_(function), layout_(state.module.getDataLayout()) {
    for (const KernelState& kernel : state.kernels) {
      if (kernel.thread != &function) continue;
      // Pointers into the argument buffer and the shared memory.
      for (size_t i = 0; i < kernel.by_value.size(); ++i) {
        if (kernel.by_value[i] != nullptr) private_.insert(function.getArg(i));
      }
      const unsigned count = function.arg_size();
      private_.insert(function.getArg(count - 1));
      private_.insert(function.getArg(count - 2));
    }
  }

  void Run() {
    std::vector<Instruction*> accesses;
    for (Instruction& instruction : llvm::instructions(function_)) {
      if (instruction.mayReadOrWriteMemory()) accesses.push_back(&instruction);
    }
    for (Instruction* access : accesses) Note(*access);
  }

 private:
  // Certainly not memory that others see. The runtime drops what else is not.
  bool IsPrivate(const Value* pointer) const {
    const Value* object = llvm::getUnderlyingObject(pointer, 0);
    if (llvm::isa<llvm::AllocaInst>(object) || private_.contains(object))
      return true;
    const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(object);
    return variable != nullptr && !variable->isDeclaration();
  }

  void Emit(IRBuilder<>& b, const char* what, Value* pointer, Value* bytes,
            AccessType type) {
    if (IsPrivate(pointer)) return;
    CallRuntime(b, what, b.getVoidTy(),
                {b.CreateAddrSpaceCast(pointer, b.getPtrTy()),
                 b.CreateZExtOrTrunc(bytes, b.getInt64Ty()),
                 b.getInt32(static_cast<uint32_t>(type))});
  }
  void Read(IRBuilder<>& b, Value* pointer, Type* type) {
    Emit(b, "__reprise_note_read", pointer, Size(b, type), TypeOfAccess(type));
  }
  void Write(IRBuilder<>& b, Value* pointer, Type* type) {
    Emit(b, "__reprise_note_write", pointer, Size(b, type), TypeOfAccess(type));
  }
  Value* Size(IRBuilder<>& b, Type* type) {
    return b.getInt64(layout_.getTypeStoreSize(type));
  }

  void Note(Instruction& access);

  Function& function_;
  const llvm::DataLayout& layout_;
  llvm::SmallPtrSet<const Value*, 8> private_;
};

void AccessNotes::Note(Instruction& access) {
  IRBuilder<> b(&access);
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&access)) {
    Read(b, load->getPointerOperand(), load->getType());
  } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&access)) {
    Write(b, store->getPointerOperand(), store->getValueOperand()->getType());
  } else if (auto* rmw = llvm::dyn_cast<llvm::AtomicRMWInst>(&access)) {
    Read(b, rmw->getPointerOperand(), rmw->getType());
    Write(b, rmw->getPointerOperand(), rmw->getType());
  } else if (auto* exchange =
                 llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&access)) {
    Type* type = exchange->getCompareOperand()->getType();
    Read(b, exchange->getPointerOperand(), type);
    // Written only where the comparison held.
    IRBuilder<> after(exchange->getNextNode());
    Value* written = after.CreateSelect(after.CreateExtractValue(exchange, 1),
                                        Size(after, type), after.getInt64(0));
    Emit(after, "__reprise_note_write", exchange->getPointerOperand(), written,
         TypeOfAccess(type));
  } else if (auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(&access)) {
    Emit(b, "__reprise_note_read", copy->getSource(), copy->getLength(),
         AccessType::kUntyped);
    Emit(b, "__reprise_note_write", copy->getDest(), copy->getLength(),
         AccessType::kUntyped);
  } else if (auto* set = llvm::dyn_cast<llvm::MemSetInst>(&access)) {
    Emit(b, "__reprise_note_write", set->getDest(), set->getLength(),
         AccessType::kUntyped);
  }
}

}  // namespace

void CountFlops(LoweringState& state) {
  for (Function& function : state.module) {
    for (llvm::BasicBlock& block : function) {
      uint64_t flops = 0;
      for (const Instruction& instruction : block) flops += Flops(instruction);
      if (flops == 0) continue;
      IRBuilder<> b(block.getTerminator());
      CallRuntime(b, "__reprise_note_flops", b.getVoidTy(),
                  {b.getInt64(flops)});
    }
  }
}

void NoteAccesses(LoweringState& state) {
  for (Function& function : state.module) {
    if (!function.isDeclaration()) AccessNotes(state, function).Run();
  }
}

}  // namespace reprise::cpu
