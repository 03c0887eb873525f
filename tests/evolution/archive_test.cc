#include "evolution/archive.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

Proposal Made(uint64_t id, std::vector<std::string> kinds) {
  Proposal proposal;
  proposal.id = id;
  proposal.kinds = std::move(kinds);
  return proposal;
}

TEST(ArchiveTest, KeepsTheFasterElite) {
  Archive archive;
  EXPECT_EQ(archive.Add(Made(1, {"unroll"}), 0.1), AddStatus::kNew);
  EXPECT_EQ(archive.Add(Made(2, {"unroll"}), 0.05), AddStatus::kNotAdded);
  EXPECT_EQ(archive.Add(Made(3, {"unroll"}), 0.1), AddStatus::kNotAdded);
  EXPECT_EQ(archive.Add(Made(4, {"unroll"}), 0.2), AddStatus::kImproveExisting);
  ASSERT_EQ(archive.elites().size(), 1u);
  EXPECT_EQ(archive.BestElite()->solution.id, 4u);
}

TEST(ArchiveTest, CellsAreSetsOfKinds) {
  Archive archive;
  archive.Add(Made(1, {"restrict", "unroll"}), 0.3);
  archive.Add(Made(2, {"unroll"}), 0.1);
  archive.Add(Made(3, {}), 0.0);
  EXPECT_EQ(archive.elites().size(), 3u);
  const auto ranked = archive.Ranked();
  EXPECT_EQ(ranked[0]->solution.id, 1u);
  EXPECT_EQ(ranked[2]->cell, "");
}

TEST(ArchiveTest, TheSlowAndTheUnmeasuredStayOut) {
  Archive archive({.qd_score_offset = -0.5});
  EXPECT_EQ(archive.Add(Made(1, {"a"}), -0.6), AddStatus::kNotAdded);
  EXPECT_EQ(archive.Add(Made(2, {"a"}), std::nan("")), AddStatus::kNotAdded);
  EXPECT_EQ(archive.BestElite(), nullptr);
  EXPECT_EQ(archive.stats().num_elites, 0u);
}

TEST(ArchiveTest, StatsAreThoseOfPyribs) {
  Archive archive({.qd_score_offset = -1});
  archive.Add(Made(1, {"a"}), 0.5);
  archive.Add(Made(2, {"b"}), -0.5);
  const ArchiveStats stats = archive.stats();
  EXPECT_EQ(stats.num_elites, 2u);
  EXPECT_DOUBLE_EQ(stats.qd_score, 2.0);
  EXPECT_DOUBLE_EQ(stats.obj_max, 0.5);
  EXPECT_DOUBLE_EQ(stats.obj_mean, 0.0);
}

}  // namespace
}  // namespace reprise::evolution
