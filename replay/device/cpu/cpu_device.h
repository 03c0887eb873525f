// The cpu device: units resident in this process's memory, kernels in an
// executor of their own (executor_client.h).
//
// A unit has three images: the prologue and the reference live in this process
// only, the working memory is shared with the unit's executor, which maps it at
// the recorded addresses. Only pages that the recorded launch wrote are
// writable there; a write to another page is a fault, and Restore and Verify
// look at what can have changed and at nothing else. Bytes of mapped pages that
// belong to no range hold a canary that Verify checks.
//
// Device variables of a variant that the unit does not have get memory behind
// the unit's, which Restore puts back to its initial values.
//
// Thread-safety and lifetime as in device.h.
#ifndef REPRISE_REPLAY_DEVICE_CPU_CPU_DEVICE_H_
#define REPRISE_REPLAY_DEVICE_CPU_CPU_DEVICE_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/device/device.h"

namespace reprise {

struct CpuDeviceOptions {
  std::string executor_executable;  // empty: this program
  std::vector<std::string> executor_arguments = {"executor"};
  int threads = 0;  // host threads that run blocks; 0: all
  // Null, or set from any thread when no launch is waited for any more: they
  // end with CANCELLED. Not owned, outlives the device and its units.
  const std::atomic<bool>* stop = nullptr;
};

absl::StatusOr<std::unique_ptr<Device>> CreateCpuDevice(
    CpuDeviceOptions options);

}  // namespace reprise

#endif  // REPRISE_REPLAY_DEVICE_CPU_CPU_DEVICE_H_
