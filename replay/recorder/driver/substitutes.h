// Tuned code that launches of a kernel run in place of the application's
// (`reprise apply`). A substitute is launched by the application's own call,
// with its parameters, stream and attributes, where the launch is the one that
// was tuned. Whatever stands in the way leaves the launch to the application's
// kernel, and is counted.
//
// The code has its own copies of the constants that it reads: they are set in
// the launch's stream, before each launch, to what the application's hold. The
// parent refuses code with other variables.
//
// Needs no parent once the code is here. Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_SUBSTITUTES_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_SUBSTITUTES_H_

#include <cuda.h>
#include <stdint.h>

#include "replay/recorder/driver/launch.h"
#include "replay/recorder/driver/modules.h"
#include "replay/recorder/driver/process.h"
#include "replay/recorder/driver/protocol.h"

namespace reprise::driver {

// Asks the parent for what it has for a kernel that it was just told of.
void FetchSubstitutes(ParentLock& parent, Kernel* kernel);

// Launches tuned code in place of `launch`; the result is the driver's answer.
// False: nothing was launched, and the launch counts as declined. The stream is
// not being captured.
bool LaunchSubstitute(const Kernel& kernel, const LaunchCall& launch,
                      LaunchForm form, CUresult* result);

// Nothing for a kernel without tuned code.
void CountDeclined(const Kernel& kernel, driver_wire::Decline why,
                   uint64_t launches);

// The context is gone, and the code that was loaded into it.
void ForgetContextSubstitutes(CUcontext context);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_SUBSTITUTES_H_
