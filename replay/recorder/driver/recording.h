// Records one launch: asks the parent, keeps everyone else out, copies what is
// live before and what has changed after. Thread-safe; one recording at a time.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_RECORDING_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_RECORDING_H_

#include <cuda.h>
#include <stdint.h>

#include "replay/recorder/driver/launch.h"
#include "replay/recorder/driver/modules.h"

namespace reprise::driver {

// Makes the launch if the parent wants it and it can be recorded: then true,
// and `result` is the driver's answer. `before` is what must run right before a
// recorded launch, and only then: it is called once, alone and with nothing on
// the devices; after an error of it the launch is not made. Must not hold the
// gate.
bool TryRecordLaunch(Kernel* kernel, uint64_t occurrence,
                     const LaunchCall& launch, RealLaunch real,
                     const RealLaunch* before, CUresult* result);

// Makes the launch, recorded where the parent wants it and it can be. Must not
// hold the gate.
CUresult RecordLaunch(Kernel* kernel, uint64_t occurrence,
                      const LaunchCall& launch, RealLaunch real);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_RECORDING_H_
