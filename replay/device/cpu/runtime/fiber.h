// Stackful coroutines, just enough for the threads of a block: a stack with a
// guard page below it, and a switch that saves what the x86-64 ABI says a call
// preserves.
//
// Not thread-safe: a pool and its fibers belong to one host thread.
#ifndef REPRISE_REPLAY_DEVICE_CPU_RUNTIME_FIBER_H_
#define REPRISE_REPLAY_DEVICE_CPU_RUNTIME_FIBER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define REPRISE_ASAN_FIBERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REPRISE_ASAN_FIBERS 1
#endif
#endif

namespace reprise::cpu {

// CUDA allows 512 KiB of local memory a thread.
inline constexpr size_t kFiberStackBytes = 576 * 1024;

// Where a suspended context's stack pointer is kept.
struct FiberContext {
  void* stack_pointer = nullptr;
#if defined(REPRISE_ASAN_FIBERS)
  void* fake_stack = nullptr;
  const void* stack_bottom = nullptr;
  size_t stack_bytes = 0;
#endif
};

// Suspends into `from` and resumes `to`.
void SwitchFiber(FiberContext& from, FiberContext& to);
// The same for a context that will not be resumed.
[[noreturn]] void LeaveFiber(FiberContext& from, FiberContext& to);
// First thing a fiber's function does; `main` is the context that switched to
// the first fiber.
void EnterFiber(FiberContext& main);

class StackPool {
 public:
  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  // At least `count` stacks; false when the system has no room for them.
  bool Reserve(size_t count);
  // A context that runs function() on stack `index` when switched to. The
  // function must not return.
  FiberContext Prepare(size_t index, void (*function)());
  // Clears what fibers on the first `count` stacks have left there; none runs.
  // Under AddressSanitizer it does nothing.
  void Scrub(size_t count);

  uint64_t begin() const { return reinterpret_cast<uint64_t>(memory_); }
  uint64_t end() const { return begin() + bytes_; }

 private:
  char* memory_ = nullptr;
  size_t bytes_ = 0;
  size_t count_ = 0;
};

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_RUNTIME_FIBER_H_
