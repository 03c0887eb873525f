#include "replay/device/cpu/lowering/thread_loop.h"

#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <optional>

#include "replay/device/cpu/lowering/index_ranges.h"

namespace reprise::cpu {
namespace {

using llvm::Argument;
using llvm::BinaryOperator;
using llvm::CmpInst;
using llvm::Function;
using llvm::Instruction;
using llvm::Value;

constexpr int kMaxDepth = 24;

// The value is made of operations that another function can repeat.
bool CanRepeat(const Value* value, int* budget) {
  const auto* instruction = llvm::dyn_cast<Instruction>(value);
  if (instruction == nullptr) return true;
  if (--*budget < 0) return false;
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(instruction);
  const bool simple = llvm::isa<BinaryOperator>(instruction) ||
                      llvm::isa<llvm::CastInst>(instruction) ||
                      llvm::isa<llvm::GetElementPtrInst>(instruction) ||
                      llvm::isa<llvm::SelectInst>(instruction) ||
                      llvm::isa<CmpInst>(instruction) ||
                      (load != nullptr && load->isSimple());
  return simple &&
         llvm::all_of(instruction->operands(), [&](const llvm::Use& operand) {
           return CanRepeat(operand, budget);
         });
}

// value == tid + (value at tid 0), without wrapping.
bool IsSumOf(Value* value, const Value* tid, IndexRanges& ranges,
             int depth = 0) {
  if (value == tid) return true;
  auto* instruction = llvm::dyn_cast<Instruction>(value);
  if (instruction == nullptr || depth > kMaxDepth) return false;
  const auto recurse = [&](Value* operand) {
    return IsSumOf(operand, tid, ranges, depth + 1);
  };
  ranges.Of(value);  // sets flags
  switch (instruction->getOpcode()) {
    case Instruction::SExt:
      return recurse(instruction->getOperand(0));
    case Instruction::ZExt:
      return ranges.Of(instruction->getOperand(0)).low >= 0 &&
             recurse(instruction->getOperand(0));
    case Instruction::Add: {
      if (!instruction->hasNoSignedWrap()) return false;
      Value* a = instruction->getOperand(0);
      Value* b = instruction->getOperand(1);
      return (recurse(a) && !DependsOn(b, tid)) ||
             (recurse(b) && !DependsOn(a, tid));
    }
    case Instruction::Sub:
      return instruction->hasNoSignedWrap() &&
             recurse(instruction->getOperand(0)) &&
             !DependsOn(instruction->getOperand(1), tid);
    default:
      return false;
  }
}

// A place in the condition that can be set to a constant.
struct Conjunct {
  llvm::Use* use;
  bool negated;
};

// live = conjunction of the results.
void SplitConjunction(llvm::Use& use, bool negated,
                      std::vector<Conjunct>& conjuncts) {
  using namespace llvm::PatternMatch;  // NOLINT: LLVM's idiom
  Value* value = use.get();
  auto* instruction = llvm::dyn_cast<Instruction>(value);
  Value* a = nullptr;
  Value* b = nullptr;
  if (instruction != nullptr && value->hasOneUse()) {
    if (match(value, m_Not(m_Value(a)))) {
      SplitConjunction(instruction->getOperandUse(0), !negated, conjuncts);
      return;
    }
    const bool splits =
        negated ? match(value, m_LogicalOr(m_Value(a), m_Value(b)))
                : match(value, m_LogicalAnd(m_Value(a), m_Value(b)));
    if (splits) {
      for (llvm::Use& operand : instruction->operands()) {
        if (operand.get() == a || operand.get() == b)
          SplitConjunction(operand, negated, conjuncts);
      }
      return;
    }
  }
  conjuncts.push_back({&use, negated});
}

bool IsOnlyReturn(const llvm::BasicBlock& block) {
  return llvm::isa<llvm::ReturnInst>(block.getTerminator()) &&
         block.sizeWithoutDebug() == 1;
}

bool IsPure(const llvm::BasicBlock& block) {
  return llvm::none_of(block, [](const Instruction& instruction) {
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    return instruction.mayHaveSideEffects() ||
           (load != nullptr && !load->isSimple());
  });
}

std::optional<ThreadGuard> MatchGuard(const Conjunct& conjunct,
                                      const ThreadPositions& positions,
                                      IndexRanges& ranges) {
  auto* compare = llvm::dyn_cast<llvm::ICmpInst>(conjunct.use->get());
  if (compare == nullptr || !compare->getOperand(0)->getType()->isIntegerTy())
    return std::nullopt;
  if (compare->getOperand(0)->getType()->getIntegerBitWidth() > 64)
    return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    ThreadGuard guard;
    guard.predicate =
        side == 0 ? compare->getPredicate() : compare->getSwappedPredicate();
    if (conjunct.negated)
      guard.predicate = CmpInst::getInversePredicate(guard.predicate);
    if (!CmpInst::isRelational(guard.predicate)) return std::nullopt;
    guard.sum = compare->getOperand(side);
    guard.limit = compare->getOperand(1 - side);
    // An unsigned comparison of a sum that may be negative is two bounds.
    if (CmpInst::isUnsigned(guard.predicate) && ranges.Of(guard.sum).low < 0)
      continue;
    int budget = 48;
    if (!CanRepeat(guard.sum, &budget) || !CanRepeat(guard.limit, &budget))
      continue;
    for (int d = 0; d < 3; ++d) {
      const Value* tid = positions.Get(0, d);
      bool inner = false;  // faster threads must not matter to this bound
      for (int faster = 0; faster < d; ++faster) {
        inner |= DependsOn(guard.sum, positions.Get(0, faster)) ||
                 DependsOn(guard.limit, positions.Get(0, faster));
      }
      if (!inner && IsSumOf(guard.sum, tid, ranges) &&
          !DependsOn(guard.limit, tid)) {
        guard.dimension = d;
        return guard;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<ThreadGuard> TakeGuards(KernelState& kernel,
                                    const v1::LaunchConfig& launch) {
  const ThreadPositions positions(kernel, launch);
  IndexRanges ranges(positions);
  for (Instruction& instruction : llvm::instructions(*kernel.thread)) {
    if (instruction.getType()->isIntegerTy()) ranges.Of(&instruction);
  }
  std::vector<ThreadGuard> guards;
  if (kernel.uses_fibers) return guards;
  llvm::BasicBlock& entry = kernel.thread->getEntryBlock();
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(entry.getTerminator());
  if (branch == nullptr || !branch->isConditional() || !IsPure(entry))
    return guards;
  const bool dead_if_true = IsOnlyReturn(*branch->getSuccessor(0));
  if (!dead_if_true && !IsOnlyReturn(*branch->getSuccessor(1))) return guards;
  std::vector<Conjunct> conjuncts;
  SplitConjunction(branch->getOperandUse(0), dead_if_true, conjuncts);
  for (const Conjunct& conjunct : conjuncts) {
    const auto guard = MatchGuard(conjunct, positions, ranges);
    if (!guard) continue;
    guards.push_back(*guard);
    conjunct.use->set(
        llvm::ConstantInt::getBool(entry.getContext(), !conjunct.negated));
  }
  return guards;
}

llvm::MDNode* MarkParallelAccesses(Function& thread) {
  std::vector<Instruction*> accesses;
  for (Instruction& instruction : llvm::instructions(thread)) {
    if (instruction.isAtomic() || instruction.isVolatile()) return nullptr;
    if (auto* slot = llvm::dyn_cast<llvm::AllocaInst>(&instruction)) {
      // A pointer from anywhere might point to it.
      if (llvm::PointerMayBeCaptured(slot, /*ReturnCaptures=*/true))
        return nullptr;
    }
    if (!instruction.mayReadOrWriteMemory() ||
        instruction.isLifetimeStartOrEnd())
      continue;
    auto* transfer = llvm::dyn_cast<llvm::MemTransferInst>(&instruction);
    const Value* pointer = nullptr;
    if (transfer != nullptr) {
      if (llvm::isa<llvm::AllocaInst>(
              llvm::getUnderlyingObject(transfer->getSource(), 0)))
        continue;
      pointer = transfer->getDest();
    } else if (auto* set = llvm::dyn_cast<llvm::MemSetInst>(&instruction)) {
      pointer = set->getDest();
    } else {
      pointer = llvm::getLoadStorePointerOperand(&instruction);
    }
    if (pointer == nullptr) return nullptr;  // a call
    llvm::SmallVector<const Value*, 4> objects;
    llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);
    if (llvm::none_of(objects, [](const Value* o) {
          return llvm::isa<llvm::AllocaInst>(o);
        })) {
      accesses.push_back(&instruction);
    }
  }
  llvm::MDNode* group = llvm::MDNode::getDistinct(thread.getContext(), {});
  for (Instruction* access : accesses) {
    access->setMetadata(llvm::LLVMContext::MD_access_group, group);
  }
  return group;
}

}  // namespace reprise::cpu
