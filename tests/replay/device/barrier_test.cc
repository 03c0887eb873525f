#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "tests/replay/device/device_test_util.h"

namespace reprise {
namespace {

using testing::Each;
using testing::ElementsAreArray;

class BarrierTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = machine_.Load("barriers");
    ASSERT_TRUE(status.ok()) << status;
  }
  template <typename T>
  std::vector<T> Zeros(size_t count) {
    return std::vector<T>(count);
  }
  TestMachine machine_;
};

TEST_F(BarrierTest, ReducesThroughSharedMemory) {
  constexpr int kBlocks = 37;
  std::vector<float> in(kBlocks * 256);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 17);
  const uint64_t din = machine_.Upload(in);
  const uint64_t out = machine_.Allocate(kBlocks * 4);
  machine_.Run("Reduce", MakeLaunch({kBlocks}, {256}),
               Arguments().Add(din).Add(out));
  const auto sums = machine_.Download<float>(out, kBlocks);
  for (int b = 0; b < kBlocks; ++b) {
    EXPECT_EQ(sums[b], std::accumulate(&in[b * 256], &in[b * 256] + 256, 0.0f))
        << b;
  }
}

TEST_F(BarrierTest, StaticAndDynamicSharedMemoryAreApart) {
  const uint64_t out = machine_.Allocate(64 * 8);
  machine_.Run("SharedLayout", MakeLaunch({1}, {64}, 64 * 8),
               Arguments().Add(out));
  const auto got = machine_.Download<double>(out, 64);
  for (int t = 0; t < 64; ++t)
    EXPECT_EQ(got[t], 101 * (63 - t) + ('a' + t % 3)) << t;
}

TEST_F(BarrierTest, BarriersCount) {
  std::vector<int> in(96);
  in[5] = in[70] = in[95] = 1;
  const uint64_t din = machine_.Upload(in);
  const uint64_t count = machine_.Allocate(96 * 4);
  const uint64_t all = machine_.Allocate(96 * 4);
  const uint64_t any = machine_.Allocate(96 * 4);
  const Arguments arguments = Arguments().Add(din).Add(count).Add(all).Add(any);
  machine_.Run("BarrierCounts", MakeLaunch({1}, {96}), arguments);
  EXPECT_THAT(machine_.Download<int>(count, 96), Each(3));
  EXPECT_THAT(machine_.Download<int>(all, 96), Each(0));
  EXPECT_THAT(machine_.Download<int>(any, 96), Each(1));
  std::fill_n(machine_.host<int>(din), 96, 2);
  machine_.Run("BarrierCounts", MakeLaunch({1}, {96}), arguments);
  EXPECT_THAT(machine_.Download<int>(count, 96), Each(96));
  EXPECT_THAT(machine_.Download<int>(all, 96), Each(1));
}

TEST_F(BarrierTest, EndedThreadsCountAsArrived) {
  const uint64_t out = machine_.Upload(Zeros<int>(64));
  machine_.Run("SomeLeaveEarly", MakeLaunch({1}, {64}), Arguments().Add(out));
  std::vector<int> expected(64);
  std::fill_n(expected.begin(), 40, 77);
  EXPECT_THAT(machine_.Download<int>(out, 64), ElementsAreArray(expected));
}

TEST_F(BarrierTest, ShufflesInAllModes) {
  std::vector<int> in(64);
  std::iota(in.begin(), in.end(), 1000);
  const uint64_t din = machine_.Upload(in);
  uint64_t out[5];
  for (uint64_t& address : out) address = machine_.Allocate(64 * 4);
  machine_.Run(
      "Shuffles", MakeLaunch({1}, {64}),
      Arguments().Add(din).Add(out[0]).Add(out[1]).Add(out[2]).Add(out[3]).Add(
          out[4]));
  for (int t = 0; t < 64; ++t) {
    const int warp = t / 32 * 32;
    const int lane = t % 32;
    EXPECT_EQ(machine_.host<int>(out[0])[t], 1000 + warp + 5);
    EXPECT_EQ(machine_.host<int>(out[1])[t], lane < 3 ? in[t] : in[t - 3]);
    EXPECT_EQ(machine_.host<int>(out[2])[t],
              lane % 16 + 4 < 16 ? in[t + 4] : in[t]);
    EXPECT_EQ(machine_.host<int>(out[3])[t], in[warp + (lane ^ 9)]);
    EXPECT_EQ(machine_.host<float>(out[4])[t],
              in[t / 8 * 8 + (t + 1) % 8] / 2.0f);
  }
}

