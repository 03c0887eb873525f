#include "replay/unit/interval_set.h"

#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

IntervalSet Make(std::vector<Interval> intervals) {
  IntervalSet set;
  for (const Interval& interval : intervals)
    set.Add(interval.begin, interval.end);
  return set;
}

std::string Error(std::string_view bytes, uint64_t limit = 1000) {
  const absl::StatusOr<IntervalSet> set = IntervalSet::Decode(bytes, limit);
  EXPECT_EQ(set.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(set.status().message());
}

TEST(IntervalSetTest, AddMergesWhatTouches) {
  EXPECT_THAT(Make({{0, 4}, {4, 8}}).intervals(), ElementsAre(Interval{0, 8}));
  EXPECT_THAT(Make({{4, 8}, {0, 4}}).intervals(), ElementsAre(Interval{0, 8}));
  EXPECT_THAT(Make({{0, 4}, {5, 8}}).intervals(),
              ElementsAre(Interval{0, 4}, Interval{5, 8}));
  EXPECT_THAT(Make({{0, 2}, {4, 6}, {8, 10}, {1, 9}}).intervals(),
              ElementsAre(Interval{0, 10}));
  EXPECT_THAT(Make({{10, 20}, {0, 5}, {7, 8}, {6, 7}}).intervals(),
              ElementsAre(Interval{0, 5}, Interval{6, 8}, Interval{10, 20}));
}

TEST(IntervalSetTest, AddIgnoresEmptyIntervals) {
  EXPECT_TRUE(Make({{5, 5}, {7, 3}}).empty());
}

// Against a plain bitmap, over many random operations.
TEST(IntervalSetTest, AgreesWithABitmap) {
  constexpr uint64_t kSize = 64;
  std::mt19937 random(1);
  const auto bits_of = [](const IntervalSet& set) {
    std::vector<bool> bits(kSize);
    for (uint64_t i = 0; i < kSize; ++i) bits[i] = set.Contains(i);
    return bits;
  };
  for (int round = 0; round < 2000; ++round) {
    IntervalSet sets[2];
    std::vector<bool> bits[2] = {std::vector<bool>(kSize),
                                 std::vector<bool>(kSize)};
    for (int which : {0, 1}) {
      const unsigned adds = random() % 12;
      for (unsigned i = 0; i < adds; ++i) {
        const uint64_t begin = random() % kSize;
        const uint64_t end = std::min<uint64_t>(kSize, begin + random() % 9);
        sets[which].Add(begin, end);
        for (uint64_t b = begin; b < end; ++b) bits[which][b] = true;
      }
      ASSERT_EQ(bits_of(sets[which]), bits[which]);
      ASSERT_EQ(sets[which].bytes(),
                static_cast<uint64_t>(
                    std::count(bits[which].begin(), bits[which].end(), true)));
    }
    std::vector<bool> either(kSize), both(kSize), first_only(kSize);
    for (uint64_t i = 0; i < kSize; ++i) {
      either[i] = bits[0][i] || bits[1][i];
      both[i] = bits[0][i] && bits[1][i];
      first_only[i] = bits[0][i] && !bits[1][i];
    }
    const IntervalSet results[] = {sets[0].Union(sets[1]),
                                   sets[0].Intersect(sets[1]),
                                   sets[0].Subtract(sets[1])};
    ASSERT_EQ(bits_of(results[0]), either);
    ASSERT_EQ(bits_of(results[1]), both);
    ASSERT_EQ(bits_of(results[2]), first_only);
    for (const IntervalSet& result : results) {
      for (size_t i = 1; i < result.intervals().size(); ++i) {
        ASSERT_GT(result.intervals()[i].begin, result.intervals()[i - 1].end);
      }
      const absl::StatusOr<IntervalSet> again =
          IntervalSet::Decode(result.Encode(), kSize);
      ASSERT_TRUE(again.ok()) << again.status();
      ASSERT_EQ(*again, result);
    }
  }
}

TEST(IntervalSetTest, EncodesGapsAndLengths) {
  EXPECT_EQ(Make({{0, 1}, {3, 203}}).Encode(),
            std::string("\x00\x01\x02\xc8\x01", 5));
  EXPECT_THAT(IntervalSet().Encode(), IsEmpty());
}

TEST(IntervalSetTest, KeepsTheLargestNumbers) {
  const IntervalSet set = Make({{0, 1}, {kMax - 1, kMax}});
  const absl::StatusOr<IntervalSet> again =
      IntervalSet::Decode(set.Encode(), kMax);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, set);
  EXPECT_TRUE(again->Contains(kMax - 1));
  EXPECT_FALSE(again->Contains(kMax - 2));
}

TEST(IntervalSetTest, RefusesWhatIsCutShort) {
  EXPECT_THAT(Error("\x05"), HasSubstr("ends inside the number at byte 1"));
  EXPECT_THAT(Error("\x80"), HasSubstr("ends inside the number at byte 0"));
}

TEST(IntervalSetTest, RefusesWhatIsNotCanonical) {
  EXPECT_THAT(Error(std::string_view("\x01\x00", 2)), HasSubstr("is empty"));
  EXPECT_THAT(Error(std::string_view("\x01\x01\x00\x01", 4)),
              HasSubstr("at byte 2 touches"));
  EXPECT_THAT(Error(std::string_view("\x81\x00\x01", 3)),
              HasSubstr("not in its shortest form"));
}

TEST(IntervalSetTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(Error(std::string(9, '\xff') + "\x02"
                                             "\x01",
                    kMax),
              HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(Error(std::string(10, '\xff') + "\x01", kMax),
              HasSubstr("does not fit 64 bits"));
  // The end would wrap around.
  EXPECT_THAT(
      Error(std::string("\x02") + std::string(9, '\xff') + "\x01", kMax),
      HasSubstr("ends past the range"));
}

TEST(IntervalSetTest, RefusesBytesPastTheLimit) {
  EXPECT_TRUE(IntervalSet::Decode("\x05\x05", 10).ok());
  EXPECT_THAT(Error("\x05\x05", 9), HasSubstr("expected at most 9"));
  EXPECT_THAT(Error("\x0a\x01", 9), HasSubstr("gap 10"));
}

}  // namespace
}  // namespace reprise
