#include "replay/device/cpu/runtime/fiber.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "replay/base/check.h"

#if defined(REPRISE_ASAN_FIBERS)
#include <sanitizer/common_interface_defs.h>
#endif

// void reprise_switch_stacks(void** save, void* load)
asm(R"(
.text
.globl reprise_switch_stacks
.hidden reprise_switch_stacks
.type reprise_switch_stacks, @function
reprise_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size reprise_switch_stacks, .-reprise_switch_stacks
)");

extern "C" __attribute__((visibility("hidden"))) void reprise_switch_stacks(
    void** save, void* load);

namespace reprise::cpu {
namespace {

constexpr size_t kGuardBytes = 4096;
constexpr size_t kPageBytes = 4096;
constexpr size_t kStride = kFiberStackBytes + kGuardBytes;
// What most kernels use of a stack, cleared in place; the rest goes back to the
// system.
constexpr size_t kUsualBytes = 4096;
// Tops of stacks at equal distances would share few sets of the caches; an odd
// number of lines, modulo a good part of a second-level cache, spreads them.
constexpr size_t kColorStep = 13 * 64;
constexpr size_t kColorBytes = 32 * 1024;

// How far below its stack's end a fiber begins.
size_t ColorOf(size_t index) { return index * kColorStep % kColorBytes; }

}  // namespace

void SwitchFiber(FiberContext& from, FiberContext& to) {
#if defined(REPRISE_ASAN_FIBERS)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack_bottom,
                                 to.stack_bytes);
#endif
  reprise_switch_stacks(&from.stack_pointer, to.stack_pointer);
#if defined(REPRISE_ASAN_FIBERS)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

void LeaveFiber(FiberContext& from, FiberContext& to) {
#if defined(REPRISE_ASAN_FIBERS)
  __sanitizer_start_switch_fiber(nullptr, to.stack_bottom, to.stack_bytes);
#endif
  reprise_switch_stacks(&from.stack_pointer, to.stack_pointer);
  __builtin_unreachable();
}

void EnterFiber(FiberContext& main) {
#if defined(REPRISE_ASAN_FIBERS)
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &bytes);
  if (main.stack_bottom == nullptr) {
    main.stack_bottom = bottom;
    main.stack_bytes = bytes;
  }
#endif
}

StackPool::~StackPool() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

bool StackPool::Reserve(size_t count) {
  if (count <= count_) return true;
  if (memory_ != nullptr) munmap(memory_, bytes_);
  memory_ = nullptr;
  count_ = 0;
  bytes_ = count * kStride;
  void* memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return false;
  memory_ = static_cast<char*>(memory);
  // Huge pages would make every touched stack cost 2 MiB.
  madvise(memory_, bytes_, MADV_NOHUGEPAGE);
  for (size_t i = 0; i < count; ++i) {
    if (mprotect(memory_ + i * kStride, kGuardBytes, PROT_NONE) != 0)
      return false;
  }
  count_ = count;
  return true;
}

FiberContext StackPool::Prepare(size_t index, void (*function)()) {
  CHECK(index < count_);
  char* bottom = memory_ + index * kStride + kGuardBytes;
  char* top = bottom + kFiberStackBytes - ColorOf(index);
  // What reprise_switch_stacks pops: six registers and a return address. At the
  // function's first instruction the stack is 8 past a multiple of 16.
  void** frame = reinterpret_cast<void**>(top) - 8;
  for (int i = 0; i < 6; ++i) frame[i] = nullptr;
  frame[6] = reinterpret_cast<void*>(function);
  frame[7] = nullptr;
  FiberContext context;
  context.stack_pointer = frame;
#if defined(REPRISE_ASAN_FIBERS)
  context.stack_bottom = bottom;
  context.stack_bytes = kFiberStackBytes;
#endif
  return context;
}

void StackPool::Scrub(size_t count) {
#if !defined(REPRISE_ASAN_FIBERS)
  for (size_t i = 0; i < std::min(count, count_); ++i) {
    char* bottom = memory_ + i * kStride + kGuardBytes;
    const size_t top = kFiberStackBytes - ColorOf(i);
    const size_t begin = (top - kUsualBytes) / kPageBytes * kPageBytes;
    const size_t end = (top + kPageBytes - 1) / kPageBytes * kPageBytes;
    madvise(bottom, begin, MADV_DONTNEED);
    std::memset(bottom + begin, 0, end - begin);
    if (end < kFiberStackBytes)
      madvise(bottom + end, kFiberStackBytes - end, MADV_DONTNEED);
  }
#endif
}

}  // namespace reprise::cpu