TEST_F(BarrierTest, ShufflesOfEightBytes) {
  const uint64_t out = machine_.Allocate(32 * 8);
  const uint64_t reals = machine_.Allocate(32 * 8);
  machine_.Run("LongShuffles", MakeLaunch({1}, {32}),
               Arguments().Add(out).Add(reals));
  for (int t = 0; t < 32; ++t) {
    EXPECT_EQ(machine_.host<int64_t>(out)[t], (int64_t{1} << 40) + 31 - t);
    EXPECT_EQ(machine_.host<double>(reals)[t], std::min(t + 1, 31) * 0.25);
  }
}

TEST_F(BarrierTest, VotesWithAShortLastWarp) {
  std::vector<int> in(40);
  in[1] = in[9] = 1;
  for (int t = 32; t < 40; ++t) in[t] = 1;
  const uint64_t din = machine_.Upload(in);
  const uint64_t out = machine_.Allocate(40 * 16);
  machine_.Run("Votes", MakeLaunch({1}, {40}), Arguments().Add(din).Add(out));
  for (int t = 0; t < 40; ++t) {
    const uint32_t* got = machine_.host<uint32_t>(out) + 4 * t;
    EXPECT_EQ(got[0], t >= 32) << t;
    EXPECT_EQ(got[1], 1u) << t;
    EXPECT_EQ(got[2], t < 32 ? 0x202u : 0xffu) << t;
    EXPECT_EQ(got[3], t >= 32) << t;
  }
}

TEST_F(BarrierTest, MatchesEqualValues) {
  std::vector<int> in(32);
  for (int t = 0; t < 32; ++t) in[t] = t % 4;
  const uint64_t din = machine_.Upload(in);
  const uint64_t any = machine_.Allocate(32 * 4);
  const uint64_t all = machine_.Allocate(32 * 4);
  const uint64_t predicate = machine_.Allocate(32 * 4);
  machine_.Run("Matches", MakeLaunch({1}, {32}),
               Arguments().Add(din).Add(any).Add(all).Add(predicate));
  for (int t = 0; t < 32; ++t) {
    EXPECT_EQ(machine_.host<uint32_t>(any)[t], 0x11111111u << (t % 4));
    EXPECT_EQ(machine_.host<uint32_t>(all)[t], 0xffffffffu);
    EXPECT_EQ(machine_.host<int>(predicate)[t], 1);
  }
}

TEST_F(BarrierTest, WarpReductions) {
  std::vector<int> in(32);
  for (int t = 0; t < 32; ++t) in[t] = t - 7;
  const uint64_t din = machine_.Upload(in);
  const uint64_t out = machine_.Allocate(32 * 24);
  machine_.Run("Reductions", MakeLaunch({1}, {32}),
               Arguments().Add(din).Add(out));
  uint32_t conjunction = ~0u, disjunction = 0, exclusive = 0;
  for (const int v : in) {
    conjunction &= v;
    disjunction |= v;
    exclusive ^= v;
  }
  for (int t = 0; t < 32; ++t) {
    const int* got = machine_.host<int>(out) + 6 * t;
    EXPECT_EQ(got[0], std::accumulate(in.begin(), in.end(), 0));
    EXPECT_EQ(got[1], -7);
    EXPECT_EQ(got[2], -1);  // the largest as unsigned
    EXPECT_EQ(static_cast<uint32_t>(got[3]), conjunction);
    EXPECT_EQ(static_cast<uint32_t>(got[4]), disjunction);
    EXPECT_EQ(static_cast<uint32_t>(got[5]), exclusive);
  }
}

