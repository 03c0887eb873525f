// Records one launch: asks the parent, keeps everyone else out, copies what is
// live before and what has changed after. Thread-safe; one recording at a time.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_RECORDING_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_RECORDING_H_

#include <cuda.h>
#include <stdint.h>

#include "replay/recorder/driver/launch.h"
#include "replay/recorder/driver/modules.h"

namespace reprise::driver {

// Makes the launch, recorded where the parent wants it and it can be. Must not
// hold the gate.
CUresult RecordLaunch(Kernel* kernel, uint64_t occurrence,
                      const LaunchCall& launch, RealLaunch real);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_RECORDING_H_
