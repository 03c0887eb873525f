// Whether a launch is one that CUDA, and the code that was loaded, allow.
#ifndef REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_LAUNCH_CHECK_H_
#define REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_LAUNCH_CHECK_H_

#include <string>

#include "replay/device/cpu/abi.h"
#include "reprise/v1/node.pb.h"

namespace reprise::cpu {

// What a block may have of shared memory, static and dynamic together (as on
// an H200).
inline constexpr uint32_t kMaxSharedBytesPerBlock = 227 * 1024;
inline constexpr uint32_t kMaxThreadsPerBlock = 1024;

// Empty when allowed, else what is wrong: got versus allowed.
std::string CheckLaunch(const KernelFacts& facts,
                        const v1::LaunchRequest& request);

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_LAUNCH_CHECK_H_
