// WidenIndices: see thread_loop.h.
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include "replay/device/cpu/lowering/index_ranges.h"
#include "replay/device/cpu/lowering/thread_loop.h"

namespace reprise::cpu {
namespace {

using llvm::Argument;
using llvm::BinaryOperator;
using llvm::Function;
using llvm::Instruction;
using llvm::Value;

// Pushes a sign extension towards the leaves of arithmetic that cannot wrap.
class IndexWidener {
 public:
  IndexWidener(const Value* thread, llvm::Type* wide)
      : thread_(thread), wide_(wide) {}

  // `extension` is a sext, or a zext of what is not negative.
  void Widen(llvm::CastInst& extension) {
    Value* narrow = extension.getOperand(0);
    if (!CanPush(narrow) || !DependsOn(narrow, thread_)) return;
    // The old one stays for guards that name it; it is dead otherwise.
    extension.replaceAllUsesWith(Extended(narrow));
  }

 private:
  static bool CanPush(const Value* value) {
    const auto* operation = llvm::dyn_cast<BinaryOperator>(value);
    if (operation == nullptr) return false;
    switch (operation->getOpcode()) {
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::Mul:
      case Instruction::Shl:
        return operation->hasNoSignedWrap();
      default:
        return false;
    }
  }

  Value* Extended(Value* value) {
    const auto known = extended_.find(value);
    if (known != extended_.end()) return known->second;
    Value* result = nullptr;
    if (CanPush(value)) {
      auto* operation = llvm::cast<BinaryOperator>(value);
      Value* a = Extended(operation->getOperand(0));
      Value* b = Extended(operation->getOperand(1));
      auto* widened = BinaryOperator::Create(operation->getOpcode(), a, b, "",
                                             operation->getIterator());
      widened->setHasNoSignedWrap(true);
      widened->setDebugLoc(operation->getDebugLoc());
      result = widened;
    } else if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value)) {
      result = llvm::ConstantInt::get(
          wide_->getContext(),
          constant->getValue().sext(wide_->getIntegerBitWidth()));
    } else {
      result = ExtendLeaf(value);
    }
    extended_[value] = result;
    return result;
  }

  Value* ExtendLeaf(Value* value) {
    if (auto* instruction = llvm::dyn_cast<Instruction>(value)) {
      const auto at = llvm::isa<llvm::PHINode>(instruction)
                          ? instruction->getParent()->getFirstInsertionPt()
                          : std::next(instruction->getIterator());
      return llvm::CastInst::Create(Instruction::SExt, value, wide_, "", at);
    }
    auto* argument = llvm::cast<Argument>(value);
    const auto at =
        argument->getParent()->getEntryBlock().getFirstInsertionPt();
    return llvm::CastInst::Create(Instruction::SExt, value, wide_, "", at);
  }

  const Value* thread_;
  llvm::Type* wide_;
  llvm::DenseMap<Value*, Value*> extended_;
};

}  // namespace

void WidenIndices(KernelState& kernel) {
  Function& thread = *kernel.thread;
  llvm::Type* wide = llvm::Type::getInt64Ty(thread.getContext());
  IndexWidener widener(thread.getArg(FirstPositionArgument(kernel)), wide);
  std::vector<llvm::CastInst*> extensions;
  for (Instruction& instruction : llvm::instructions(thread)) {
    if (instruction.getType() != wide) continue;
    const auto* zext = llvm::dyn_cast<llvm::ZExtInst>(&instruction);
    if (llvm::isa<llvm::SExtInst>(instruction) ||
        (zext != nullptr && zext->hasNonNeg())) {
      extensions.push_back(llvm::cast<llvm::CastInst>(&instruction));
    }
  }
  for (llvm::CastInst* extension : extensions) widener.Widen(*extension);
}

}  // namespace reprise::cpu
