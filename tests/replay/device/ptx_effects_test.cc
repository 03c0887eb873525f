// Inline PTX that is more than a function of registers, and what CUDA's
// cooperative groups make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/replay/device/device_test_util.h"

namespace reprise {
namespace {

using testing::Each;
using testing::HasSubstr;

class PtxEffectsTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = machine_.Load("ptx_effects");
    ASSERT_TRUE(status.ok()) << status;
  }
  std::vector<int> Numbers(int count, int modulus) {
    std::vector<int> numbers(count);
    for (int i = 0; i < count; ++i) numbers[i] = i * i % modulus + i % 5;
    return numbers;
  }
  TestMachine machine_;
};

TEST_F(PtxEffectsTest, GuardedAccessesHappenWhereTheGuardHolds) {
  std::vector<int> in = Numbers(64, 11);
  in[1] = -1;
  const uint64_t din = machine_.Upload(in);
  const uint64_t out = machine_.Upload(std::vector<int>(192, -1));
  machine_.Run("Guarded", MakeLaunch({1}, {64}), Arguments().Add(din).Add(out));
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(machine_.host<int>(out)[i], i % 3 != 0 ? in[i] : -5) << i;
    EXPECT_EQ(machine_.host<int>(out)[64 + i], i % 3 != 0 ? -1 : i * 7) << i;
    EXPECT_EQ(machine_.host<int>(out)[128 + i], i % 3 != 0 ? in[i] >> 31 : 777);
  }
}

TEST_F(PtxEffectsTest, WarpOperations) {
  const uint64_t out = machine_.Allocate(32 * 48);
  machine_.Run("Warps", MakeLaunch({1}, {32}), Arguments().Add(out));
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t* got = machine_.host<uint32_t>(out) + 12 * i;
    EXPECT_EQ(got[0], i < 3 ? i : i - 3);
    EXPECT_EQ(got[1], i + 5 < 32 ? i + 5 : i);
    EXPECT_EQ(got[2], i + 5 < 32);
    EXPECT_EQ(got[3], 0x7fu);
    EXPECT_EQ(got[4], 1u);
    EXPECT_EQ(got[5], 1u);
    EXPECT_EQ(got[6], 0x11111111u << (i % 4));
    EXPECT_EQ(got[7], ~0u);
    EXPECT_EQ(got[8], 1u);
    EXPECT_EQ(got[9], static_cast<uint32_t>(-31));
    EXPECT_EQ(got[10], 93u);
    EXPECT_EQ(got[11], i == 0);
  }
}

TEST_F(PtxEffectsTest, BarriersThatReduce) {
  std::vector<int> in(64, 1);
  in[7] = in[40] = 0;
  const uint64_t din = machine_.Upload(in);
  const uint64_t out = machine_.Allocate(256);
  machine_.Run("BlockBarriers", MakeLaunch({1}, {64}),
               Arguments().Add(din).Add(out));
  EXPECT_THAT(machine_.Download<int>(out, 64), Each(124));
}

TEST_F(PtxEffectsTest, AtomicsOfPairsAndHalves) {
  const uint64_t f32 = machine_.Upload(std::vector<float>{1, 2});
  const uint64_t f16 = machine_.Upload(std::vector<uint16_t>(4));
  const uint64_t bf16 = machine_.Upload(std::vector<uint16_t>(4));
  machine_.Run("Atomics", MakeLaunch({4}, {32}),
               Arguments().Add(f32).Add(f16).Add(bf16));
  EXPECT_EQ(machine_.host<float>(f32)[0], 65);
  EXPECT_EQ(machine_.host<float>(f32)[1], 258);
  EXPECT_THAT(machine_.Download<uint16_t>(f16, 4),
              testing::ElementsAre(0x5800, 0, 0x5400, 0x5400));
  EXPECT_THAT(machine_.Download<uint16_t>(bf16, 4),
              testing::ElementsAre(0x4300, 0, 0x4280, 0x4280));
}

TEST_F(PtxEffectsTest, AsynchronousCopiesFillWithZeros) {
  std::vector<int> in(128);
  for (int i = 0; i < 128; ++i) in[i] = i + 1;
  const uint64_t din = machine_.Upload(in);
  const uint64_t out = machine_.Allocate(256);
  machine_.Run("CopiesAsync", MakeLaunch({1}, {32}),
               Arguments().Add(din).Add(out));
  for (int i = 0; i < 32; ++i) {
    const int other = 31 - i;
    EXPECT_EQ(machine_.host<int>(out)[2 * i], in[4 * other + 3]);
    EXPECT_EQ(machine_.host<int>(out)[2 * i + 1], in[4 * other] * 10);
  }
}

TEST_F(PtxEffectsTest, WarpsTakeTurnsByBarriersInSharedMemory) {
  const std::vector<int> in = Numbers(9 * 32, 97);
  const uint64_t din = machine_.Upload(in);
  const uint64_t out = machine_.Allocate(128);
  machine_.Run("PassesOn", MakeLaunch({1}, {64}),
               Arguments().Add(din).Add(out).Add(9));
  for (int lane = 0; lane < 32; ++lane) {
    int sum = 0;
    for (int round = 0; round < 9; ++round)
      sum = sum * 3 + in[round * 32 + 31 - lane];
    EXPECT_EQ(machine_.host<int>(out)[lane], sum) << lane;
  }
}

