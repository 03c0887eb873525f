#include "evolution/archive.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
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
  EXPECT_EQ(*archive.Add(Made(1, {"unroll"}), 0.1), AddStatus::kNew);
  EXPECT_EQ(*archive.Add(Made(2, {"unroll"}), 0.05), AddStatus::kNotAdded);
  EXPECT_EQ(*archive.Add(Made(3, {"unroll"}), 0.1), AddStatus::kNotAdded);
  EXPECT_EQ(*archive.Add(Made(4, {"unroll"}), 0.2),
            AddStatus::kImproveExisting);
  ASSERT_EQ(archive.elites().size(), 1u);
  EXPECT_EQ(archive.BestElite()->solution.id, 4u);
}

TEST(ArchiveTest, CellsAreSetsOfKinds) {
  Archive archive;
  ASSERT_TRUE(archive.Add(Made(1, {"restrict", "unroll"}), 0.3).ok());
  ASSERT_TRUE(archive.Add(Made(2, {"unroll"}), 0.1).ok());
  ASSERT_TRUE(archive.Add(Made(3, {}), 0.0).ok());
  EXPECT_EQ(archive.elites().size(), 3u);
  const auto ranked = archive.Ranked();
  EXPECT_EQ(ranked[0]->solution.id, 1u);
  EXPECT_EQ(ranked[2]->cell, "");
}

TEST(ArchiveTest, TheSlowAndTheUnmeasuredStayOut) {
  Archive archive({.qd_score_offset = -0.5});
  EXPECT_EQ(*archive.Add(Made(1, {"a"}), -0.6), AddStatus::kNotAdded);
  EXPECT_EQ(*archive.Add(Made(2, {"a"}), std::nan("")), AddStatus::kNotAdded);
  EXPECT_EQ(archive.BestElite(), nullptr);
  EXPECT_EQ(archive.stats().num_elites, 0u);
}

TEST(ArchiveTest, StatsAreThoseOfPyribs) {
  Archive archive({.qd_score_offset = -1});
  ASSERT_TRUE(archive.Add(Made(1, {"a"}), 0.5).ok());
  ASSERT_TRUE(archive.Add(Made(2, {"b"}), -0.5).ok());
  const ArchiveStats stats = archive.stats();
  EXPECT_EQ(stats.num_elites, 2u);
  EXPECT_DOUBLE_EQ(stats.qd_score, 2.0);
  EXPECT_DOUBLE_EQ(stats.obj_max, 0.5);
  EXPECT_DOUBLE_EQ(stats.obj_mean, 0.0);
}

TEST(ArchiveTest, AnEliteIsBelievedWhenItWasMeasuredAgain) {
  Archive archive;
  ASSERT_TRUE(archive.Add(Made(1, {"a"}), 0.5).ok());
  ASSERT_TRUE(archive.Add(Made(2, {"b"}), 0.9).ok());
  EXPECT_FALSE(archive.BestElite()->believed());
  ASSERT_EQ(archive.DueForRemeasurement(9).size(), 2u);
  EXPECT_EQ(archive.DueForRemeasurement(1)[0]->solution.id, 2u);
  ASSERT_EQ(archive.Remeasured(2, 0.2), absl::OkStatus());
  // The first measurement, which was chosen for being high, counts no more.
  ASSERT_EQ(archive.Remeasured(2, 0.4), absl::OkStatus());
  const Elite* const b = archive.Ranked()[1];
  EXPECT_EQ(b->solution.id, 2u);
  EXPECT_DOUBLE_EQ(b->objective, 0.3);
  EXPECT_TRUE(b->believed());
  ASSERT_EQ(archive.DueForRemeasurement(9).size(), 1u);
  EXPECT_EQ(archive.Remeasured(7, 0).code(), absl::StatusCode::kNotFound);
}

