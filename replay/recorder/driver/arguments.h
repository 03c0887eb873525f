// What the words of a launch's arguments tell of things that a replay cannot
// have. Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_ARGUMENTS_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_ARGUMENTS_H_

#include <stdint.h>

#include "replay/recorder/driver/modules.h"

namespace reprise::driver {

struct ArgumentHints {
  bool texture = false;       // some word equals a live texture's handle
  uint64_t host_pointer = 0;  // the first word that is an address of memory of
                              // the process which CUDA was never given; 0: none
};

// The arguments are laid out as the kernel's parameters say; structures are
// looked into. A word may be a number that only looks like a handle or an
// address, or one that the kernel never uses. Where the device cannot reach
// memory that CUDA was not given, no host pointer is looked for.
ArgumentHints HintsOf(const Kernel& kernel, const unsigned char* arguments,
                      int device);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_ARGUMENTS_H_