v1::LaunchConfig Cooperative(uint32_t blocks, uint32_t threads) {
  v1::LaunchConfig launch = MakeLaunch({blocks}, {threads});
  launch.set_cooperative(true);
  return launch;
}

TEST_F(PtxEffectsTest, GridsMeetInCooperativeLaunches) {
  // Blocks of other sizes too: their stacks are made anew.
  for (const uint32_t blocks : {1u, 7u, 64u}) {
    for (const uint32_t threads : {32u, 96u}) {
      std::vector<int> cells = Numbers(blocks * threads, 31);
      const uint64_t address = machine_.Upload(cells);
      machine_.Run("MeetsAcrossBlocks", Cooperative(blocks, threads),
                   Arguments().Add(address).Add(5));
      for (int round = 0; round < 5; ++round) {
        std::rotate(cells.begin(), cells.begin() + threads, cells.end());
        for (int& cell : cells) ++cell;
      }
      EXPECT_EQ(machine_.Download<int>(address, cells.size()), cells)
          << blocks << " blocks of " << threads;
    }
  }
}

TEST_F(PtxEffectsTest, BlocksWaitForLaterOnesInCooperativeLaunches) {
  const uint64_t flags = machine_.Upload(std::vector<int>(40));
  const uint64_t out = machine_.Allocate(160);
  machine_.Run("WaitsForTheBlockBefore", Cooperative(40, 64),
               Arguments().Add(flags).Add(out));
  for (int block = 0; block < 40; ++block)
    EXPECT_EQ(machine_.host<int>(out)[block], 40 - block);
}

TEST_F(PtxEffectsTest, InstrumentedCooperativeLaunchesNoteAccesses) {
  LoweringOptions options;
  options.instrument = true;
  ASSERT_TRUE(machine_.Load("ptx_effects", options).ok());
  const uint64_t cells = machine_.Upload(std::vector<int>(8 * 32, 3));
  const LaunchReport report = machine_.Run(
      "MeetsAcrossBlocks", Cooperative(8, 32), Arguments().Add(cells).Add(2));
  EXPECT_THAT(machine_.Download<int>(cells, 8 * 32), Each(5));
  ASSERT_EQ(report.accesses.writes_size(), 1);
  EXPECT_EQ(report.accesses.writes(0).address(), cells);
  EXPECT_EQ(report.accesses.writes(0).bytes(), 8u * 32 * 4);
}

TEST_F(PtxEffectsTest, GridsThatMeetWithoutCooperationTrap) {
  const uint64_t out = machine_.Allocate(4);
  const auto report = machine_.Launch("NeedsCooperation", MakeLaunch({2}, {32}),
                                      Arguments().Add(out));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->kind, v1::OUTCOME_KIND_DEVICE_FAULT);
  EXPECT_THAT(report->diagnostics, HasSubstr("trap"));
}

TEST_F(PtxEffectsTest, CooperativeLaunchesThatDoNotFitAreRefused) {
  const uint64_t cells = machine_.Allocate(4);
  const auto report =
      machine_.Launch("MeetsAcrossBlocks", Cooperative(25, 1024),
                      Arguments().Add(cells).Add(1));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->kind, v1::OUTCOME_KIND_INVALID_LAUNCH);
  EXPECT_THAT(report->diagnostics,
              HasSubstr("25600 threads, the cpu device keeps at most 24576"));
}

int Reduced(const std::vector<int>& in, int first, int last, int kind) {
  int result = 0;
  for (int i = first; i < last; ++i)
    result = kind == 0 ? result + in[i] : std::max(result, in[i]);
  return result;
}

TEST_F(PtxEffectsTest, GroupsOfCooperativeGroups) {
  const std::vector<int> in = Numbers(128, 29);
  const uint64_t din = machine_.Upload(in);
  const uint64_t out = machine_.Allocate(128 * 32);
  machine_.Run("AllGroups", MakeLaunch({2}, {128}),
               Arguments().Add(din).Add(out));
  for (int i = 0; i < 128; ++i) {
    const int* got = machine_.host<int>(out) + 8 * i;
    const int tile = i / 16 * 16, warp = i / 32 * 32, wide = i / 64 * 64;
    EXPECT_EQ(got[0], Reduced(in, tile, tile + 16, 0)) << i;
    EXPECT_EQ(got[1], Reduced(in, tile, i + 1, 0)) << i;
    EXPECT_EQ(got[2], Reduced(in, wide, wide + 64, 1)) << i;
    EXPECT_EQ(got[3], Reduced(in, wide, i, 0)) << i;
    int same = 0, rank = 0, parity = 0, active = 0, first = -1;
    for (int k = warp; k < warp + 32; ++k) {
      same += in[k] % 3 == in[i] % 3;
      rank += in[k] % 3 == in[i] % 3 && k < i;
      if (in[k] % 2 == in[i] % 2) parity ^= in[k];
      if (in[k] % 3 != 1) continue;
      ++active;
      if (first < 0) first = k;
    }
    EXPECT_EQ(got[4], same * 100 + rank) << i;
    EXPECT_EQ(got[5], parity) << i;
    EXPECT_EQ(got[6], in[i] % 3 == 1 ? active : 0) << i;
    EXPECT_EQ(got[7], i == first ? active : 0) << i;
  }
}

}  // namespace
}  // namespace reprise
