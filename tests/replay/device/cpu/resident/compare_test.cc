#include "replay/device/cpu/resident/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace reprise::cpu {
namespace {

template <typename T>
CompareResult Compare(const std::vector<T>& got, const std::vector<T>& expected,
                      v1::ElementType type, const v1::Tolerance& tolerance = {},
                      const IntervalSet* writable = nullptr) {
  CompareInput input;
  input.got = reinterpret_cast<const char*>(got.data());
  input.expected = reinterpret_cast<const char*>(expected.data());
  input.bytes = got.size() * sizeof(T);
  input.type = type;
  input.tolerance = tolerance;
  input.writable = writable;
  return CompareRange(input);
}

v1::Tolerance Within(double absolute, double relative) {
  v1::Tolerance tolerance;
  tolerance.set_absolute(absolute);
  tolerance.set_relative(relative);
  return tolerance;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(CompareTest, EqualBitsPassWithoutErrors) {
  const CompareResult result = Compare<float>(
      {1, kNan, kInfinity}, {1, kNan, kInfinity}, v1::ELEMENT_TYPE_F32);
  EXPECT_TRUE(result.passes);
  EXPECT_EQ(result.errors.compared_elements(), 3u);
  EXPECT_EQ(result.errors.max_absolute(), 0);
}

TEST(CompareTest, WithoutToleranceOneBitIsWrongAndNamed) {
  const float next = std::nextafter(2.0f, 3.0f);
  const CompareResult result =
      Compare<float>({1, next, 3}, {1, 2, 3}, v1::ELEMENT_TYPE_F32);
  EXPECT_FALSE(result.passes);
  EXPECT_EQ(result.errors.wrong_elements(), 1u);
  EXPECT_EQ(result.errors.first_wrong_element(), 1u);
  EXPECT_EQ(result.errors.got(), "2.00000024");
  EXPECT_EQ(result.errors.expected(), "2");
}

TEST(CompareTest, SignOfZeroCountsOnlyWithoutTolerance) {
  EXPECT_FALSE(Compare<float>({-0.0f}, {0.0f}, v1::ELEMENT_TYPE_F32).passes);
  EXPECT_TRUE(
      Compare<float>({-0.0f}, {0.0f}, v1::ELEMENT_TYPE_F32, Within(1e-30, 0))
          .passes);
}

TEST(CompareTest, AbsoluteAndRelativeBoundsAddUp) {
  EXPECT_TRUE(WithinTolerance(100.11, 100, Within(0.01, 0.0011)));
  EXPECT_FALSE(WithinTolerance(100.13, 100, Within(0.01, 0.0011)));
  EXPECT_TRUE(
      Compare<double>({1 + 1e-9}, {1}, v1::ELEMENT_TYPE_F64, Within(0, 1e-8))
          .passes);
  EXPECT_FALSE(
      Compare<double>({1 + 1e-7}, {1}, v1::ELEMENT_TYPE_F64, Within(0, 1e-8))
          .passes);
}

TEST(CompareTest, NanEqualsOnlyNanAndInfinityOnlyItself) {
  const v1::Tolerance loose = Within(1e30, 1e30);
  EXPECT_FALSE(Compare<float>({kNan}, {1}, v1::ELEMENT_TYPE_F32, loose).passes);
  EXPECT_FALSE(Compare<float>({1}, {kNan}, v1::ELEMENT_TYPE_F32, loose).passes);
  EXPECT_FALSE(
      Compare<float>({1e38f}, {kInfinity}, v1::ELEMENT_TYPE_F32, loose).passes);
  EXPECT_FALSE(
      Compare<float>({-kInfinity}, {kInfinity}, v1::ELEMENT_TYPE_F32, loose)
          .passes);
  const CompareResult two_nans =
      Compare<float>({-kNan}, {kNan}, v1::ELEMENT_TYPE_F32);
  EXPECT_TRUE(two_nans.passes);
  EXPECT_EQ(two_nans.errors.max_absolute(), 0);
}

TEST(CompareTest, IntegersCompareByBitsWhateverTheTolerance) {
  const CompareResult result =
      Compare<int32_t>({7, -3}, {7, -4}, v1::ELEMENT_TYPE_I32, Within(10, 10));
  EXPECT_FALSE(result.passes);
  EXPECT_EQ(result.errors.got(), "-3");
  EXPECT_EQ(result.errors.expected(), "-4");
}

TEST(CompareTest, OutlierShareAllowsSoManyAndNoMore) {
  std::vector<float> expected(1000, 1), got(1000, 1);
  for (int i = 0; i < 10; ++i) got[i * 97] = 2;
  v1::Tolerance tolerance = Within(1e-3, 0);
  tolerance.set_outlier_share(0.01);
  EXPECT_TRUE(Compare(got, expected, v1::ELEMENT_TYPE_F32, tolerance).passes);
  got[999] = 2;
  EXPECT_FALSE(Compare(got, expected, v1::ELEMENT_TYPE_F32, tolerance).passes);
}

TEST(CompareTest, WriteOutsideTheWriteSetFailsWithinAnyTolerance) {
  IntervalSet writable;
  writable.Add(0, 8);
  v1::Tolerance tolerance = Within(100, 0);
  tolerance.set_outlier_share(1);
  EXPECT_TRUE(Compare<float>({5, 5, 1}, {1, 1, 1}, v1::ELEMENT_TYPE_F32,
                             tolerance, &writable)
                  .passes);
  const CompareResult result = Compare<float>(
      {5, 5, 2}, {1, 1, 1}, v1::ELEMENT_TYPE_F32, tolerance, &writable);
  EXPECT_FALSE(result.passes);
  EXPECT_TRUE(result.errors.outside_write_set());
  EXPECT_EQ(result.errors.first_wrong_element(), 2u);
  EXPECT_EQ(result.errors.compared_elements(), 2u);
}

TEST(CompareTest, StatisticsAreThoseOfTheDifference) {
  const CompareResult result = Compare<float>(
      {1, 5, 10}, {1, 2, 6}, v1::ELEMENT_TYPE_F32, Within(10, 0));
  EXPECT_TRUE(result.passes);
  EXPECT_EQ(result.errors.max_absolute(), 4);
  EXPECT_EQ(result.errors.max_relative(), 1.5);
  EXPECT_NEAR(result.errors.rms(), std::sqrt((9 + 16) / 3.0), 1e-12);
}

TEST(CompareTest, BytesBehindTheLastElementAreCompared) {
  const std::vector<uint8_t> expected = {0, 0, 0, 0, 7}, got = {0, 0, 0, 0, 8};
  EXPECT_TRUE(Compare(expected, expected, v1::ELEMENT_TYPE_F32).passes);
  const CompareResult result = Compare(got, expected, v1::ELEMENT_TYPE_F32);
  EXPECT_FALSE(result.passes);
  EXPECT_EQ(result.errors.got(), "0x08");
}

TEST(CompareTest, SmallFloatsReadRight) {
  const uint16_t half_one = 0x3c00, half_tiny = 0x0001, half_negative = 0xc500,
                 brain_three = 0x4040;
  const auto read = [](v1::ElementType type, const uint16_t& bits) {
    return ReadElement(type, reinterpret_cast<const char*>(&bits)).value;
  };
  EXPECT_EQ(read(v1::ELEMENT_TYPE_F16, half_one), 1);
  EXPECT_EQ(read(v1::ELEMENT_TYPE_F16, half_tiny), std::ldexp(1, -24));
  EXPECT_EQ(read(v1::ELEMENT_TYPE_F16, half_negative), -5);
  EXPECT_EQ(read(v1::ELEMENT_TYPE_BF16, brain_three), 3);
}

}  // namespace
}  // namespace reprise::cpu
