#include "replay/recorder/driver/gate.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "replay/recorder/preload/support.h"

namespace reprise::driver {
namespace {

Gate g_gate;

long Futex(std::atomic<uint32_t>* word, int operation, uint32_t value,
           const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(word),
                 operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

}  // namespace

Gate& TheGate() { return g_gate; }

void Gate::Wait() {
  do {
    // Step back, wait until it opens, try again.
    if (state_.fetch_sub(1, std::memory_order_release) & kExclusive) Wake();
    for (;;) {
      const uint32_t state = state_.load(std::memory_order_acquire);
      if ((state & kExclusive) == 0) break;
      Futex(&state_, FUTEX_WAIT, state, nullptr);
    }
  } while (state_.fetch_add(1, std::memory_order_acquire) & kExclusive);
}

void Gate::Wake() { Futex(&state_, FUTEX_WAKE, INT_MAX, nullptr); }

bool Gate::LockExclusive(int64_t timeout_ms) {
  const int64_t end = standin::MonotonicNs() + timeout_ms * 1000000;
  for (;;) {
    const uint32_t state =
        state_.fetch_or(kExclusive, std::memory_order_acquire);
    if ((state & kExclusive) == 0) break;
    // Another recording; it holds the gate for as long as it takes.
    Futex(&state_, FUTEX_WAIT, state, nullptr);
  }
  for (;;) {
    const uint32_t state = state_.load(std::memory_order_acquire);
    if (state == kExclusive) return true;
    const int64_t left = end - standin::MonotonicNs();
    if (left <= 0) {
      UnlockExclusive();
      return false;
    }
    const timespec timeout{left / 1000000000, left % 1000000000};
    Futex(&state_, FUTEX_WAIT, state, &timeout);
  }
}

void Gate::UnlockExclusive() {
  state_.fetch_and(~kExclusive, std::memory_order_release);
  Wake();
}

}  // namespace reprise::driver
