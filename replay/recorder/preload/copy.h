// Copies and fills shared by the calls for plain memory and for symbols. Each
// function takes the context's mutex and returns the call's error without
// noting it as the last.
#ifndef REPRISE_REPLAY_RECORDER_PRELOAD_COPY_H_
#define REPRISE_REPLAY_RECORDER_PRELOAD_COPY_H_

#include <cuda_runtime_api.h>

namespace reprise::standin {

cudaError_t Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);

}  // namespace reprise::standin

#endif  // REPRISE_REPLAY_RECORDER_PRELOAD_COPY_H_
