#include "replay/device/cuda/executor/tiles.h"

#include <gtest/gtest.h>

namespace reprise::cuda {
namespace {

TEST(TilesTest, PiecesCoverWhatWasAddedInOrderAndOfTheirSizeClass) {
  CopyTiles tiles;
  AddCopy(0x1003, 0x2003, 200000, &tiles);
  AddCopy(0x90000, 0xa0000, 8, &tiles);
  AddCopy(0x91000, 0xa1000, 4096, &tiles);
  EXPECT_EQ(tiles.bytes, 200000u + 8 + 4096);
  ASSERT_EQ(tiles.classes[0].size(), 1u);
  EXPECT_EQ(tiles.classes[0][0].to, 0x90000u);
  // 200000 bytes from an odd address: whole tiles, and a rest.
  uint64_t at = 0x1003;
  for (const CopyTile& tile : tiles.classes[2]) {
    EXPECT_EQ(tile.to, at);
    EXPECT_EQ(tile.from, at + 0x1000);
    EXPECT_LE(tile.bytes, kTileBytes);
    at += tile.bytes;
    EXPECT_TRUE(at % 16 == 0 || at == 0x1003 + 200000);
  }
  ASSERT_EQ(tiles.classes[1].size(), at == 0x1003 + 200000 ? 1u : 2u);
}

TEST(TilesTest, CoalescedClosesSmallGapsOnly) {
  IntervalSet set;
  set.Add(0, 4);
  set.Add(8, 12);
  set.Add(76, 80);
  set.Add(1000, 1004);
  IntervalSet expected;
  expected.Add(0, 80);
  expected.Add(1000, 1004);
  EXPECT_EQ(Coalesced(set), expected);
  EXPECT_EQ(Coalesced(IntervalSet()), IntervalSet());
}

TEST(TilesTest, TablesKeepRowsAligned) {
  Tables tables;
  EXPECT_EQ(tables.Add(std::vector<uint64_t>{1}), 0u);
  EXPECT_EQ(tables.Add(std::vector<uint64_t>{2, 3}), 16u);
  EXPECT_EQ(tables.bytes().size(), 32u);
}

}  // namespace
}  // namespace reprise::cuda
