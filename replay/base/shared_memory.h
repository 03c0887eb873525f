// Memory that processes share by a descriptor. Thread-safe.
#ifndef REPRISE_REPLAY_BASE_SHARED_MEMORY_H_
#define REPRISE_REPLAY_BASE_SHARED_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace reprise {

// A memfd of so many zeros, closed on exec. Its size is sealed: whoever else
// has the descriptor could else make it smaller, which kills those that read
// the rest.
absl::StatusOr<int> CreateSharedMemory(const char* name, uint64_t bytes);

}  // namespace reprise

#endif  // REPRISE_REPLAY_BASE_SHARED_MEMORY_H_
