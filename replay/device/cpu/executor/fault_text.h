// Fault records in words. Thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_FAULT_TEXT_H_
#define REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_FAULT_TEXT_H_

#include <string>
#include <vector>

#include "replay/device/cpu/runtime/fault.h"
#include "reprise/v1/node.pb.h"

namespace reprise::cpu {

// What happened, where, and by which block and thread.
std::string DescribeFault(const FaultRecord& record,
                          const std::vector<v1::MemoryMapping>& mappings);

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_FAULT_TEXT_H_
