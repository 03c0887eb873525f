// What lowered kernels and the executor agree on: the entry point of a block,
// the facts an object states about its kernels, and the runtime functions that
// lowered code calls. The lowering emits IR against these layouts by offset;
// change both together.
//
// Plain data and declarations only; no ownership.
#ifndef REPRISE_REPLAY_DEVICE_CPU_ABI_H_
#define REPRISE_REPLAY_DEVICE_CPU_ABI_H_

#include <cstddef>
#include <cstdint>

namespace reprise::cpu {

// One block in flight on one host thread.
struct BlockContext {
  uint32_t block[3];      // blockIdx
  uint32_t grid[3];       // gridDim
  uint32_t block_dim[3];  // blockDim
  uint32_t dynamic_shared_bytes;
  // Static shared memory; kReservedSharedBytes before it belong to cooperative
  // groups (%reserved_smem_offset_1).
  char* shared;
  char* dynamic_shared;  // behind it, at a multiple of kSharedAlignment
};
static_assert(offsetof(BlockContext, grid) == 12);
static_assert(offsetof(BlockContext, block_dim) == 24);
static_assert(offsetof(BlockContext, dynamic_shared_bytes) == 36);
static_assert(offsetof(BlockContext, shared) == 40);
static_assert(offsetof(BlockContext, dynamic_shared) == 48);

inline constexpr uint32_t kSharedAlignment = 128;
inline constexpr uint32_t kReservedSharedBytes = 1024;

// One CUDA thread, for code that is not inlined into its kernel.
struct ThreadContext {
  uint32_t thread[3];  // threadIdx
  uint32_t linear;     // x + y * blockDim.x + z * blockDim.x * blockDim.y
  const BlockContext* block;
};
static_assert(offsetof(ThreadContext, linear) == 12);
static_assert(offsetof(ThreadContext, block) == 16);

// The entry: runs one whole block. `arguments` is the kernel's argument buffer
// as NVPTX lays it out, aligned to 16 bytes, and is not written.
using BlockEntry = void (*)(const BlockContext* context, const char* arguments);

// One thread of a kernel with barriers; the entry hands it to
// __reprise_run_threads.
using ThreadEntry = void (*)(const BlockContext* context, const char* arguments,
                             uint32_t x, uint32_t y, uint32_t z);

// The object states, under the symbol "<entry>.facts", what its entry relies
// on. The executor refuses a launch that breaks it.
struct KernelFacts {
  uint32_t version;
  uint32_t block[3];  // compiled in; 0: any
  uint32_t grid[3];   // compiled in; 0: any
  uint32_t static_shared_bytes;
  uint32_t argument_bytes;
  uint32_t max_threads_per_block;  // 0: no bound stated
  uint32_t uses_fibers;
  uint32_t instrumented;
};
inline constexpr uint32_t kKernelFactsVersion = 1;

// Index arithmetic relies on grid.d * block.d staying below this in each
// dimension.
inline constexpr uint64_t kMaxThreadsPerDimension = uint64_t{1} << 31;

// A cooperative launch keeps the stacks of all its threads, if they wait for
// each other.
inline constexpr uint64_t kMaxResidentThreads = 24 * 1024;

inline constexpr char kEntryPrefix[] = "__reprise_block_";
inline constexpr char kFactsSuffix[] = ".facts";
inline constexpr char kInitialValueSuffix[] = ".reprise_init";

// Reductions of barriers, warp votes and warp reductions.
enum class BarrierReduction : uint32_t { kNone, kPopulation, kAnd, kOr };
enum class ShuffleMode : uint32_t { kIndex, kUp, kDown, kButterfly };
enum class VoteMode : uint32_t { kAll, kAny, kUniform, kBallot };
enum class MemorySpace : uint32_t { kGlobal, kShared, kLocal, kConstant };
enum class ReduxMode : uint32_t {
  kAdd,
  kAnd,
  kOr,
  kXor,
  kMinSigned,
  kMaxSigned,
  kMinUnsigned,
  kMaxUnsigned,
};

// Types that an instrumented access is seen as; values equal v1::ElementType.
enum class AccessType : uint32_t {
  kUntyped = 0,
  kF16 = 1,
  kBf16 = 2,
  kF32 = 3,
  kF64 = 4,
  kI8 = 5,
  kI16 = 6,
  kI32 = 7,
  kI64 = 8,
};

// A pair of results as lowered code gets them: `value` in the low half, a
// predicate (0 or 1) in the high half.
inline uint64_t PackWithPredicate(uint32_t value, bool predicate) {
  return value | (uint64_t{predicate} << 32);
}

}  // namespace reprise::cpu

// Runtime functions by the names lowered code uses. `site` is a string that
// names the source place; its address identifies the place. All are called on
// the host thread that runs the block, inside a launch.
extern "C" {
// Runs every thread of the block to its end, with barriers.
void __reprise_run_threads(const reprise::cpu::BlockContext* context,
                           const char* arguments,
                           reprise::cpu::ThreadEntry thread);
const reprise::cpu::ThreadContext* __reprise_current_thread();
// Names the thread that a plain loop is about to run.
void __reprise_set_thread(const reprise::cpu::BlockContext* context, uint32_t x,
                          uint32_t y, uint32_t z);
// count: threads that take part, 0 for all; divergence is checked when 0.
uint32_t __reprise_barrier(uint32_t id, uint32_t count, uint32_t reduction,
                           uint32_t predicate, const char* site);
void __reprise_barrier_arrive(uint32_t id, uint32_t count, const char* site);
void __reprise_warp_sync(uint32_t mask, const char* site);
uint64_t __reprise_shuffle(uint32_t mask, uint32_t mode, uint32_t value,
                           uint32_t lane, uint32_t clamp, const char* site);
uint32_t __reprise_vote(uint32_t mask, uint32_t mode, uint32_t predicate,
                        const char* site);
uint32_t __reprise_match_any(uint32_t mask, uint64_t value, const char* site);
uint64_t __reprise_match_all(uint32_t mask, uint64_t value, const char* site);
uint32_t __reprise_redux(uint32_t mask, uint32_t mode, uint32_t value,
                         const char* site);
uint32_t __reprise_activemask(const char* site);
uint64_t __reprise_elect(uint32_t mask, const char* site);
// The running block's BlockContext::shared.
char* __reprise_shared_base();
// Whether the address is of that reprise::cpu::MemorySpace.
uint32_t __reprise_is_space(const void* address, uint32_t space);
[[noreturn]] void __reprise_exit_thread();
[[noreturn]] void __reprise_trap(const char* reason);
[[noreturn]] void __reprise_assert_fail(const char* condition, const char* file,
                                        uint32_t line, const char* function);
int32_t __reprise_vprintf(const char* format, const char* arguments);
uint64_t __reprise_clock();        // cycles
uint64_t __reprise_globaltimer();  // nanoseconds
// Where a thread may be waiting for another one's store: others run.
void __reprise_yield();
// %envreg1 and %envreg2: the address of a cooperative launch's workspace, upper
// half first; 0 in other launches, and for other numbers.
uint32_t __reprise_envreg(uint32_t number);
// Instrumented code only. Bytes at an address are read, written, or both.
void __reprise_note_read(const void* address, uint64_t bytes, uint32_t type);
void __reprise_note_write(const void* address, uint64_t bytes, uint32_t type);
void __reprise_note_flops(uint64_t count);
}

#endif  // REPRISE_REPLAY_DEVICE_CPU_ABI_H_
