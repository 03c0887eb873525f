// The one recorded process: its connection to `reprise record`, its launch
// counters, and the device and contexts that its threads use. Comes up on the
// first driver call; a process that never makes one costs nothing.
//
// Without REPRISE_DRIVER_SOCKET, after a failed connection, and in the child of
// a fork that happened after the connection, every hook passes through. When
// the parent goes away later, nothing more is recorded, but memory that came
// from the arena is still served from it.
//
// Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_PROCESS_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_PROCESS_H_

#include <stdint.h>

#include <atomic>

#include "replay/recorder/driver/channel.h"
#include "replay/recorder/driver/protocol.h"
#include "replay/recorder/preload/support.h"

namespace reprise::driver {

using standin::Array;
using standin::Mutex;
using standin::MutexLock;

// Whether the environment names a recorder at all.
bool Enabled();

// Whether hooks do anything; connects on the first call.
bool ConnectOnce();
// Initialized before anything runs.
extern std::atomic<int> g_process_state;  // NOLINT(bugprone-dynamic-*)
enum ProcessState : int { kFresh, kConnected, kPassing };
inline bool Active() {
  const int state = g_process_state.load(std::memory_order_acquire);
  return state == kConnected || (state == kFresh && ConnectOnce());
}

// What the parent said first. Requires Active().
const driver_wire::HelloReply& Hello();

// The parent still listens.
bool ParentListens();

// Sends text for a person; the same text once per process.
__attribute__((format(printf, 1, 2))) void Problem(const char* format, ...);

// The channel to the parent for one exchange. Lock order: gate, then any other
// mutex, then this.
class ParentLock {
 public:
  ParentLock();
  ~ParentLock();
  ParentLock(const ParentLock&) = delete;
  ParentLock& operator=(const ParentLock&) = delete;

  bool ok() const;
  Channel* operator->() const;
  // The parent is gone or talks nonsense: says so once, closes the channel.
  void Lost(const char* doing);
};

// A kernel's counter; a dummy for numbers beyond kMaxKernels.
driver_wire::KernelCounter* CounterOf(uint32_t kernel);

// The application has so many bytes of device memory more, or less.
void NoteDeviceMemory(int64_t difference);

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_PROCESS_H_
