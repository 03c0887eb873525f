// What an application gives the driver as a module: how many bytes it is and
// whether it stays where it lies. Reads memory that the driver reads too.
// Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_IMAGE_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_IMAGE_H_

#include <stdint.h>

namespace reprise::driver {

struct Image {
  const void* data = nullptr;
  uint64_t bytes = 0;  // 0: not understood
};

// Resolves a fatbin (with or without its wrapper), a cubin (ELF) or PTX text.
Image FindImage(const void* code);

// Whether the bytes belong to a loaded program or library, whose file keeps
// them.
bool LiesInLoadedFile(const Image& image);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_IMAGE_H_
