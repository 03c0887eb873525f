// Stream and event handles, and the names under which code built for
// per-thread default streams calls. Work is done when a call returns, so a
// stream is little more than a handle; every thread's default stream and the
// legacy one are alike.
#ifndef REPRISE_REPLAY_RECORDER_PRELOAD_STREAM_H_
#define REPRISE_REPLAY_RECORDER_PRELOAD_STREAM_H_

#include <cuda_runtime_api.h>

// The same function under its second name; in the file that defines it.
#define REPRISE_ALIAS(name, second) \
  extern __typeof(name) second __attribute__((alias(#name)));
#define REPRISE_PTSZ(name) REPRISE_ALIAS(name, name##_ptsz)
#define REPRISE_PTDS(name) REPRISE_ALIAS(name, name##_ptds)

namespace reprise::standin {

// Whether the handle is a live stream or one of the default streams.
bool IsStream(cudaStream_t stream);

// Records an event now; false when the handle is none. Requires the mutex.
bool RecordEvent(cudaEvent_t event);

}  // namespace reprise::standin

#endif  // REPRISE_REPLAY_RECORDER_PRELOAD_STREAM_H_
