#include "replay/device/cpu/lowering/thread_loop.h"

#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <optional>

#include "replay/device/cpu/abi.h"

namespace reprise::cpu {
namespace {

using llvm::Argument;
using llvm::BinaryOperator;
using llvm::CmpInst;
using llvm::Function;
using llvm::Instruction;
using llvm::Value;
using Wide = __int128;

constexpr int kMaxDepth = 24;

struct Range {
  Wide low = 0;
  Wide high = 0;
};

// Where the position parameters of a thread function stand.
class Positions {
 public:
  Positions(const KernelState& kernel, const v1::LaunchConfig& launch)
      : thread_(*kernel.thread), first_(FirstPositionArgument(kernel)) {
    const v1::Dim3* dims[2] = {&launch.block(), &launch.grid()};
    for (int i = 0; i < 2; ++i) {
      known_[i][0] = dims[i]->x();
      known_[i][1] = dims[i]->y();
      known_[i][2] = dims[i]->z();
    }
  }

  bool IsThread(const Value* value, int d) const { return value == Get(0, d); }
  bool IsBlock(const Value* value, int d) const { return value == Get(1, d); }
  // A use of gridDim or blockDim may have become the known constant.
  bool IsBlockDim(const Value* value, int d) const {
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
    if (constant != nullptr) {
      return known_[0][d] != 0 &&
             constant->getValue() == uint64_t{known_[0][d]};
    }
    return value == Get(2, d);
  }
  Value* Get(int group, int d) const {
    return thread_.getArg(first_ + 3 * group + d);
  }

  std::optional<Range> RangeOf(const Value* value) const {
    constexpr uint32_t kMaxBlock[3] = {1024, 1024, 64};
    for (int d = 0; d < 3; ++d) {
      const uint32_t block = known_[0][d] != 0 ? known_[0][d] : kMaxBlock[d];
      const Wide grid = known_[1][d] != 0 ? Wide{known_[1][d]}
                                          : Wide{kMaxThreadsPerDimension} /
                                                std::max(known_[0][d], 1u);
      if (value == Get(0, d)) return Range{0, block - 1};
      if (value == Get(1, d)) return Range{0, grid - 1};
      if (value == Get(2, d)) return Range{1, block};
      if (value == Get(3, d)) return Range{1, grid};
    }
    return std::nullopt;
  }

 private:
  Function& thread_;
  unsigned first_;
  uint32_t known_[2][3];  // block, grid
};

Range FullRange(const llvm::Type* type) {
  const unsigned bits = type->getIntegerBitWidth();
  if (bits > 64) return {-(Wide{1} << 100), Wide{1} << 100};
  return {-(Wide{1} << (bits - 1)), (Wide{1} << (bits - 1)) - 1};
}

bool Within(const Range& inner, const Range& outer) {
  return inner.low >= outer.low && inner.high <= outer.high;
}

// Signed ranges of index arithmetic; sets flags on what it proves.
class IndexRanges {
 public:
  explicit IndexRanges(const Positions& positions) : positions_(positions) {}

  Range Of(Value* value, int depth = 0) {
    if (!value->getType()->isIntegerTy() ||
        value->getType()->getIntegerBitWidth() > 64) {
      return {-(Wide{1} << 100), Wide{1} << 100};
    }
    const auto known = ranges_.find(value);
    if (known != ranges_.end()) return known->second;
    const Range range = Compute(value, depth);
    ranges_[value] = range;
    return range;
  }

 private:
  Range Compute(Value* value, int depth) {
    const Range full = FullRange(value->getType());
    if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value)) {
      const int64_t number = constant->getSExtValue();
      return {number, number};
    }
    if (const auto position = positions_.RangeOf(value)) return *position;
    auto* instruction = llvm::dyn_cast<Instruction>(value);
    if (instruction == nullptr || depth > kMaxDepth) return full;
    switch (instruction->getOpcode()) {
      case Instruction::SExt:
      case Instruction::ZExt: {
        const Range operand = Of(instruction->getOperand(0), depth + 1);
        if (instruction->getOpcode() == Instruction::SExt) return operand;
        if (operand.low < 0) {
          const unsigned bits =
              instruction->getOperand(0)->getType()->getIntegerBitWidth();
          return bits >= 64 ? full : Range{0, (Wide{1} << bits) - 1};
        }
        llvm::cast<llvm::PossiblyNonNegInst>(instruction)->setNonNeg(true);
        return operand;
      }
      case Instruction::Trunc: {
        const Range operand = Of(instruction->getOperand(0), depth + 1);
        return Within(operand, full) ? operand : full;
      }
      case Instruction::Add:
      case Instruction::Sub:
      case Instruction::Mul:
      case Instruction::Shl:
        return Arithmetic(llvm::cast<BinaryOperator>(instruction), full, depth);
      default:
        return full;
    }
  }

