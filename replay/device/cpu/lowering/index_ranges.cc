#include "replay/device/cpu/lowering/index_ranges.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>

#include <algorithm>

#include "replay/device/cpu/abi.h"

namespace reprise::cpu {
namespace {

using llvm::BinaryOperator;
using llvm::Instruction;
using llvm::Value;
using Wide = __int128;

constexpr int kMaxRangeDepth = 24;
constexpr IndexRange kAnything = {-(Wide{1} << 100), Wide{1} << 100};

IndexRange FullRange(const llvm::Type* type) {
  const unsigned bits = type->getIntegerBitWidth();
  if (bits > 64) return kAnything;
  return {-(Wide{1} << (bits - 1)), (Wide{1} << (bits - 1)) - 1};
}

bool Within(const IndexRange& inner, const IndexRange& outer) {
  return inner.low >= outer.low && inner.high <= outer.high;
}

const Value* StripExtension(const Value* value) {
  while (llvm::isa<llvm::ZExtInst>(value) || llvm::isa<llvm::SExtInst>(value)) {
    value = llvm::cast<Instruction>(value)->getOperand(0);
  }
  return value;
}

// As if numbers had no end; nothing when that is not worth following.
std::optional<IndexRange> Exact(unsigned opcode, const IndexRange& a,
                                const IndexRange& b) {
  const Wide limit = Wide{1} << 62;
  switch (opcode) {
    case Instruction::Add:
      return IndexRange{a.low + b.low, a.high + b.high};
    case Instruction::Sub:
      return IndexRange{a.low - b.high, a.high - b.low};
    case Instruction::Mul: {
      if (a.low < -limit || a.high > limit || b.low < -limit ||
          b.high > limit) {
        return std::nullopt;
      }
      const auto [low, high] = std::minmax(
          {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
      return IndexRange{low, high};
    }
    default:  // Shl
      if (b.low != b.high || b.low < 0 || b.low > 62) return std::nullopt;
      return IndexRange{a.low * (Wide{1} << b.low),
                        a.high * (Wide{1} << b.low)};
  }
}

}  // namespace

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

unsigned FirstPositionArgument(const KernelState& kernel) {
  return kernel.thread->arg_size() - 15;
}

ThreadPositions::ThreadPositions(const KernelState& kernel,
                                 const v1::LaunchConfig& launch)
    : thread_(*kernel.thread), first_(FirstPositionArgument(kernel)) {
  const v1::Dim3* dims[2] = {&launch.block(), &launch.grid()};
  for (int i = 0; i < 2; ++i) {
    known_[i][0] = dims[i]->x();
    known_[i][1] = dims[i]->y();
    known_[i][2] = dims[i]->z();
  }
}

Value* ThreadPositions::Get(int group, int dimension) const {
  return thread_.getArg(first_ + 3 * group + dimension);
}

bool ThreadPositions::IsBlockDim(const Value* value, int dimension) const {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value);
  if (constant == nullptr) return value == Get(2, dimension);
  return known_[0][dimension] != 0 &&
         constant->getValue() == uint64_t{known_[0][dimension]};
}

std::optional<IndexRange> ThreadPositions::RangeOf(const Value* value) const {
  constexpr uint32_t kMaxBlock[3] = {1024, 1024, 64};
  for (int d = 0; d < 3; ++d) {
    const uint32_t block = known_[0][d] != 0 ? known_[0][d] : kMaxBlock[d];
    // The launch is refused unless all threads of a dimension can be counted.
    const Wide grid = known_[1][d] != 0 ? Wide{known_[1][d]}
                                        : Wide{kMaxThreadsPerDimension} /
                                              std::max(known_[0][d], 1u);
    if (value == Get(0, d)) return IndexRange{0, block - 1};
    if (value == Get(1, d)) return IndexRange{0, grid - 1};
    if (value == Get(2, d)) return IndexRange{1, block};
    if (value == Get(3, d)) return IndexRange{1, grid};
  }
  return std::nullopt;
}

IndexRange IndexRanges::Of(Value* value, int depth) {
  if (!value->getType()->isIntegerTy() ||
      value->getType()->getIntegerBitWidth() > 64) {
    return kAnything;
  }
  const auto known = ranges_.find(value);
  if (known != ranges_.end()) return known->second;
  const IndexRange range = Compute(value, depth);
  ranges_[value] = range;
  return range;
}

IndexRange IndexRanges::Compute(Value* value, int depth) {
  const IndexRange full = FullRange(value->getType());
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value)) {
    const int64_t number = constant->getSExtValue();
    return {number, number};
  }
  if (const auto position = positions_.RangeOf(value)) return *position;
  auto* instruction = llvm::dyn_cast<Instruction>(value);
  if (instruction == nullptr || depth > kMaxRangeDepth) return full;
  switch (instruction->getOpcode()) {
    case Instruction::SExt:
    case Instruction::ZExt:
      return Extension(*instruction, full, depth);
    case Instruction::Trunc: {
      const IndexRange operand = Of(instruction->getOperand(0), depth + 1);
      return Within(operand, full) ? operand : full;
    }
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::Mul:
    case Instruction::Shl:
      return Arithmetic(*llvm::cast<BinaryOperator>(instruction), full, depth);
    default:
      return full;
  }
}

