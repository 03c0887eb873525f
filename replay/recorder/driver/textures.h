// The texture and surface objects of the application. Their handles mean
// nothing in another process, so a launch that is given one cannot be replayed.
// Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_TEXTURES_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_TEXTURES_H_

#include <stdint.h>

namespace reprise::driver {

void AddTexture(uint64_t handle);
void ForgetTexture(uint64_t handle);

// Handles are small numbers: a value that equals one need not be it.
bool IsTexture(uint64_t value);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_TEXTURES_H_
