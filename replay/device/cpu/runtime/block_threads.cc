#include "replay/device/cpu/runtime/block_threads.h"

#include <sched.h>

#include <bit>
#include <cstdio>

#include "replay/base/check.h"
#include "replay/device/cpu/runtime/fault.h"

namespace reprise::cpu {

void BlockThreads::FiberMain() {
  BlockThreads& self = *CurrentHostThread().threads;
  EnterFiber(self.main_);
  const ThreadContext& thread = self.current().thread;
  self.entry_(self.block_, self.arguments_, thread.thread[0], thread.thread[1],
              thread.thread[2]);
  self.Exit();
}

void BlockThreads::Run(const BlockContext& block, const char* arguments,
                       ThreadEntry entry) {
  const uint32_t* dim = block.block_dim;
  count_ = dim[0] * dim[1] * dim[2];
  if (!stacks_.Reserve(count_)) {
    ReportFault("out of memory for the stacks of %u threads", count_);
  }
  Occupy();
  block_ = &block;
  arguments_ = arguments;
  entry_ = entry;
  if (fibers_.size() < count_) fibers_.resize(count_);
  if (ready_.size() < count_) ready_.resize(count_);
  warps_.resize((count_ + kWarpLanes - 1) / kWarpLanes);
  for (uint32_t w = 0; w < warps_.size(); ++w) {
    const uint32_t lanes = std::min(kWarpLanes, count_ - w * kWarpLanes);
    warps_[w].live = lanes == kWarpLanes ? ~0u : (1u << lanes) - 1;
    warps_[w].groups.clear();
  }
  for (BarrierState& barrier : barriers_) {
    barrier.arrived = 0;
    barrier.waiters.clear();
  }
  live_ = count_;
  ready_head_ = 0;
  ready_count_ = 0;
  uint32_t index = 0;
  for (uint32_t z = 0; z < dim[2]; ++z) {
    for (uint32_t y = 0; y < dim[1]; ++y) {
      for (uint32_t x = 0; x < dim[0]; ++x, ++index) {
        Fiber& fiber = fibers_[index];
        fiber.context = stacks_.Prepare(index, FiberMain);
        fiber.thread = {{x, y, z}, index, &block};
        fiber.wait = Wait::kNothing;
        if (index > 0) MakeRunnable(index);
      }
    }
  }
  current_ = 0;
  yields_ = 0;
  host_.current = &fibers_[0].thread;
  SwitchFiber(main_, fibers_[0].context);
  host_.current = nullptr;
}

void BlockThreads::Occupy() {
  host_.threads = this;
  host_.stacks_begin = stacks_.begin();
  host_.stacks_end = stacks_.end();
}

void BlockThreads::Resume() {
  Occupy();
  yields_ = 0;
  current_ = TakeReady();
  host_.current = &current().thread;
  SwitchFiber(main_, current().context);
  host_.current = nullptr;
}

void BlockThreads::Suspend() {
  MakeRunnable(current_);
  SwitchFiber(current().context, main_);
}

void BlockThreads::MakeRunnable(uint32_t fiber) {
  fibers_[fiber].wait = Wait::kNothing;
  uint32_t place = ready_head_ + ready_count_++;
  if (place >= count_) place -= count_;
  ready_[place] = static_cast<uint16_t>(fiber);
}

void BlockThreads::RunNext() {
  if (ready_count_ == 0 && !AnswerActiveMasks()) ReportStuck();
  const uint32_t next = TakeReady();
  const uint32_t previous = current_;
  if (next == previous) return;
  current_ = next;
  host_.current = &fibers_[next].thread;
  SwitchFiber(fibers_[previous].context, fibers_[next].context);
}

uint32_t BlockThreads::TakeReady() {
  const uint32_t next = ready_[ready_head_];
  if (++ready_head_ == count_) ready_head_ = 0;
  --ready_count_;
  return next;
}

void BlockThreads::Yield() {
  const bool alone = ready_count_ == 0 && !AnswerActiveMasks();
  // After a turn for each thread, what is awaited is likely another block's.
  if (may_suspend_ && (alone || ++yields_ > count_)) return Suspend();
  if (alone) {
    sched_yield();
    return;
  }
  MakeRunnable(current_);
  RunNext();
}

void BlockThreads::Exit() {
  current().wait = Wait::kEnded;
  --live_;
  ThreadEnded();
  if (live_ == 0) LeaveFiber(current().context, main_);
  RunNext();
  __builtin_unreachable();
}

// Whoever waits for all live threads may wait no longer.
void BlockThreads::ThreadEnded() {
  const uint32_t warp_index = current_ / kWarpLanes;
  WarpState& warp = warps_[warp_index];
  warp.live &= ~(1u << (current_ % kWarpLanes));
  for (size_t g = 0; g < warp.groups.size();) {
    const WarpGroup& group = warp.groups[g];
    if ((group.mask & warp.live) == group.arrived) {
      CompleteWarp(warp, warp_index, g, 0);
    } else {
      ++g;
    }
  }
  if (live_ == 0) return;
  for (uint32_t id = 0; id < kBarriers; ++id) {
    BarrierState& barrier = barriers_[id];
    if (barrier.arrived > 0 && IsMet(barrier)) Release(barrier, reduction_[id]);
  }
}

bool BlockThreads::IsMet(const BarrierState& barrier) const {
  // A stated count is in whole warps; the last warp of a block may be short.
  const uint32_t expected =
      barrier.expected == 0 ? live_ : std::min(barrier.expected, live_);
  return barrier.arrived >= expected;
}

void BlockThreads::NoteArrival(BarrierState& barrier, uint32_t id,
                               uint32_t count, const char* site) {
  if (barrier.arrived == 0) {
    barrier.site = site;
    barrier.expected = count;
    barrier.population = 0;
    barrier.first_waiter = current_;
  } else if (count == 0 && site != nullptr && barrier.site != nullptr &&
             site != barrier.site) {
    const ThreadContext& other = fibers_[barrier.first_waiter].thread;
    ReportFault(
        "divergent barrier: this thread waits at %s while thread (%u,%u,%u) "
        "of its block waits at %s",
        site, other.thread[0], other.thread[1], other.thread[2], barrier.site);
  } else if (count != barrier.expected) {
    ReportFault(
        "divergent barrier: barrier %u is used for %u threads and for %u at "
        "once (0: all)",
        id, barrier.expected, count);
  }
  ++barrier.arrived;
}

uint32_t BlockThreads::Barrier(uint32_t id, uint32_t count,
                               BarrierReduction reduction, uint32_t predicate,
                               const char* site) {
  if (id >= kBarriers) {
    ReportFault("barrier %u does not exist; there are %u", id, kBarriers);
  }
  BarrierState& barrier = barriers_[id];
  NoteArrival(barrier, id, count, site);
  barrier.population += predicate != 0;
  reduction_[id] = reduction;
  if (IsMet(barrier)) {
    barrier.waiters.push_back(static_cast<uint16_t>(current_));
    const uint32_t last = current_;
    Release(barrier, reduction);
    // This fiber was queued last; let it simply go on.
    CHECK(ready_count_ > 0);
    --ready_count_;
    return static_cast<uint32_t>(fibers_[last].result);
  }
  Fiber& fiber = current();
  fiber.wait = Wait::kBarrier;
  fiber.barrier = id;
  fiber.site = site;
  barrier.waiters.push_back(static_cast<uint16_t>(current_));
  RunNext();
  return static_cast<uint32_t>(fiber.result);
}

void BlockThreads::Release(BarrierState& barrier, BarrierReduction reduction) {
  uint32_t result = 0;
  switch (reduction) {
    case BarrierReduction::kNone:
      break;
    case BarrierReduction::kPopulation:
      result = barrier.population;
      break;
    case BarrierReduction::kAnd:
      result = barrier.population == barrier.waiters.size();
      break;
    case BarrierReduction::kOr:
      result = barrier.population > 0;
      break;
  }
  barrier.arrived = 0;
  for (const uint16_t waiter : barrier.waiters) {
    fibers_[waiter].result = result;
    MakeRunnable(waiter);
  }
  barrier.waiters.clear();
}

void BlockThreads::Arrive(uint32_t id, uint32_t count, const char* site) {
  if (id >= kBarriers) {
    ReportFault("barrier %u does not exist; there are %u", id, kBarriers);
  }
  BarrierState& barrier = barriers_[id];
  NoteArrival(barrier, id, count, nullptr);
  if (IsMet(barrier)) Release(barrier, BarrierReduction::kNone);
}

uint32_t BlockThreads::ActiveMask(const char* site) {
  Fiber& fiber = current();
  fiber.wait = Wait::kActiveMask;
  fiber.site = site;
  RunNext();
  return static_cast<uint32_t>(fiber.result);
}

bool BlockThreads::AnswerActiveMasks() {
  bool answered = false;
  for (uint32_t w = 0; w < warps_.size(); ++w) {
    for (uint32_t open = warps_[w].live; open != 0;) {
      const uint32_t first = std::countr_zero(open);
      open &= open - 1;
      if (Lane(w, first).wait != Wait::kActiveMask) continue;
      uint32_t mask = 1u << first;
      for (uint32_t rest = open; rest != 0; rest &= rest - 1) {
        const Fiber& other = Lane(w, std::countr_zero(rest));
        if (other.wait == Wait::kActiveMask &&
            other.site == Lane(w, first).site) {
          mask |= 1u << std::countr_zero(rest);
        }
      }
      for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
        const uint32_t lane = std::countr_zero(rest);
        Lane(w, lane).result = mask;
        MakeRunnable(w * kWarpLanes + lane);
      }
      answered = true;
    }
  }
  return answered;
}

