// What a loop over the threads of a block may rely on. Internal to the
// lowering.
#ifndef REPRISE_REPLAY_DEVICE_CPU_LOWERING_THREAD_LOOP_H_
#define REPRISE_REPLAY_DEVICE_CPU_LOWERING_THREAD_LOOP_H_

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <vector>

#include "replay/device/cpu/lowering/internal.h"

namespace reprise::cpu {

// A comparison at the head of a thread function, that every thread which does
// anything passes: threadIdx[dimension] + base <predicate> limit.
// "if (i < n) { ... }" bounds the loop instead of being asked in every turn.
struct ThreadGuard {
  int dimension = 0;
  llvm::CmpInst::Predicate predicate;  // live when it holds
  llvm::Value* sum = nullptr;          // threadIdx + base; at threadIdx 0: base
  llvm::Value* limit = nullptr;
};

// Sets no-wrap flags on index arithmetic that the launch keeps in range. Takes
// the guards out of `kernel.thread` and returns them, unless it uses fibers.
std::vector<ThreadGuard> TakeGuards(KernelState& kernel,
                                    const v1::LaunchConfig& launch);

// Computes indices that depend on threadIdx.x in 64 bits where they were
// extended to 64 bits after arithmetic that cannot wrap, so that later
// passes, which drop such promises as they reorder sums, still see that
// neighbouring threads access neighbouring elements. Call before TakeGuards'
// flags are lost, that is right after it.
void WidenIndices(KernelState& kernel);

// Marks the accesses of a thread function that do not depend on those of other
// threads of its block; null when it has others. Without barriers and atomics,
// CUDA orders nothing between threads, so only private memory does.
llvm::MDNode* MarkParallelAccesses(llvm::Function& thread);

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_LOWERING_THREAD_LOOP_H_