TEST_F(BarrierTest, PartsOfAWarpShuffleAmongThemselves) {
  const uint64_t out = machine_.Allocate(64 * 4);
  machine_.Run("HalfWarps", MakeLaunch({1}, {64}), Arguments().Add(out));
  for (int t = 0; t < 64; ++t) {
    EXPECT_EQ(machine_.host<int>(out)[t], t / 32 * 32 + (t % 32 < 16 ? 3 : 19));
  }
}

TEST_F(BarrierTest, ActiveMaskIsTheBranch) {
  const uint64_t out = machine_.Allocate(32 * 4);
  machine_.Run("ActiveMasks", MakeLaunch({1}, {32}), Arguments().Add(out));
  uint32_t thirds = 0;
  for (int t = 0; t < 32; t += 3) thirds |= 1u << t;
  // The others see ~(~thirds).
  EXPECT_THAT(machine_.Download<uint32_t>(out, 32), Each(thirds));
}

TEST_F(BarrierTest, AggregatesAtomicsByActiveMask) {
  std::vector<int> in(128);
  for (int t = 0; t < 128; ++t) in[t] = t % 5 == 0;
  const uint64_t din = machine_.Upload(in);
  const uint64_t counter = machine_.Upload(Zeros<int>(1));
  machine_.Run("Aggregated", MakeLaunch({3}, {128}),
               Arguments().Add(counter).Add(din));
  EXPECT_EQ(*machine_.host<int>(counter),
            3 * std::count(in.begin(), in.end(), 1));
}

TEST_F(BarrierTest, NamedBarriersJoinPartsOfABlock) {
  const uint64_t out = machine_.Allocate(64 * 4);
  machine_.Run("NamedBarriers", MakeLaunch({1}, {64}), Arguments().Add(out));
  for (int t = 0; t < 64; ++t) {
    EXPECT_EQ(machine_.host<int>(out)[t], t / 32 * 32 + 31 - t % 32);
  }
}

TEST_F(BarrierTest, BarriersAndSharedMemoryInFunctionsOutOfLine) {
  const uint64_t out = machine_.Allocate(128 * 4);
  machine_.Run("BarrierOutOfLine", MakeLaunch({2}, {128}),
               Arguments().Add(out));
  for (int t = 0; t < 128; ++t) {
    const int a = 127 - t;
    const int b = t + 1;
    EXPECT_EQ(machine_.host<int>(out)[t], a + 1000000 * b + 1000) << t;
  }
}

TEST_F(BarrierTest, TiledMatrixProduct) {
  constexpr int kSize = 24;
  std::vector<float> a(kSize * kSize), b(kSize * kSize);
  for (int i = 0; i < kSize * kSize; ++i) {
    a[i] = static_cast<float>(i % 7);
    b[i] = static_cast<float>(i % 5 - 2);
  }
  const uint64_t da = machine_.Upload(a);
  const uint64_t db = machine_.Upload(b);
  const uint64_t dc = machine_.Allocate(kSize * kSize * 4);
  machine_.Run("TiledProduct", MakeLaunch({3, 3}, {8, 8}),
               Arguments().Add(da).Add(db).Add(dc).Add(kSize));
  for (int row = 0; row < kSize; ++row) {
    for (int column = 0; column < kSize; ++column) {
      float sum = 0;
      for (int k = 0; k < kSize; ++k)
        sum += a[row * kSize + k] * b[k * kSize + column];
      EXPECT_EQ(machine_.host<float>(dc)[row * kSize + column], sum);
    }
  }
}

TEST_F(BarrierTest, LaneRegistersFollowTheLinearThread) {
  const uint64_t out = machine_.Allocate(80 * 12);
  machine_.Run("LaneRegisters", MakeLaunch({1}, {10, 8}), Arguments().Add(out));
  for (uint32_t t = 0; t < 80; ++t) {
    const uint32_t* got = machine_.host<uint32_t>(out) + 3 * t;
    EXPECT_EQ(got[0], t % 32);
    EXPECT_EQ(got[1], (1u << (t % 32)) - 1);
    EXPECT_EQ(got[2], t / 32);
  }
}

}  // namespace
}  // namespace reprise
