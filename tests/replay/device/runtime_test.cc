// The runtime of lowered code on its own, with kernels written in C++: grids
// over host threads, fibers, printf, access marks, launch checks, fault texts.
// Knows no LLVM, so that it runs under the sanitizers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "replay/device/cpu/abi.h"
#include "replay/device/cpu/executor/fault_text.h"
#include "replay/device/cpu/executor/launch_check.h"
#include "replay/device/cpu/runtime/device_printf.h"
#include "replay/device/cpu/runtime/fiber.h"
#include "replay/device/cpu/runtime/grid.h"
#include "replay/device/cpu/runtime/shadow.h"
#include "replay/device/cpu/runtime/symbols.h"

namespace reprise::cpu {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

GridLaunch Launch(BlockEntry entry, std::vector<uint32_t> grid,
                  std::vector<uint32_t> block, const void* arguments) {
  GridLaunch launch;
  launch.entry = entry;
  std::copy(grid.begin(), grid.end(), launch.grid);
  std::copy(block.begin(), block.end(), launch.block);
  launch.arguments = static_cast<const char*>(arguments);
  return launch;
}

// Arguments: a pointer to counters, one for each block.
void CountBlock(const BlockContext* context, const char* arguments) {
  auto* counters = *reinterpret_cast<std::atomic<int>* const*>(arguments);
  const uint64_t linear =
      (uint64_t{context->block[2]} * context->grid[1] + context->block[1]) *
          context->grid[0] +
      context->block[0];
  ++counters[linear];
}

TEST(GridTest, EveryBlockRunsOnceOverManyLaunches) {
  const auto runner = GridRunner::Create(4);
  std::vector<std::atomic<int>> counters(7 * 5 * 3);
  auto* pointer = counters.data();
  for (int i = 1; i <= 200; ++i) {
    runner->Run(Launch(CountBlock, {7, 5, 3}, {32}, &pointer));
    for (const auto& counter : counters) ASSERT_EQ(counter, i);
  }
}

TEST(GridTest, FewerBlocksThanThreads) {
  const auto runner = GridRunner::Create(4);
  std::atomic<int> counter{0};
  auto* pointer = &counter;
  for (int i = 0; i < 100; ++i) {
    runner->Run(Launch(CountBlock, {1}, {1}, &pointer));
  }
  EXPECT_EQ(counter, 100);
}

void WriteShared(const BlockContext* context, const char* arguments) {
  auto* bad = *reinterpret_cast<std::atomic<int>* const*>(arguments);
  // Poisoned before every block, aligned, and dynamic behind static memory.
  for (int i = 0; i < 100; ++i) *bad += context->shared[i] != 0x5a;
  for (int i = 0; i < 300; ++i) *bad += context->dynamic_shared[i] != 0x5a;
  *bad += reinterpret_cast<uint64_t>(context->shared) % kSharedAlignment != 0;
  *bad += context->dynamic_shared - context->shared != kSharedAlignment;
  std::memset(context->shared, 1, 100);
  std::memset(context->dynamic_shared, 2, 300);
  std::memset(context->shared - kReservedSharedBytes, 3, kReservedSharedBytes);
}

TEST(GridTest, SharedMemoryIsPoisonedForEachBlock) {
  const auto runner = GridRunner::Create(2);
  std::atomic<int> bad{0};
  auto* pointer = &bad;
  GridLaunch launch = Launch(WriteShared, {50}, {1}, &pointer);
  launch.static_shared_bytes = 100;
  launch.dynamic_shared_bytes = 300;
  launch.poison_shared = true;
  launch.poison_byte = 0x5a;
  runner->Run(launch);
  EXPECT_EQ(bad, 0);
}

void PrintBlock(const BlockContext* context, const char*) {
  struct {
    int block;
    int pad;
    double half;
  } arguments = {static_cast<int>(context->block[0]), 0,
                 context->block[0] / 2.0};
  __reprise_vprintf("%d:%.1f\n", reinterpret_cast<const char*>(&arguments));
}

TEST(GridTest, PrintsInBlockOrderFromAllThreads) {
  const auto runner = GridRunner::Create(4);
  const GridResult result = runner->Run(Launch(PrintBlock, {40}, {1}, ""));
  std::string expected;
  for (int i = 0; i < 40; ++i) {
    char line[32];
    std::snprintf(line, sizeof(line), "%d:%.1f\n", i, i / 2.0);
    expected += line;
  }
  EXPECT_EQ(result.printf_output, expected);
}

#if !defined(__SANITIZE_THREAD__) && \
    !(defined(__has_feature) && __has_feature(thread_sanitizer))

// One CUDA thread: sums a shared value over barriers of the block.
void SumThread(const BlockContext* context, const char* arguments, uint32_t x,
               uint32_t y, uint32_t z) {
  auto* out = *reinterpret_cast<int* const*>(arguments);
  auto* shared = reinterpret_cast<int*>(context->shared);
  const uint32_t linear =
      x + context->block_dim[0] * (y + context->block_dim[1] * z);
  int sum = 0;
  for (int round = 0; round < 5; ++round) {
    if (linear == static_cast<uint32_t>(round)) shared[0] = round + 1;
    __reprise_barrier(0, 0, 0, 0, "a");
    sum += shared[0];
    __reprise_barrier(0, 0, 0, 0, "b");
  }
  const uint32_t threads =
      context->block_dim[0] * context->block_dim[1] * context->block_dim[2];
  out[context->block[0] * threads + linear] = sum;
}
void SumEntry(const BlockContext* context, const char* arguments) {
  __reprise_run_threads(context, arguments, SumThread);
}

TEST(FiberTest, BlocksOfAllSizesMeetAtBarriers) {
  const auto runner = GridRunner::Create(2);
  for (const std::vector<uint32_t>& block :
       {std::vector<uint32_t>{5, 1, 1}, {32, 4, 2}, {8, 8, 16}, {33, 1, 3}}) {
    const int threads = block[0] * block[1] * block[2];
    std::vector<int> out(3 * threads);
    int* pointer = out.data();
    GridLaunch launch = Launch(SumEntry, {3}, block, &pointer);
    launch.uses_fibers = true;
    launch.static_shared_bytes = 4;
    runner->Run(launch);
    EXPECT_THAT(out, Each(1 + 2 + 3 + 4 + 5)) << threads;
  }
}

// Threads of all blocks wait until every thread of the grid has arrived, then
// the block meets; twice.
void MeetThread(const BlockContext* context, const char* arguments, uint32_t,
                uint32_t, uint32_t) {
  auto* arrived = *reinterpret_cast<std::atomic<uint32_t>* const*>(arguments);
  const uint32_t threads = context->grid[0] * context->block_dim[0];
  for (int round = 0; round < 2; ++round) {
    ++arrived[round];
    while (arrived[round] < threads) __reprise_yield();
    __reprise_barrier(0, 0, 0, 0, "met");
  }
  const uint64_t workspace =
      uint64_t{__reprise_envreg(1)} << 32 | __reprise_envreg(2);
  arrived[2] += workspace != 0;
}
void MeetEntry(const BlockContext* context, const char* arguments) {
  __reprise_run_threads(context, arguments, MeetThread);
}

TEST(FiberTest, BlocksOfACooperativeLaunchWaitForEachOther) {
  const auto runner = GridRunner::Create(2);
  for (const uint32_t block : {1u, 40u, 40u, 7u}) {
    std::atomic<uint32_t> arrived[3] = {};
    auto* pointer = &arrived[0];
    GridLaunch launch = Launch(MeetEntry, {9}, {block}, &pointer);
    launch.uses_fibers = true;
    launch.cooperative = true;
    runner->Run(launch);
    EXPECT_EQ(arrived[1], 9 * block);
    EXPECT_EQ(arrived[2], 9 * block);
    // Launches of the other kind in between.
    std::vector<int> out(3 * 33);
    int* numbers = out.data();
    GridLaunch other = Launch(SumEntry, {3}, {33}, &numbers);
    other.uses_fibers = true;
    other.static_shared_bytes = 4;
    runner->Run(other);
    EXPECT_THAT(out, Each(15));
  }
}

void LeaveThread(const BlockContext*, const char* arguments, uint32_t x,
                 uint32_t, uint32_t) {
  auto* out = *reinterpret_cast<uint32_t* const*>(arguments);
  if (x % 7 == 3) __reprise_exit_thread();
  const uint32_t votes = __reprise_vote(
      ~0u, static_cast<uint32_t>(VoteMode::kBallot), x % 2, "vote");
  out[x] = votes;
  if (x % 5 == 1) return;
  out[64 + x] = __reprise_barrier(
      0, 0, static_cast<uint32_t>(BarrierReduction::kPopulation), 1, "c");
}
void LeaveEntry(const BlockContext* context, const char* arguments) {
  __reprise_run_threads(context, arguments, LeaveThread);
}

TEST(FiberTest, ThreadsThatEndAreWaitedForNoMore) {
  const auto runner = GridRunner::Create(1);
  std::vector<uint32_t> out(128, 0);
  auto* pointer = out.data();
  GridLaunch launch = Launch(LeaveEntry, {1}, {64}, &pointer);
  launch.uses_fibers = true;
  runner->Run(launch);
  uint32_t ballot[2] = {0, 0};
  uint32_t waiting = 0;
  for (uint32_t x = 0; x < 64; ++x) {
    if (x % 7 == 3) continue;
    if (x % 2) ballot[x / 32] |= 1u << (x % 32);
    if (x % 5 != 1) ++waiting;
  }
  for (uint32_t x = 0; x < 64; ++x) {
    if (x % 7 == 3) {
      EXPECT_EQ(out[x], 0u);
    } else {
      EXPECT_EQ(out[x], ballot[x / 32]);
      EXPECT_EQ(out[64 + x], x % 5 == 1 ? 0 : waiting);
    }
  }
}

void YieldThread(const BlockContext*, const char* arguments, uint32_t x,
                 uint32_t, uint32_t) {
  // Later threads wait for earlier ones without a barrier.
  auto* turn = *reinterpret_cast<volatile uint32_t* const*>(arguments);
  while (*turn != 15 - x) __reprise_yield();
  *turn = 16 - x;
}
void YieldEntry(const BlockContext* context, const char* arguments) {
  __reprise_run_threads(context, arguments, YieldThread);
}

TEST(FiberTest, YieldingThreadsLetOthersGoOn) {
  const auto runner = GridRunner::Create(1);
  uint32_t turn = 0;
  auto* pointer = &turn;
  GridLaunch launch = Launch(YieldEntry, {1}, {16}, &pointer);
  launch.uses_fibers = true;
  runner->Run(launch);
  EXPECT_EQ(turn, 16u);
}

#endif  // no ThreadSanitizer

// Packs like Clang does for vprintf.
class Packed {
 public:
  template <typename T>
  Packed& Add(T value) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  std::string Format(const char* format) {
    int32_t count = 0;
    return FormatDevicePrintf(format, bytes_.data(), &count);
  }

