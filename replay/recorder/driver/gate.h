// What keeps the application's other threads out while a launch is recorded:
// hooked calls that launch, allocate or change memory hold the gate shared, the
// recording thread holds it exclusively. Sharing costs two atomic additions.
//
// Exclusive waits are bounded: a call that holds the gate may wait for work
// that a thread at the gate would have issued. Not recursive.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_GATE_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_GATE_H_

#include <stdint.h>

#include <atomic>

namespace reprise::driver {

class Gate {
 public:
  constexpr Gate() = default;

  void LockShared() {
    if (state_.fetch_add(1, std::memory_order_acquire) & kExclusive) Wait();
  }
  void UnlockShared() {
    if (state_.fetch_sub(1, std::memory_order_release) & kExclusive) Wake();
  }

  // False: not alone within timeout_ms; the gate is open again.
  bool LockExclusive(int64_t timeout_ms);
  void UnlockExclusive();

  // In the child of a fork, where no other thread is.
  void Reset() { state_ = 0; }

 private:
  static constexpr uint32_t kExclusive = uint32_t{1} << 31;

  void Wait();
  void Wake();

  std::atomic<uint32_t> state_{0};
};

Gate& TheGate();

class SharedGate {
 public:
  SharedGate() { TheGate().LockShared(); }
  ~SharedGate() {
    if (held_) TheGate().UnlockShared();
  }
  // Lets go early.
  void Release() {
    if (held_) TheGate().UnlockShared();
    held_ = false;
  }
  SharedGate(const SharedGate&) = delete;
  SharedGate& operator=(const SharedGate&) = delete;

 private:
  bool held_ = true;
};

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_GATE_H_
