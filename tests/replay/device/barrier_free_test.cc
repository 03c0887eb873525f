#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>

#include "tests/replay/device/device_test_util.h"

namespace reprise {
namespace {

using testing::ElementsAre;

class BarrierFreeTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = machine_.Load("basic");
    ASSERT_TRUE(status.ok()) << status;
  }
  TestMachine machine_;
};

TEST_F(BarrierFreeTest, SaxpyOverAPartlyFilledLastBlock) {
  constexpr int kCount = 1000;
  std::vector<float> x(kCount), y(kCount);
  std::iota(x.begin(), x.end(), 0.0f);
  std::iota(y.begin(), y.end(), 100.0f);
  const uint64_t dx = machine_.Upload(x);
  const uint64_t dy = machine_.Upload(y);
  *machine_.host<float>(dy + kCount * 4) = -1;  // behind the array
  machine_.Run("Saxpy", MakeLaunch({4}, {256}),
               Arguments().Add(2.0f).Add(dx).Add(dy).Add(kCount));
  const auto result = machine_.Download<float>(dy, kCount + 1);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(result[i], 2 * x[i] + y[i]) << i;
  EXPECT_EQ(result[kCount], -1);
}

TEST_F(BarrierFreeTest, EveryThreadSeesItsCoordinates) {
  const v1::LaunchConfig launch = MakeLaunch({3, 2, 4}, {5, 3, 2});
  const uint64_t out = machine_.Allocate(24 * 30 * 6 * 4);
  machine_.Run("Coordinates", launch, Arguments().Add(out));
  const uint32_t* got = machine_.host<uint32_t>(out);
  for (uint32_t bz = 0; bz < 4; ++bz)
    for (uint32_t by = 0; by < 2; ++by)
      for (uint32_t bx = 0; bx < 3; ++bx)
        for (uint32_t z = 0; z < 2; ++z)
          for (uint32_t y = 0; y < 3; ++y)
            for (uint32_t x = 0; x < 5; ++x, got += 6) {
              ASSERT_THAT(std::vector<uint32_t>(got, got + 6),
                          ElementsAre(x, y, z, bx, by, bz));
            }
}

TEST_F(BarrierFreeTest, GuardsOnBothSidesInTwoDimensions) {
  constexpr size_t kWidth = 37;
  constexpr size_t kHeight = 21;
  std::vector<float> in(kWidth * kHeight);
  std::iota(in.begin(), in.end(), 0.0f);
  const uint64_t din = machine_.Upload(in);
  const uint64_t out =
      machine_.Upload(std::vector<float>(kWidth * kHeight, -1));
  machine_.Run("Interior", MakeLaunch({5, 3}, {8, 8}),
               Arguments().Add(din).Add(out).Add(kWidth).Add(kHeight));
  for (size_t y = 0; y < kHeight; ++y) {
    for (size_t x = 0; x < kWidth; ++x) {
      const bool inside = x > 0 && y > 0 && x < kWidth - 1 && y < kHeight - 1;
      EXPECT_EQ(machine_.host<float>(out)[y * kWidth + x],
                inside ? 4 * in[y * kWidth + x] : -1)
          << x << " " << y;
    }
  }
}

TEST_F(BarrierFreeTest, GuardsThatExcludeWholeBlocksOrAllThreads) {
  const auto run = [&](int low, int high, uint32_t limit) {
    const uint64_t out = machine_.Upload(std::vector<int>(256, -999));
    machine_.Run("GuardForms", MakeLaunch({4}, {64}),
                 Arguments().Add(out).Add(low).Add(high).Add(limit));
    for (int k = 0; k < 256; ++k) {
      const int i = k - 100;
      const bool live =
          i > low && i <= high && static_cast<uint32_t>(k % 64) < limit;
      EXPECT_EQ(machine_.host<int>(out)[k], live ? i : -999)
          << k << " of " << low << " " << high << " " << limit;
    }
  };
  run(-101, 1000, 64);
  run(-20, 17, 64);
  run(-20, 17, 5);
  run(10, 9, 64);
  run(INT32_MAX, INT32_MIN, 64);
  run(INT32_MIN, INT32_MAX, UINT32_MAX);
  run(-101, 300, 0);
}

