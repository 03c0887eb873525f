// Clears what calls that have returned left on the calling host thread's stack,
// so that device code whose threads run as one loop does not find in its local
// memory what an earlier launch kept there. Thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CPU_RUNTIME_STACK_SCRUB_H_
#define REPRISE_REPLAY_DEVICE_CPU_RUNTIME_STACK_SCRUB_H_

namespace reprise::cpu {

// What is to be cleared must lie at least this far below the caller of
// ScrubStack: its own frame is spared.
inline constexpr unsigned kSparedStackBytes = 1024;

// Costs some microseconds, and what refilling costs where device code used more
// than a few pages. Under AddressSanitizer it does nothing.
void ScrubStack();

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_RUNTIME_STACK_SCRUB_H_
