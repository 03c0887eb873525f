#include "replay/recorder/driver/gate.h"

#include "replay/recorder/driver/threads.h"
#include "replay/recorder/preload/support.h"

namespace reprise::driver {
namespace {

Gate g_gate;

}  // namespace

Gate& TheGate() { return g_gate; }

void Gate::Wait() {
  do {
    // Step back, wait until it opens, try again.
    if (state_.fetch_sub(1, std::memory_order_release) & kExclusive) Wake();
    for (;;) {
      const uint32_t state = state_.load(std::memory_order_acquire);
      if ((state & kExclusive) == 0) break;
      WaitWhile(&state_, state);
    }
  } while (state_.fetch_add(1, std::memory_order_acquire) & kExclusive);
}

void Gate::Wake() { WakeAll(&state_); }

bool Gate::LockExclusive(int64_t timeout_ms) {
  const int64_t end = standin::MonotonicNs() + timeout_ms * 1000000;
  for (;;) {
    const uint32_t state =
        state_.fetch_or(kExclusive, std::memory_order_acquire);
    if ((state & kExclusive) == 0) break;
    // Another recording; it holds the gate for as long as it takes.
    WaitWhile(&state_, state);
  }
  for (;;) {
    const uint32_t state = state_.load(std::memory_order_acquire);
    if (state == kExclusive) return true;
    const int64_t left = end - standin::MonotonicNs();
    if (left <= 0) {
      UnlockExclusive();
      return false;
    }
    WaitWhile(&state_, state, left / 1000000 + 1);
  }
}

void Gate::UnlockExclusive() {
  state_.fetch_and(~kExclusive, std::memory_order_release);
  Wake();
}

}  // namespace reprise::driver
