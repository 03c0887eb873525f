#include "replay/device/cpu/runtime/stack_scrub.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>

#include "replay/device/cpu/runtime/fiber.h"

namespace reprise::cpu {

#if defined(REPRISE_ASAN_FIBERS)

void ScrubStack() {}

#else

namespace {

constexpr uintptr_t kPageBytes = 4096;
// Cleared in place; pages below go back to the system.
constexpr uintptr_t kKeptBytes = 4 * kPageBytes;
// The frame of the function that clears, and the red zone.
constexpr uintptr_t kOwnBytes = 512;
static_assert(kOwnBytes < kSparedStackBytes);

// The lowest address of this thread's stack; 0 where it is not known.
uintptr_t StackBegin() {
  static thread_local uintptr_t begin = [] {
    pthread_attr_t attributes;
    void* address = nullptr;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
      return uintptr_t{0};
    pthread_attr_getstack(&attributes, &address, &bytes);
    pthread_attr_destroy(&attributes);
    return reinterpret_cast<uintptr_t>(address);
  }();
  return begin;
}

}  // namespace

__attribute__((noinline)) void ScrubStack() {
  const uintptr_t begin = StackBegin();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (begin == 0 || here - begin < kKeptBytes + kOwnBytes) return;
  const uintptr_t kept = (here - kKeptBytes) & ~(kPageBytes - 1);
  // The main thread's stack is mapped in part.
  madvise(reinterpret_cast<void*>(begin), kept - begin, MADV_DONTNEED);
  // Nothing may be called from here on: its frame would lie there.
  for (uintptr_t at = kept; at < here - kOwnBytes; at += sizeof(uint64_t))
    *reinterpret_cast<volatile uint64_t*>(at) = 0;
}

#endif

}  // namespace reprise::cpu
