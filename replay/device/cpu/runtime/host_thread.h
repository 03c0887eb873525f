// What a host thread is running, for the runtime functions that lowered code
// calls and for fault reports. One per host thread, reached through
// CurrentHostThread(); not shared.
#ifndef REPRISE_REPLAY_DEVICE_CPU_RUNTIME_HOST_THREAD_H_
#define REPRISE_REPLAY_DEVICE_CPU_RUNTIME_HOST_THREAD_H_

#include <cstdint>

#include "replay/device/cpu/abi.h"

namespace reprise::cpu {

class BlockThreads;
class PrintfBuffer;
class Shadow;

// What a cooperative launch's blocks meet at, as cooperative groups know it.
struct GridWorkspace {
  uint32_t bytes = sizeof(GridWorkspace);
  uint32_t barrier = 0;
};

struct HostThread {
  const BlockContext* block = nullptr;     // null: no block runs
  const ThreadContext* current = nullptr;  // null: a loop over threads
  ThreadContext named;                     // what __reprise_set_thread set
  BlockThreads* threads = nullptr;         // while fibers run
  PrintfBuffer* printf_buffer = nullptr;
  Shadow* shadow = nullptr;                 // of an instrumented launch
  GridWorkspace* grid_workspace = nullptr;  // of a cooperative launch
  uint64_t linear_block = 0;
  // Stack memory of fibers, to tell an overflow from a wild access.
  uint64_t stacks_begin = 0;
  uint64_t stacks_end = 0;
  uint64_t shared_begin = 0;  // with guard pages
  uint64_t shared_end = 0;
};

HostThread& CurrentHostThread();

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_RUNTIME_HOST_THREAD_H_
