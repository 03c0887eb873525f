// Launch shapes: what a variant's launch parameters mean for a recorded launch.
// Pure functions; thread-safe.
#ifndef REPRISE_REPLAY_ENGINE_LAUNCH_GEOMETRY_H_
#define REPRISE_REPLAY_ENGINE_LAUNCH_GEOMETRY_H_

#include <string>

#include "absl/status/status.h"
#include "replay/device/device.h"
#include "reprise/v1/node.pb.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

// The launch of a variant: its block, a grid re-derived to cover at least the
// recorded threads in each dimension, its dynamic shared bytes. Fields that the
// variant leaves out are the recorded ones.
v1::LaunchConfig VariantLaunch(const v1::LaunchConfig& recorded,
                               const v1::LaunchParameters& parameters);

// INVALID_ARGUMENT naming the limit when the device or the kernel's own launch
// bound cannot take this launch.
absl::Status CheckLaunch(const v1::LaunchConfig& launch,
                         const DeviceFacts& device,
                         const v1::CompiledKernelInfo& kernel);

bool SameLaunch(const v1::LaunchConfig& a, const v1::LaunchConfig& b);

// "grid 64x1x1, block 256x1x1, 1024 shared bytes".
std::string DescribeLaunch(const v1::LaunchConfig& launch);

}  // namespace reprise

#endif  // REPRISE_REPLAY_ENGINE_LAUNCH_GEOMETRY_H_