  Range Arithmetic(BinaryOperator* operation, const Range& full, int depth) {
    const Range a = Of(operation->getOperand(0), depth + 1);
    const Range b = Of(operation->getOperand(1), depth + 1);
    Range exact;
    switch (operation->getOpcode()) {
      case Instruction::Add:
        exact = {a.low + b.low, a.high + b.high};
        break;
      case Instruction::Sub:
        exact = {a.low - b.high, a.high - b.low};
        break;
      case Instruction::Mul: {
        const Wide limit = Wide{1} << 62;
        if (a.low < -limit || a.high > limit || b.low < -limit ||
            b.high > limit)
          return full;
        const Wide products[4] = {a.low * b.low, a.low * b.high, a.high * b.low,
                                  a.high * b.high};
        exact = {*std::min_element(products, products + 4),
                 *std::max_element(products, products + 4)};
        break;
      }
      default: {
        if (b.low != b.high || b.low < 0 || b.low > 62) return full;
        exact = {a.low * (Wide{1} << b.low), a.high * (Wide{1} << b.low)};
      }
    }
    for (int d = 0; d < 3; ++d) {
      if (const auto promised = Promised(operation, d)) {
        exact.low = std::max(exact.low, promised->low);
        exact.high = std::min(exact.high, promised->high);
      }
    }
    if (!Within(exact, full)) return full;
    operation->setHasNoSignedWrap(true);
    if (exact.low >= 0 && a.low >= 0 && b.low >= 0 &&
        operation->getOpcode() != Instruction::Sub) {
      operation->setHasNoUnsignedWrap(true);
    }
    return exact;
  }

  // The launch is refused unless gridDim.d * blockDim.d stays below the limit.
  std::optional<Range> Promised(BinaryOperator* operation, int d) {
    const Wide limit = Wide{kMaxThreadsPerDimension};
    if (IsBlockStart(operation, d)) return Range{0, limit - 2};
    if (operation->getOpcode() != Instruction::Add) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
      if (IsBlockStart(operation->getOperand(side), d) &&
          IsThreadIndex(operation->getOperand(1 - side), d)) {
        return Range{0, limit - 2};
      }
    }
    return std::nullopt;
  }

  static Value* StripExtension(Value* value) {
    while (llvm::isa<llvm::ZExtInst>(value) ||
           llvm::isa<llvm::SExtInst>(value)) {
      value = llvm::cast<Instruction>(value)->getOperand(0);
    }
    return value;
  }
  bool IsThreadIndex(Value* value, int d) const {
    return positions_.IsThread(StripExtension(value), d);
  }
  // blockIdx.d * blockDim.d
  bool IsBlockStart(Value* value, int d) const {
    auto* product = llvm::dyn_cast<BinaryOperator>(StripExtension(value));
    if (product == nullptr || product->getOpcode() != Instruction::Mul)
      return false;
    for (int side = 0; side < 2; ++side) {
      if (positions_.IsBlock(StripExtension(product->getOperand(side)), d) &&
          positions_.IsBlockDim(StripExtension(product->getOperand(1 - side)),
                                d)) {
        return true;
      }
    }
    return false;
  }

  const Positions& positions_;
  llvm::DenseMap<Value*, Range> ranges_;
};

bool DependsOn(const Value* value, const Value* target) {
  llvm::SmallPtrSet<const Value*, 16> seen;
  llvm::SmallVector<const Value*, 16> open = {value};
  while (!open.empty()) {
    const Value* next = open.pop_back_val();
    if (next == target) return true;
    const auto* instruction = llvm::dyn_cast<Instruction>(next);
    if (instruction == nullptr || !seen.insert(next).second) continue;
    open.append(instruction->op_begin(), instruction->op_end());
  }
  return false;
}

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
                                      const Positions& positions,
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

unsigned FirstPositionArgument(const KernelState& kernel) {
  return kernel.thread->arg_size() - 15;
}

std::vector<ThreadGuard> TakeGuards(KernelState& kernel,
                                    const v1::LaunchConfig& launch) {
  const Positions positions(kernel, launch);
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

namespace {

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