IndexRange IndexRanges::Extension(Instruction& instruction,
                                  const IndexRange& full, int depth) {
  Value* narrow = instruction.getOperand(0);
  const IndexRange operand = Of(narrow, depth + 1);
  if (instruction.getOpcode() == Instruction::SExt) return operand;
  if (operand.low >= 0) {
    llvm::cast<llvm::PossiblyNonNegInst>(instruction).setNonNeg(true);
    return operand;
  }
  const unsigned bits = narrow->getType()->getIntegerBitWidth();
  return bits >= 64 ? full : IndexRange{0, (Wide{1} << bits) - 1};
}

IndexRange IndexRanges::Arithmetic(BinaryOperator& operation,
                                   const IndexRange& full, int depth) {
  const IndexRange a = Of(operation.getOperand(0), depth + 1);
  const IndexRange b = Of(operation.getOperand(1), depth + 1);
  auto exact = Exact(operation.getOpcode(), a, b);
  if (!exact) return full;
  for (int d = 0; d < 3; ++d) {
    if (const auto promised = Promised(operation, d)) {
      exact->low = std::max(exact->low, promised->low);
      exact->high = std::min(exact->high, promised->high);
    }
  }
  if (!Within(*exact, full)) return full;
  operation.setHasNoSignedWrap(true);
  if (exact->low >= 0 && a.low >= 0 && b.low >= 0 &&
      operation.getOpcode() != Instruction::Sub) {
    operation.setHasNoUnsignedWrap(true);
  }
  return *exact;
}

// The launch is refused unless gridDim.d * blockDim.d stays below the limit.
std::optional<IndexRange> IndexRanges::Promised(const BinaryOperator& operation,
                                                int dimension) const {
  const IndexRange promise = {0, Wide{kMaxThreadsPerDimension} - 2};
  if (IsBlockStart(&operation, dimension)) return promise;
  if (operation.getOpcode() != Instruction::Add) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    if (IsBlockStart(operation.getOperand(side), dimension) &&
        IsThreadIndex(operation.getOperand(1 - side), dimension)) {
      return promise;
    }
  }
  return std::nullopt;
}

bool IndexRanges::IsThreadIndex(const Value* value, int dimension) const {
  return StripExtension(value) == positions_.Get(0, dimension);
}

// blockIdx.d * blockDim.d
bool IndexRanges::IsBlockStart(const Value* value, int dimension) const {
  const auto* product = llvm::dyn_cast<BinaryOperator>(StripExtension(value));
  if (product == nullptr || product->getOpcode() != Instruction::Mul) {
    return false;
  }
  for (int side = 0; side < 2; ++side) {
    const Value* block = StripExtension(product->getOperand(side));
    const Value* size = StripExtension(product->getOperand(1 - side));
    if (block == positions_.Get(1, dimension) &&
        positions_.IsBlockDim(size, dimension)) {
      return true;
    }
  }
  return false;
}

}  // namespace reprise::cpu
