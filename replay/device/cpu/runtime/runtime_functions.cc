// The functions of abi.h, over what the calling host thread runs.
#include <time.h>
#include <x86intrin.h>

#include <cstring>

#include "replay/device/cpu/abi.h"
#include "replay/device/cpu/runtime/block_threads.h"
#include "replay/device/cpu/runtime/device_printf.h"
#include "replay/device/cpu/runtime/fault.h"
#include "replay/device/cpu/runtime/host_thread.h"
#include "replay/device/cpu/runtime/shadow.h"

namespace {

using reprise::cpu::AccessType;
using reprise::cpu::BlockContext;
using reprise::cpu::CurrentHostThread;
using reprise::cpu::HostThread;
using reprise::cpu::WarpOperation;

reprise::cpu::BlockThreads& Threads() { return *CurrentHostThread().threads; }

}  // namespace

extern "C" {

void __reprise_run_threads(const BlockContext* context, const char* arguments,
                           reprise::cpu::ThreadEntry thread) {
  Threads().Run(*context, arguments, thread);
}

const reprise::cpu::ThreadContext* __reprise_current_thread() {
  return CurrentHostThread().current;
}

void __reprise_set_thread(const BlockContext* context, uint32_t x, uint32_t y,
                          uint32_t z) {
  HostThread& host = CurrentHostThread();
  const uint32_t* dim = context->block_dim;
  host.named = {{x, y, z}, x + dim[0] * (y + dim[1] * z), context};
  host.current = &host.named;
}

uint32_t __reprise_barrier(uint32_t id, uint32_t count, uint32_t reduction,
                           uint32_t predicate, const char* site) {
  return Threads().Barrier(
      id, count, static_cast<reprise::cpu::BarrierReduction>(reduction),
      predicate, site);
}

void __reprise_barrier_arrive(uint32_t id, uint32_t count, const char* site) {
  Threads().Arrive(id, count, site);
}

void __reprise_warp_sync(uint32_t mask, const char* site) {
  Threads().Warp({WarpOperation::kSync, 0}, mask, 0, 0, 0, site);
}

uint64_t __reprise_shuffle(uint32_t mask, uint32_t mode, uint32_t value,
                           uint32_t lane, uint32_t clamp, const char* site) {
  return Threads().Warp({WarpOperation::kShuffle, mode}, mask, value, lane,
                        clamp, site);
}

uint32_t __reprise_vote(uint32_t mask, uint32_t mode, uint32_t predicate,
                        const char* site) {
  return static_cast<uint32_t>(Threads().Warp({WarpOperation::kVote, mode},
                                              mask, predicate, 0, 0, site));
}

uint32_t __reprise_match_any(uint32_t mask, uint64_t value, const char* site) {
  return static_cast<uint32_t>(
      Threads().Warp({WarpOperation::kMatchAny, 0}, mask, value, 0, 0, site));
}

uint64_t __reprise_match_all(uint32_t mask, uint64_t value, const char* site) {
  return Threads().Warp({WarpOperation::kMatchAll, 0}, mask, value, 0, 0, site);
}

uint32_t __reprise_redux(uint32_t mask, uint32_t mode, uint32_t value,
                         const char* site) {
  return static_cast<uint32_t>(
      Threads().Warp({WarpOperation::kRedux, mode}, mask, value, 0, 0, site));
}

uint32_t __reprise_activemask(const char* site) {
  return Threads().ActiveMask(site);
}

uint64_t __reprise_elect(uint32_t mask, const char* site) {
  return Threads().Warp({WarpOperation::kElect, 0}, mask, 0, 0, 0, site);
}

char* __reprise_shared_base() { return CurrentHostThread().block->shared; }

uint32_t __reprise_is_space(const void* pointer, uint32_t space) {
  const HostThread& host = CurrentHostThread();
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const bool shared = address >= host.shared_begin && address < host.shared_end;
  // Without fibers, local memory lies on the host thread's own stack, near this
  // frame.
  const auto here = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  constexpr uint64_t kNear = 8 << 20;
  const bool local =
      (address >= host.stacks_begin && address < host.stacks_end) ||
      (address > here && address - here < kNear);
  switch (static_cast<reprise::cpu::MemorySpace>(space)) {
    case reprise::cpu::MemorySpace::kShared:
      return shared;
    case reprise::cpu::MemorySpace::kLocal:
      return local;
    case reprise::cpu::MemorySpace::kConstant:
      return 0;
    case reprise::cpu::MemorySpace::kGlobal:
      return !shared && !local;
  }
  return 0;
}

void __reprise_exit_thread() { Threads().Exit(); }

void __reprise_trap(const char* reason) {
  reprise::cpu::ReportFault("trap at %s", reason);
}

void __reprise_assert_fail(const char* condition, const char* file,
                           uint32_t line, const char* function) {
  reprise::cpu::ReportFault("%s:%u: %s: assertion `%s' failed", file, line,
                            function, condition);
}

int32_t __reprise_vprintf(const char* format, const char* arguments) {
  HostThread& host = CurrentHostThread();
  int32_t count = 0;
  host.printf_buffer->Append(
      host.linear_block,
      reprise::cpu::FormatDevicePrintf(format, arguments, &count));
  return count;
}

uint64_t __reprise_clock() { return __rdtsc(); }

uint64_t __reprise_globaltimer() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * uint64_t{1000000000} + now.tv_nsec;
}

void __reprise_yield() {
  if (CurrentHostThread().threads != nullptr &&
      CurrentHostThread().current != nullptr &&
      CurrentHostThread().current != &CurrentHostThread().named) {
    Threads().Yield();
  }
}

uint32_t __reprise_envreg(uint32_t number) {
  const auto workspace =
      reinterpret_cast<uint64_t>(CurrentHostThread().grid_workspace);
  if (number == 1) return static_cast<uint32_t>(workspace >> 32);
  return number == 2 ? static_cast<uint32_t>(workspace) : 0;
}

void __reprise_note_read(const void* address, uint64_t bytes, uint32_t type) {
  if (auto* shadow = CurrentHostThread().shadow) {
    shadow->Read(reinterpret_cast<uint64_t>(address), bytes,
                 static_cast<AccessType>(type));
  }
}

void __reprise_note_write(const void* address, uint64_t bytes, uint32_t type) {
  if (auto* shadow = CurrentHostThread().shadow) {
    shadow->Write(reinterpret_cast<uint64_t>(address), bytes,
                  static_cast<AccessType>(type));
  }
}

void __reprise_note_flops(uint64_t count) {
  if (auto* shadow = CurrentHostThread().shadow) shadow->CountFlops(count);
}

}  // extern "C"
