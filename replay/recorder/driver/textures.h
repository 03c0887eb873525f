// The texture and surface objects of the application. Their handles mean
// nothing in another process, so a launch that is given one cannot be replayed.
// Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_TEXTURES_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_TEXTURES_H_

#include <stdint.h>

#include "replay/recorder/driver/modules.h"

namespace reprise::driver {

void AddTexture(uint64_t handle);
void ForgetTexture(uint64_t handle);

// Whether the arguments, laid out as the kernel's parameters say, hold the
// handle of a live object, by itself or in a structure.
bool HoldsTexture(const Kernel& kernel, const unsigned char* arguments);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_TEXTURES_H_
