// Memory whose written pages are noted: it is mapped read-only, and the first
// write to a page makes that page writable and puts it on a list.
//
// One table for the process, because signal handlers look into it. Set and
// CollectAndProtect are called while no device code runs.
#ifndef REPRISE_REPLAY_DEVICE_CPU_RUNTIME_TRACKED_MEMORY_H_
#define REPRISE_REPLAY_DEVICE_CPU_RUNTIME_TRACKED_MEMORY_H_

#include <cstdint>
#include <vector>

namespace reprise::cpu {

struct TrackedRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Replaces the table. The ranges are page aligned, disjoint and mapped
// read-only.
void SetTrackedMemory(std::vector<TrackedRange> ranges);

// In a signal handler: true when a write to `address` may go on.
bool NoteTrackedWrite(uint64_t address);

// Pages written since the last call, ascending; they are read-only again.
std::vector<uint64_t> CollectAndProtect();

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_RUNTIME_TRACKED_MEMORY_H_
