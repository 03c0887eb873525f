// Ranges of index arithmetic in a thread function: what the launch guarantees
// of blockIdx * blockDim + threadIdx. Internal to the lowering.
#ifndef REPRISE_REPLAY_DEVICE_CPU_LOWERING_INDEX_RANGES_H_
#define REPRISE_REPLAY_DEVICE_CPU_LOWERING_INDEX_RANGES_H_

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstrTypes.h>

#include <optional>

#include "replay/device/cpu/lowering/internal.h"

namespace reprise::cpu {

// First argument of the position parameters of a thread function.
unsigned FirstPositionArgument(const KernelState& kernel);

// True when the value is computed from `target` (or is it).
bool DependsOn(const llvm::Value* value, const llvm::Value* target);

struct IndexRange {
  __int128 low = 0;
  __int128 high = 0;
};

// The position parameters of a thread function.
class ThreadPositions {
 public:
  ThreadPositions(const KernelState& kernel, const v1::LaunchConfig& launch);

  // group 0: threadIdx, 1: blockIdx, 2: blockDim, 3: gridDim.
  llvm::Value* Get(int group, int dimension) const;
  // A use of blockDim may have become the known constant.
  bool IsBlockDim(const llvm::Value* value, int dimension) const;
  std::optional<IndexRange> RangeOf(const llvm::Value* value) const;

 private:
  llvm::Function& thread_;
  unsigned first_;
  uint32_t known_[2][3];  // block, grid; 0: not known
};

// Signed ranges of integers of up to 64 bits. Sets no-wrap flags on the
// arithmetic for which it proves them.
class IndexRanges {
 public:
  explicit IndexRanges(const ThreadPositions& positions)
      : positions_(positions) {}
  IndexRange Of(llvm::Value* value, int depth = 0);

 private:
  IndexRange Compute(llvm::Value* value, int depth);
  IndexRange Extension(llvm::Instruction& instruction, const IndexRange& full,
                       int depth);
  IndexRange Arithmetic(llvm::BinaryOperator& operation, const IndexRange& full,
                        int depth);
  std::optional<IndexRange> Promised(const llvm::BinaryOperator& operation,
                                     int dimension) const;
  bool IsThreadIndex(const llvm::Value* value, int dimension) const;
  bool IsBlockStart(const llvm::Value* value, int dimension) const;

  const ThreadPositions& positions_;
  llvm::DenseMap<llvm::Value*, IndexRange> ranges_;
};

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_LOWERING_INDEX_RANGES_H_