void BlockThreads::Describe(const Fiber& fiber, char* text, size_t size) const {
  const uint32_t* t = fiber.thread.thread;
  std::snprintf(
      text, size, "thread (%u,%u,%u) waits at %s %s", t[0], t[1], t[2],
      fiber.wait == Wait::kBarrier ? "the barrier" : "the warp operation",
      fiber.site != nullptr ? fiber.site : "(not named)");
}

void BlockThreads::ReportStuck() {
  // One thread for each kind of waiting is enough to see what went wrong.
  const Fiber* at_barrier = nullptr;
  const Fiber* at_warp = nullptr;
  uint32_t waiting = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const Fiber& fiber = fibers_[i];
    if (fiber.wait == Wait::kBarrier) {
      ++waiting;
      if (at_barrier == nullptr || fiber.barrier != 0) at_barrier = &fiber;
    } else if (fiber.wait == Wait::kWarp && at_warp == nullptr) {
      at_warp = &fiber;
    }
  }
  char first[300] = "";
  char second[300] = "";
  if (at_barrier != nullptr) Describe(*at_barrier, first, sizeof(first));
  if (at_warp != nullptr) Describe(*at_warp, second, sizeof(second));
  const Fiber* named = at_warp != nullptr ? at_warp : at_barrier;
  host_.current = named != nullptr ? &named->thread : nullptr;
  ReportFault(
      "divergent barrier: no thread of the block can go on; %u of %u live "
      "threads wait at barriers; %s%s%s",
      waiting, live_, first, first[0] != 0 && second[0] != 0 ? "; " : "",
      second);
}

}  // namespace reprise::cpu
