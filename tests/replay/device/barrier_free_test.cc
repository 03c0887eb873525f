#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>

#include "tests/replay/device/device_test_util.h"

namespace reprise {
namespace {

using testing::ElementsAre;

class BarrierFreeTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = machine_.Load("basic", {.kernels = {"Saxpy", "Coordinates"}});
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

}  // namespace
}  // namespace reprise