TEST_F(BarrierFreeTest, GridStrideLoopCoversEverything) {
  const uint64_t out = machine_.Allocate(10000 * 4);
  machine_.Run("GridStride", MakeLaunch({3}, {64}),
               Arguments().Add(out).Add(10000));
  for (int i = 0; i < 10000; ++i) {
    ASSERT_EQ(machine_.host<int>(out)[i], 3 * i);
  }
}

struct Mixed {
  char c;
  double d;
  int16_t s[3];
  uint64_t p;
};

TEST_F(BarrierFreeTest, ArgumentsOfAllSizes) {
  const uint64_t pointee = machine_.Upload(std::vector<int>{-12});
  const uint64_t out = machine_.Allocate(8 * 8);
  struct alignas(16) Float4 {
    float x, y, z, w;
  };
  machine_.Run("Arguments", MakeLaunch({1}, {1}),
               Arguments()
                   .Add(true)
                   .Add(Mixed{'x', 2.5, {1, 2, -3}, pointee})
                   .Add(int16_t{-7})
                   .Add(int64_t{1} << 40)
                   .Add(Float4{1, 2, 3, 4})
                   .Add(out));
  EXPECT_THAT(
      machine_.Download<double>(out, 8),
      ElementsAre(1, 'x', 2.5, -3, -12, -7, double(int64_t{1} << 40), 4321));
}

TEST_F(BarrierFreeTest, EveryThreadHasItsOwnCopyOfAStruct) {
  const uint64_t out = machine_.Allocate(6 * 4);
  machine_.Run("OwnCopy", MakeLaunch({1}, {6}),
               Arguments().Add(Mixed{1, 0, {10, 20, 30}, 0}).Add(out));
  EXPECT_THAT(machine_.Download<int>(out, 6),
              ElementsAre(62, 63, 64, 65, 66, 67));
}

TEST_F(BarrierFreeTest, GlobalsKeepValuesAndPointIntoEachOther) {
  const uint64_t out = machine_.Allocate(4 * 4);
  machine_.Run("Globals", MakeLaunch({1}, {4}), Arguments().Add(out));
  EXPECT_THAT(machine_.Download<float>(out, 4), ElementsAre(11, 12, 13, 14));
  EXPECT_EQ(*machine_.host<int>(machine_.symbol("counter")), 12);
  EXPECT_EQ(machine_.host<int>(machine_.symbol("zeros"))[3], 9);
  EXPECT_EQ(*machine_.host<uint64_t>(machine_.symbol("into_table")),
            machine_.symbol("table") + 8);
  *machine_.host<int>(machine_.symbol("scale")) = 100;
  machine_.Run("Globals", MakeLaunch({1}, {4}), Arguments().Add(out));
  EXPECT_THAT(machine_.Download<float>(out, 4),
              ElementsAre(104, 105, 106, 107));
  EXPECT_EQ(*machine_.host<int>(machine_.symbol("counter")), 112);
}

TEST_F(BarrierFreeTest, CallsOutOfLineRecursiveAndIndirect) {
  const uint64_t out = machine_.Allocate(8 * 4);
  machine_.Run("Calls", MakeLaunch({2}, {4}), Arguments().Add(out));
  for (int b = 0; b < 2; ++b) {
    for (int t = 0; t < 4; ++t) {
      const int picked = t % 2 ? 3 * t : 4 * t;
      EXPECT_EQ(machine_.host<int>(out)[b * 4 + t],
                6 + t + 1000 * b + 100000 * picked);
    }
  }
}

TEST_F(BarrierFreeTest, LocalArraysArePrivate) {
  constexpr int kCount = 300;
  std::vector<int> in(kCount);
  for (int i = 0; i < kCount; ++i) in[i] = i % 23;
  const uint64_t din = machine_.Upload(in);
  const uint64_t out = machine_.Allocate(kCount * 4);
  machine_.Run("LocalArray", MakeLaunch({2}, {160}),
               Arguments().Add(din).Add(out).Add(kCount));
  for (int i = 0; i < kCount; ++i) {
    int sum = 0;
    for (int k = 0; k < 8; ++k) sum += in[i] * ((in[i] + k) & 7) * (k + 1);
    EXPECT_EQ(machine_.host<int>(out)[i], sum) << i;
  }
}

