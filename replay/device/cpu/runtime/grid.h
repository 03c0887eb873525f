// Runs the blocks of a grid on host threads.
//
// The threads live as long as the GridRunner. Not thread-safe: one launch at a
// time, always from the thread that created it. Device code that faults ends
// the process (fault.h).
#ifndef REPRISE_REPLAY_DEVICE_CPU_RUNTIME_GRID_H_
#define REPRISE_REPLAY_DEVICE_CPU_RUNTIME_GRID_H_

#include <cstdint>
#include <memory>
#include <string>

#include "replay/device/cpu/abi.h"

namespace reprise::cpu {

class Shadow;

struct GridLaunch {
  BlockEntry entry = nullptr;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t static_shared_bytes = 0;
  uint32_t dynamic_shared_bytes = 0;
  bool uses_fibers = false;
  // Every block is under way at once, in turns.
  bool cooperative = false;
  const char* arguments = nullptr;  // aligned to 16 bytes
  bool poison_shared = false;
  uint8_t poison_byte = 0;
  // Notes of instrumented code go here; blocks then run in order on one
  // thread. Not owned.
  Shadow* shadow = nullptr;
};

struct GridResult {
  double duration_ns = 0;
  std::string printf_output;
};

class GridRunner {
 public:
  // threads: host threads that run blocks, the caller's included; 0: one for
  // each processor this process may use.
  static std::unique_ptr<GridRunner> Create(int threads);
  virtual ~GridRunner() = default;
  virtual int threads() const = 0;
  virtual GridResult Run(const GridLaunch& launch) = 0;
  // Clears what the last launch left in local and shared memory, where the next
  // one could find it. The helpers do so by themselves; this is for the
  // caller's part, when nobody waits.
  virtual void Scrub() = 0;
};

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_RUNTIME_GRID_H_
