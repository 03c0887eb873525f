// The threads of one block as fibers on one host thread: barriers, warp
// operations, and what happens when they cannot be met.
//
// A fiber runs until it waits or ends; then the next runnable one does. A
// barrier is met when all live threads of the block (or the stated number) wait
// at it; threads that have ended count as arrived. A warp operation is met when
// all live lanes of its mask wait with the same operation and mask. When
// nothing can run, threads that asked for their active mask get it: those of a
// warp that ask at one place are its active lanes. When even that leaves
// nothing to run, the block is stuck, which is a fault.
//
// A block of a cooperative launch is suspended where its threads only wait for
// what other blocks do, and resumed later.
//
// Not thread-safe: one object per host thread, reused for its blocks.
#ifndef REPRISE_REPLAY_DEVICE_CPU_RUNTIME_BLOCK_THREADS_H_
#define REPRISE_REPLAY_DEVICE_CPU_RUNTIME_BLOCK_THREADS_H_

#include <cstdint>
#include <vector>

#include "replay/device/cpu/abi.h"
#include "replay/device/cpu/runtime/fiber.h"
#include "replay/device/cpu/runtime/host_thread.h"

namespace reprise::cpu {

inline constexpr uint32_t kWarpLanes = 32;
inline constexpr uint32_t kBarriers = 16;

// A warp operation in the form that lanes must agree on.
struct WarpOperation {
  enum Kind : uint32_t {
    kSync,
    kShuffle,
    kVote,
    kMatchAny,
    kMatchAll,
    kRedux,
    kElect
  };
  Kind kind;
  uint32_t mode;
  friend bool operator==(const WarpOperation&, const WarpOperation&) = default;
};

class BlockThreads {
 public:
  explicit BlockThreads(HostThread& host) : host_(host) {}

  // Runs all threads of the block to their end, or until the block is suspended
  // if it may be.
  void Run(const BlockContext& block, const char* arguments, ThreadEntry entry);
  void Resume();
  bool finished() const { return live_ == 0; }
  // Clears the local memory of the last blocks' threads, which have ended.
  void Scrub() { stacks_.Scrub(fibers_.size()); }
  void set_may_suspend(bool may_suspend) { may_suspend_ = may_suspend; }

  // Called on a fiber.
  uint32_t Barrier(uint32_t id, uint32_t count, BarrierReduction reduction,
                   uint32_t predicate, const char* site);
  void Arrive(uint32_t id, uint32_t count, const char* site);
  // `value` and `argument` are the lane's operands.
  uint64_t Warp(WarpOperation operation, uint32_t mask, uint64_t value,
                uint32_t argument, uint32_t clamp, const char* site);
  uint32_t ActiveMask(const char* site);
  void Yield();
  [[noreturn]] void Exit();

 private:
  enum class Wait : uint8_t { kNothing, kBarrier, kWarp, kActiveMask, kEnded };

  struct Fiber {
    FiberContext context;
    ThreadContext thread;
    Wait wait;
    uint32_t barrier;
    const char* site;
    // Operands of a pending warp operation; result of whatever it waited for.
    uint64_t value;
    uint32_t argument;
    uint32_t clamp;
    uint64_t result;
  };
  struct BarrierState {
    uint32_t arrived = 0;
    uint32_t expected = 0;  // 0: all live threads
    uint32_t population = 0;
    const char* site = nullptr;
    uint32_t first_waiter = 0;  // meaningful where waiters is not empty
    std::vector<uint16_t> waiters;
  };
  // Lanes that wait with one operation and mask.
  struct WarpGroup {
    WarpOperation operation;
    uint32_t mask;
    uint32_t arrived;
  };
  struct WarpState {
    uint32_t live = 0;
    std::vector<WarpGroup> groups;
  };

  static void FiberMain();
  Fiber& current() { return fibers_[current_]; }
  void RunNext();  // suspends the current fiber
  uint32_t TakeReady();
  void Suspend();
  void Occupy();  // the host thread runs this block
  void MakeRunnable(uint32_t fiber);
  void NoteArrival(BarrierState& barrier, uint32_t id, uint32_t count,
                   const char* site);
  bool IsMet(const BarrierState& barrier) const;
  void Release(BarrierState& barrier, BarrierReduction reduction);
  // `running`: bit of the lane that goes on by itself, 0 for none.
  void CompleteWarp(WarpState& warp, uint32_t warp_index, size_t group,
                    uint32_t running);
  uint64_t CommonResult(const WarpGroup& group, uint32_t warp_index);
  uint64_t LaneResult(const WarpGroup& group, uint64_t common,
                      uint32_t warp_index, uint32_t lane);
  Fiber& Lane(uint32_t warp_index, uint32_t lane) {
    return fibers_[warp_index * kWarpLanes + lane];
  }
  bool AnswerActiveMasks();
  void ThreadEnded();
  [[noreturn]] void ReportStuck();
  void Describe(const Fiber& fiber, char* text, size_t size) const;

  HostThread& host_;
  StackPool stacks_;
  std::vector<Fiber> fibers_;
  std::vector<WarpState> warps_;
  BarrierState barriers_[kBarriers];
  BarrierReduction reduction_[kBarriers] = {};
  // Ring of runnable fibers.
  std::vector<uint16_t> ready_;
  uint32_t ready_head_ = 0;
  uint32_t ready_count_ = 0;
  uint32_t current_ = 0;
  uint32_t live_ = 0;
  bool may_suspend_ = false;
  uint32_t yields_ = 0;  // since the block was run or resumed
  uint32_t count_ = 0;
  FiberContext main_;
  const BlockContext* block_ = nullptr;
  const char* arguments_ = nullptr;
  ThreadEntry entry_ = nullptr;
};

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_RUNTIME_BLOCK_THREADS_H_