TEST_F(BarrierFreeTest, ExitEndsTheThreadOnly) {
  const uint64_t out = machine_.Upload(std::vector<int>(6));
  machine_.Run("EarlyExit", MakeLaunch({1}, {6}), Arguments().Add(out));
  EXPECT_THAT(machine_.Download<int>(out, 6), ElementsAre(1, 0, 1, 0, 1, 0));
}

TEST_F(BarrierFreeTest, ConversionsSaturateAsOnTheGpu) {
  const std::vector<double> in = {1.9,  -1.9,  3e10,        -3e10,
                                  1e30, -1e30, std::nan("")};
  const uint64_t din = machine_.Upload(in);
  const uint64_t ints = machine_.Allocate(7 * 4);
  const uint64_t unsigneds = machine_.Allocate(7 * 4);
  const uint64_t longs = machine_.Allocate(7 * 8);
  machine_.Run("Conversions", MakeLaunch({1}, {7}),
               Arguments().Add(din).Add(ints).Add(unsigneds).Add(longs));
  constexpr int64_t kLow = INT64_MIN;
  EXPECT_THAT(machine_.Download<int>(ints, 6),
              ElementsAre(1, -1, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN));
  EXPECT_THAT(machine_.Download<uint32_t>(unsigneds, 7),
              ElementsAre(1, 0, UINT32_MAX, 0, UINT32_MAX, 0, 0));
  EXPECT_THAT(
      machine_.Download<int64_t>(longs, 7),
      ElementsAre(1, -1, 30000000000, -30000000000, INT64_MAX, kLow, kLow));
}

// The block compiled in, and refused otherwise.
TEST_F(BarrierFreeTest, CodeBuiltForOneLaunchRefusesOthers) {
  LoweringOptions options;
  options.launch = MakeLaunch({4}, {256});
  ASSERT_TRUE(machine_.Load("basic", options).ok());
  const uint64_t x = machine_.Upload(std::vector<float>(1024, 1));
  const uint64_t y = machine_.Upload(std::vector<float>(1024, 1));
  const Arguments arguments = Arguments().Add(2.0f).Add(x).Add(y).Add(1000);
  machine_.Run("Saxpy", MakeLaunch({4}, {256}), arguments);
  EXPECT_EQ(machine_.host<float>(y)[999], 3);
  EXPECT_EQ(machine_.host<float>(y)[1000], 1);
  for (const auto& launch : {MakeLaunch({4}, {128}), MakeLaunch({8}, {256})}) {
    const auto report = machine_.Launch("Saxpy", launch, arguments);
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->kind, v1::OUTCOME_KIND_INVALID_LAUNCH);
    EXPECT_THAT(report->diagnostics, testing::HasSubstr("built for"));
  }
}

TEST_F(BarrierFreeTest, LaunchesThatCudaRefuses) {
  const uint64_t out = machine_.Allocate(1024);
  const auto kind = [&](const v1::LaunchConfig& launch,
                        const Arguments& arguments) {
    const auto report = machine_.Launch("Coordinates", launch, arguments);
    return report.ok() ? report->kind : v1::OUTCOME_KIND_INFRASTRUCTURE;
  };
  const Arguments arguments = Arguments().Add(out);
  constexpr auto kInvalid = v1::OUTCOME_KIND_INVALID_LAUNCH;
  EXPECT_EQ(kind(MakeLaunch({1}, {2000}), arguments), kInvalid);
  EXPECT_EQ(kind(MakeLaunch({1}, {32, 32, 2}), arguments), kInvalid);
  EXPECT_EQ(kind(MakeLaunch({1}, {1, 1, 65}), arguments), kInvalid);
  EXPECT_EQ(kind(MakeLaunch({0}, {1}), arguments), kInvalid);
  EXPECT_EQ(kind(MakeLaunch({1, 70000}, {1}), arguments), kInvalid);
  EXPECT_EQ(kind(MakeLaunch({1u << 30}, {2}), arguments), kInvalid);
  EXPECT_EQ(kind(MakeLaunch({1}, {1}, 300000), arguments), kInvalid);
  EXPECT_EQ(kind(MakeLaunch({1}, {1}), Arguments()), kInvalid);
  EXPECT_EQ(kind(MakeLaunch({1}, {1}), arguments), v1::OUTCOME_KIND_OK);
}

}  // namespace
}  // namespace reprise