 private:
  std::string bytes_;
};

TEST(PrintfTest, FormatsLikeTheHost) {
  EXPECT_EQ(Packed().Add(-5).Add(7u).Add(255u).Format("%d %u %#x"),
            "-5 7 0xff");
  EXPECT_EQ(Packed().Add(1).Add(int64_t{1} << 40).Add(2).Format("%d %lld %d"),
            "1 1099511627776 2");
  EXPECT_EQ(Packed().Add(uint64_t{9}).Format("%zu"), "9");
  EXPECT_EQ(Packed().Add(int64_t{-9}).Format("%ld"), "-9");
  EXPECT_EQ(Packed().Add(300).Format("%hhd"), "44");
  EXPECT_EQ(Packed().Add(1.5).Add('x').Format("[%8.3f|%-3c]"),
            "[   1.500|x  ]");
  EXPECT_EQ(Packed().Add("text").Format("%10s|"), "      text|");
  EXPECT_EQ(Packed().Add(static_cast<const char*>(nullptr)).Format("%s"),
            "(null)");
  EXPECT_EQ(Packed().Add(5).Add(42).Format("%*d"), "   42");
  EXPECT_EQ(Packed().Format("100%% %"), "100% %");
  EXPECT_EQ(Packed().Add(3).Format("%y %d"), "%y 3");
}

TEST(ShadowTest, MergesBytesAndSplitsAtGaps) {
  alignas(4096) static char memory[3 * 4096];
  const auto base = reinterpret_cast<uint64_t>(memory);
  auto shadow = Shadow::Create({{base, base + sizeof(memory)}});
  ASSERT_TRUE(shadow.ok());
  Shadow& s = **shadow;
  s.Write(base + 4090, 12, AccessType::kF32);  // across a page
  s.Read(base + 4096, 4, AccessType::kF32);    // after the write
  s.Read(base + 5000, 8, AccessType::kF64);
  s.Write(base + 5000, 4, AccessType::kI32);  // read before
  s.Read(base - 8, 8, AccessType::kI64);      // not in the range
  s.CountFlops(3);
  s.CountFlops(4);
  const v1::AccessReport report = s.Report();
  ASSERT_EQ(report.writes_size(), 2);
  EXPECT_EQ(report.writes(0).address(), base + 4090);
  EXPECT_EQ(report.writes(0).bytes(), 12u);
  EXPECT_EQ(report.writes(1).bytes(), 4u);
  ASSERT_EQ(report.reads_before_write_size(), 1);
  EXPECT_EQ(report.reads_before_write(0).address(), base + 5000);
  EXPECT_EQ(report.reads_before_write(0).bytes(), 8u);
  EXPECT_EQ(report.flops(), 7u);
  EXPECT_EQ(report.bytes_read(), 12u);
  EXPECT_EQ(report.bytes_written(), 16u);
  // The second page was seen as several types.
  ASSERT_EQ(report.types_size(), 1);
  EXPECT_EQ(report.types(0).address(), base);
  EXPECT_EQ(report.types(0).element_type(), v1::ELEMENT_TYPE_F32);
}

v1::LaunchRequest Request(uint32_t grid, uint32_t block) {
  v1::LaunchRequest request;
  auto* launch = request.mutable_launch();
  launch->mutable_grid()->set_x(grid);
  launch->mutable_grid()->set_y(1);
  launch->mutable_grid()->set_z(1);
  launch->mutable_block()->set_x(block);
  launch->mutable_block()->set_y(1);
  launch->mutable_block()->set_z(1);
  return request;
}

TEST(LaunchCheckTest, SaysGotAndAllowed) {
  KernelFacts facts = {};
  facts.version = kKernelFactsVersion;
  EXPECT_EQ(CheckLaunch(facts, Request(1, 1024)), "");
  EXPECT_THAT(CheckLaunch(facts, Request(1, 1025)),
              HasSubstr("got block (1025,1,1)"));
  EXPECT_THAT(CheckLaunch(facts, Request(0, 1)), HasSubstr("got grid (0,1,1)"));
  facts.max_threads_per_block = 128;
  EXPECT_THAT(CheckLaunch(facts, Request(1, 256)),
              HasSubstr("kernel allows 128"));
  facts = {};
  EXPECT_THAT(CheckLaunch(facts, Request(1, 1)), HasSubstr("version 0"));
  facts.version = kKernelFactsVersion;
  facts.static_shared_bytes = 1000;
  v1::LaunchRequest request = Request(1, 1);
  request.mutable_launch()->set_dynamic_shared_bytes(kMaxSharedBytesPerBlock);
  EXPECT_THAT(CheckLaunch(facts, request), HasSubstr("1000 static"));
  request = Request(1, 1);
  request.mutable_launch()->mutable_cluster()->set_x(2);
  request.mutable_launch()->mutable_cluster()->set_y(1);
  request.mutable_launch()->mutable_cluster()->set_z(1);
  EXPECT_THAT(CheckLaunch(facts, request), HasSubstr("cluster"));
}

TEST(FaultTextTest, PlacesAddressesBesideMemory) {
  v1::MemoryMapping mapping;
  mapping.set_address(0x10000);
  mapping.set_bytes(0x1000);
  FaultRecord record = {};
  record.kind = FaultKind::kMemory;
  record.is_write = 1;
  record.has_block = 1;
  record.block[0] = 3;
  record.address = 0x11004;
  EXPECT_EQ(DescribeFault(record, {mapping}),
            "out-of-bounds write at 0x11004, 4 bytes behind the memory at "
            "0x10000 + 4096, block (3,0,0), thread not known (its threads run "
            "as one loop)");
  record.has_thread = 1;
  record.thread[1] = 2;
  record.address = 0x10010;
  EXPECT_EQ(DescribeFault(record, {mapping}),
            "out-of-bounds write at 0x10010 inside read-only memory at "
            "0x10000, block (3,0,0), thread (0,2,0)");
  record.address = 0;
  EXPECT_THAT(DescribeFault(record, {mapping}), HasSubstr("null or malformed"));
  record.address = uint64_t{1} << 46;
  EXPECT_THAT(DescribeFault(record, {mapping}),
              StartsWith("out-of-bounds write at 0x400000000000, block"));
}

TEST(SymbolsTest, NamesAreUniqueAndNoneReachesTheSystem) {
  std::vector<std::string> names;
  for (const RuntimeSymbol& symbol : RuntimeSymbols()) {
    EXPECT_NE(symbol.address, nullptr) << symbol.name;
    names.push_back(symbol.name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const char* name : {"system", "open", "malloc", "mmap", "dlsym"}) {
    EXPECT_FALSE(std::binary_search(names.begin(), names.end(), name)) << name;
  }
}

}  // namespace
}  // namespace reprise::cpu
