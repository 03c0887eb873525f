// Allocation shared by the calls that allocate. Each function takes the
// context's mutex and returns the call's error without noting it as the last.
#ifndef REPRISE_REPLAY_RECORDER_PRELOAD_MEMORY_H_
#define REPRISE_REPLAY_RECORDER_PRELOAD_MEMORY_H_

#include <cuda_runtime_api.h>
#include <stdint.h>

namespace reprise::standin {

// `origin` is a wire::Origin. Sets *pointer only on success; null for 0 bytes.
cudaError_t Allocate(void** pointer, size_t bytes, uint32_t origin,
                     uint32_t flags, const void* pool);
// Device, managed and pool memory; null is fine.
cudaError_t FreeDevice(void* pointer);

// Whether cudaHostRegister covers the whole range. Requires the mutex.
bool IsRegisteredHost(uint64_t address, uint64_t bytes);

}  // namespace reprise::standin

#endif  // REPRISE_REPLAY_RECORDER_PRELOAD_MEMORY_H_