TEST(ArchiveTest, RunnersUpTakeThePlaceOfWhatDidNotHold) {
  Archive archive({.bench = 1});
  for (const auto& [id, objective] :
       std::vector<std::pair<uint64_t, double>>{{1, 0.1}, {2, 0.2}, {3, 0.3}})
    ASSERT_TRUE(archive.Add(Made(id, {"a"}), objective).ok());
  EXPECT_EQ(archive.BestElite()->solution.id, 3u);
  ASSERT_EQ(archive.Remeasured(3, 0.15), absl::OkStatus());
  EXPECT_EQ(archive.BestElite()->solution.id, 2u);
  // It failed: gone, and the one before it is back. The third is forgotten.
  ASSERT_EQ(archive.Remeasured(2, std::nan("")), absl::OkStatus());
  EXPECT_EQ(archive.BestElite()->solution.id, 3u);
  EXPECT_EQ(archive.Remeasured(1, 1).code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(archive.Remeasured(3, -5), absl::OkStatus());
  EXPECT_EQ(archive.BestElite(), nullptr);
  EXPECT_EQ(archive.stats().num_elites, 0u);
}

TEST(ArchiveTest, BelievedElitesAreDueAgainTheOldestFirst) {
  Archive archive({.remeasure_after = 3});
  ASSERT_TRUE(archive.Add(Made(1, {"a"}), 0.1).ok());
  ASSERT_TRUE(archive.Add(Made(2, {"b"}), 0.2).ok());
  ASSERT_EQ(archive.Remeasured(1, 0.1), absl::OkStatus());
  ASSERT_EQ(archive.Remeasured(2, 0.2), absl::OkStatus());
  EXPECT_TRUE(archive.DueForRemeasurement(9).empty());
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(archive.Add(Made(9, {"a"}), -0.1).ok());
  ASSERT_EQ(archive.DueForRemeasurement(9).size(), 1u);
  EXPECT_EQ(archive.DueForRemeasurement(9)[0]->solution.id, 1u);
}

TEST(ArchiveTest, CellsOfMeasures) {
  Archive archive(
      {.cells = *NewGridCells({{.name = "registers", .high = 256, .cells = 4},
                               {.name = "occupancy", .cells = 2}})});
  EXPECT_EQ(*archive.Add(Made(1, {"a"}), 0.1, {10, 0.2}), AddStatus::kNew);
  EXPECT_EQ(*archive.Add(Made(2, {"b"}), 0.2, {60, 0.4}),
            AddStatus::kImproveExisting);
  EXPECT_EQ(*archive.Add(Made(3, {"b"}), 0.1, {64, 0.4}), AddStatus::kNew);
  EXPECT_EQ(archive.stats().coverage, 0.25);
  EXPECT_DOUBLE_EQ(archive.stats().norm_qd_score, (0.2 + 0.1 + 2 * 0.7) / 8);
  EXPECT_EQ((*archive.Retrieve({}, {33, 0.1}))->solution.id, 2u);
  EXPECT_EQ(*archive.Retrieve({}, {200, 1}), nullptr);
  EXPECT_EQ(archive.Add(Made(4, {}), 1, {10}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(archive.evaluations(), 3u);
}

// Whatever is told: an elite is the best of its cell that was not removed, and
// the same calls give the same archive.
TEST(ArchiveTest, KeepsItsOrderWhateverIsTold) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    Archive archive({.bench = 3}), twin({.bench = 3});
    for (uint64_t id = 1; id <= 200; ++id) {
      const double objective = random.Unit() * 2 - 1;
      const Proposal made = Made(id, {std::string(1, 'a' + random.Below(5))});
      const uint64_t again = 1 + random.Below(id);
      const bool remeasured = random.Below(3) == 0;
      for (Archive* one : {&archive, &twin}) {
        ASSERT_TRUE(one->Add(made, objective).ok());
        if (remeasured) one->Remeasured(again, -objective).IgnoreError();
      }
    }
    const auto ranked = archive.Ranked();
    EXPECT_LE(ranked.size(), 5u);
    for (size_t i = 0; i < ranked.size(); ++i) {
      EXPECT_GE(ranked[i]->objective, -0.7);
      EXPECT_LE(ranked[i]->objective, archive.BestElite()->objective);
      EXPECT_EQ(ranked[i]->solution.id, twin.Ranked()[i]->solution.id);
      EXPECT_EQ(ranked[i]->objective, twin.Ranked()[i]->objective);
    }
    for (const Elite* elite : archive.SampleElites(20, random))
      EXPECT_NE(std::find(ranked.begin(), ranked.end(), elite), ranked.end());
  }
}

TEST(ParetoFrontTest, NothingElseIsBetterInEverything) {
  EXPECT_THAT(
      ParetoFront(
          {{1, 5}, {2, 2}, {3, 2}, {2, 2}, {5, 1}, {std::nan(""), 0}, {0, 9}}),
      ::testing::ElementsAre(0, 1, 3, 4, 6));
  EXPECT_TRUE(ParetoFront({}).empty());
}

}  // namespace
}  // namespace reprise::evolution
