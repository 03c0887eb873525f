// What the hardware does in a launch of a unit's kernel, counted in a process
// that times nothing (Device::OpenForCounting).
#ifndef REPRISE_REPLAY_ENGINE_COUNT_LAUNCH_H_
#define REPRISE_REPLAY_ENGINE_COUNT_LAUNCH_H_

#include <string>

#include "absl/time/time.h"
#include "replay/device/device.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

// `code` built for the device, or null for the application's own. A unit is
// loaded a second time, beside any that the device holds. Where nothing can be
// counted, the counters say why; `timeout` is for each of the kernel's runs.
v1::Counters CountLaunch(Device& device, const UnitReader& unit,
                         const v1::CompileReply* code,
                         const v1::LaunchConfig& launch,
                         absl::Duration timeout);

// Counters that say why there are none.
v1::Counters NothingCounted(const std::string& why);

}  // namespace reprise

#endif  // REPRISE_REPLAY_ENGINE_COUNT_LAUNCH_H_
