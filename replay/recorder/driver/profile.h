// Times launches by events around them, where the parent asks for a profile.
// Events come from a small ring for each context and are read once they have
// passed; a launch that finds the ring full of unfinished ones is not timed.
// Thread-safe; while one launch is timed, others of the process wait.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_PROFILE_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_PROFILE_H_

#include <cuda.h>
#include <stdint.h>

#include "replay/recorder/driver/launch.h"
#include "replay/recorder/driver/modules.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/protocol.h"

namespace reprise::driver {

// Requires Active().
inline bool Profiling() {
  return (Hello().flags & driver_wire::kFlagProfile) != 0;
}

// The stream is not being captured.
CUresult LaunchTimed(Kernel* kernel, CUstream stream, RealLaunch real);
// Adds the time of a launch, or of several, to the kernel's counter.
void AddTiming(Kernel* kernel, uint64_t ns, uint64_t launches = 1);

void ReadTimings();
// Reads the events of the current context that have passed.
inline void ResolveTimings() {
  if (Profiling()) ReadTimings();
}
// The context is gone, and its events with it.
void ForgetTimings(CUcontext context);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_PROFILE_H_
