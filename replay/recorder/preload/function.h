// What a kernel may use of a multiprocessor, for launches and occupancy.
// Everything requires the context's mutex and a resolved function.
#ifndef REPRISE_REPLAY_RECORDER_PRELOAD_FUNCTION_H_
#define REPRISE_REPLAY_RECORDER_PRELOAD_FUNCTION_H_

#include <stdint.h>

#include "replay/recorder/preload/modules.h"

namespace reprise::standin {

// As cudaFuncSetAttribute left it, less what the kernel takes statically.
uint32_t MaxDynamicSharedBytes(const Function& function);

// Blocks of `threads` threads that one multiprocessor holds at once. Registers
// do not count: the stand-in's kernels have none.
uint32_t ResidentBlocks(const Function& function, uint32_t threads,
                        uint64_t dynamic_shared_bytes);

uint32_t MultiprocessorCount();

}  // namespace reprise::standin

#endif  // REPRISE_REPLAY_RECORDER_PRELOAD_FUNCTION_H_
