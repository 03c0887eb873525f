#include "evolution/cells.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "evolution/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(CellsTest, KindsAreCellsOfTheirOwn) {
  const auto cells = NewKindCells();
  EXPECT_EQ(*cells->CellOf({"restrict", "unroll"}, {}), "restrict+unroll");
  EXPECT_EQ(*cells->CellOf({}, {1, 2}), "");
  EXPECT_EQ(cells->count(), 0u);
}

TEST(CellsTest, GridsDivideEvenly) {
  const auto cells = *NewGridCells({{.name = "a", .low = -1, .cells = 4},
                                    {.name = "b", .high = 10, .cells = 5}});
  EXPECT_EQ(cells->count(), 20u);
  EXPECT_EQ(*cells->CellOf({}, {-1, 0}), "0/0");
  EXPECT_EQ(*cells->CellOf({}, {-0.51, 1.99}), "0/0");
  EXPECT_EQ(*cells->CellOf({}, {-0.49, 2.01}), "1/1");
  EXPECT_EQ(*cells->CellOf({}, {1, 10}), "3/4");
}

TEST(CellsTest, WhatLiesOutsideIsAtTheBorder) {
  const auto cells = *NewGridCells({{.name = "a", .cells = 4}});
  EXPECT_EQ(*cells->CellOf({}, {-5}), "0");
  EXPECT_EQ(*cells->CellOf({}, {-kInfinity}), "0");
  EXPECT_EQ(*cells->CellOf({}, {kInfinity}), "3");
  const auto status = cells->CellOf({}, {std::nan("")}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("measure a is not"));
  EXPECT_FALSE(cells->CellOf({}, {1, 2}).ok());
}

TEST(CellsTest, LogarithmicDimensionsAreFineWhereNumbersAreSmall) {
  const auto cells = *NewGridCells(
      {{.name = "bytes", .high = 1023, .logarithmic = true, .cells = 10}});
  EXPECT_EQ(*cells->CellOf({}, {0.9}), "0");
  EXPECT_EQ(*cells->CellOf({}, {1.1}), "1");
  EXPECT_EQ(*cells->CellOf({}, {500}), "8");
  EXPECT_EQ(*cells->CellOf({}, {520}), "9");
}

TEST(CellsTest, CvtCellsAreEvenAndTheSameUnderASeed) {
  const std::vector<Dimension> dimensions = {
      {.name = "a"}, {.name = "b", .high = 100}, {.name = "c", .low = -1}};
  constexpr int kCells = 50;
  const auto cells = *NewCvtCells(dimensions, kCells, 1);
  const auto same = *NewCvtCells(dimensions, kCells, 1);
  const auto other = *NewCvtCells(dimensions, kCells, 2);
  EXPECT_EQ(cells->count(), 50u);
  Random random(3);
  std::map<std::string, int> counts;
  int differ = 0;
  constexpr int kPoints = 20'000;
  for (int i = 0; i < kPoints; ++i) {
    const std::vector<double> point = {random.Unit(), random.Unit() * 100,
                                       random.Unit() * 2 - 1};
    const std::string cell = *cells->CellOf({}, point);
    EXPECT_EQ(cell, *same->CellOf({}, point));
    differ += cell != *other->CellOf({}, point);
    ++counts[cell];
  }
  EXPECT_EQ(counts.size(), 50u);
  for (const auto& [cell, count] : counts) {
    EXPECT_GT(count, kPoints / kCells / 3) << cell;
    EXPECT_LT(count, kPoints / kCells * 3) << cell;
  }
  EXPECT_GT(differ, kPoints / 2);
}

TEST(CellsTest, ErrorsNameTheDimension) {
  const auto message = [](const auto& cells) {
    return std::string(cells.status().message());
  };
  EXPECT_THAT(message(NewGridCells({{.name = "x", .low = 2, .high = 2}})),
              HasSubstr("measure x: got the range 2 to 2"));
  EXPECT_THAT(message(NewGridCells({{.name = "x", .high = kInfinity}})),
              HasSubstr("measure x"));
  EXPECT_THAT(message(NewGridCells({{.name = "x", .cells = 0}})),
              HasSubstr("measure x: got 0 cells"));
  EXPECT_THAT(message(NewGridCells({})), HasSubstr("without measures"));
  EXPECT_THAT(message(NewGridCells(std::vector<Dimension>(12))),
              HasSubstr("at most"));
  EXPECT_THAT(message(NewCvtCells({{.name = "x"}}, 1, 0)),
              HasSubstr("got 1 CVT cells"));
  EXPECT_FALSE(NewCvtCells({}, 10, 0).ok());
}

}  // namespace
}  // namespace reprise::evolution
