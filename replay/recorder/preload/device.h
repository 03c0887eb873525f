// The device's attributes for the calls that check against them.
#ifndef REPRISE_REPLAY_RECORDER_PRELOAD_DEVICE_H_
#define REPRISE_REPLAY_RECORDER_PRELOAD_DEVICE_H_

#include <cuda_runtime_api.h>

namespace reprise::standin {

// Requires a known attribute and the context to be up.
int Attribute(cudaDeviceAttr attribute);

}  // namespace reprise::standin

#endif  // REPRISE_REPLAY_RECORDER_PRELOAD_DEVICE_H_
