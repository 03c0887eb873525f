// The host as a device: units resident in shared memory, kernels run by a
// crash-isolated executor child on host threads, verification in this process.
// One executor per resident unit. Thread-safety and lifetime as device.h says.
#ifndef REPRISE_REPLAY_DEVICE_CPU_CPU_DEVICE_H_
#define REPRISE_REPLAY_DEVICE_CPU_CPU_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "replay/device/cpu/executor_client.h"
#include "replay/device/device.h"

namespace reprise {

struct CpuDeviceOptions {
  ExecutorClient::Options executor;  // memory_fd is set per unit
};

absl::StatusOr<std::unique_ptr<Device>> CreateCpuDevice(
    CpuDeviceOptions options);

}  // namespace reprise

#endif  // REPRISE_REPLAY_DEVICE_CPU_CPU_DEVICE_H_
