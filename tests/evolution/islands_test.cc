#include "evolution/islands.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

Proposal Made(uint64_t id, const std::string& kind = "a") {
  Proposal proposal;
  proposal.id = id;
  proposal.kinds = {kind};
  return proposal;
}

std::unique_ptr<Islands> New(const Islands::Options& options) {
  auto islands = Islands::Create(options);
  EXPECT_TRUE(islands.ok()) << islands.status();
  return *std::move(islands);
}

Islands::Effects Tell(Islands& islands, const Islands::Ticket& ticket,
                      const Proposal& solution, double objective,
                      absl::Time now = kStart) {
  const auto effects = islands.Tell(ticket, solution, objective, {}, now);
  EXPECT_TRUE(effects.ok()) << effects.status();
  return effects.value_or(Islands::Effects());
}

TEST(IslandsTest, WorkIsSharedEvenly) {
  const auto islands = New({.islands = 3});
  std::vector<size_t> order;
  for (int i = 0; i < 4; ++i) order.push_back(islands->Next().island);
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, 0));
  islands->Drop({.island = 1});
  EXPECT_EQ(islands->Next().island, 1u);
}

TEST(IslandsTest, TheBestMigrateAroundTheRingAndNoFurther) {
  const auto islands =
      New({.islands = 3, .migrate_after = 2, .restart_after = 0});
  const Islands::Ticket first = {.island = 0}, second = {.island = 1};
  EXPECT_EQ(Tell(*islands, first, Made(1, "a"), 0.5).migrated, 0u);
  EXPECT_EQ(Tell(*islands, first, Made(2, "b"), 0.1).migrated, 1u);
  EXPECT_EQ(islands->archive(1).BestElite()->solution.id, 1u);
  EXPECT_EQ(islands->archive(2).BestElite(), nullptr);
  // Island 1 sends on what is its own, not what came to it.
  Tell(*islands, second, Made(3, "c"), 0.2);
  EXPECT_EQ(Tell(*islands, second, Made(4, "c"), 0.1).migrated, 1u);
  EXPECT_EQ(islands->archive(2).BestElite()->solution.id, 3u);
  EXPECT_EQ(islands->Ranked().size(), 3u);
  EXPECT_EQ(islands->BestElite()->solution.id, 1u);
}

TEST(IslandsTest, MigratesWhenItIsTime) {
  const auto islands = New({.islands = 2,
                            .topology = Islands::Topology::kRandom,
                            .migrate_after = 0,
                            .migrate_every = absl::Minutes(10),
                            .restart_after = 0});
  EXPECT_EQ(Tell(*islands, {}, Made(1), 0.5).migrated, 0u);
  EXPECT_EQ(islands->TellFailure({}, kStart + absl::Minutes(9)).migrated, 0u);
  EXPECT_EQ(islands->TellFailure({}, kStart + absl::Minutes(11)).migrated, 1u);
  EXPECT_EQ(islands->TellFailure({}, kStart + absl::Minutes(12)).migrated, 0u);
  EXPECT_EQ(islands->archive(1).BestElite()->solution.id, 1u);
}

TEST(IslandsTest, WhoIsStuckStartsAnewFromTheBestOfAll) {
  const auto islands =
      New({.islands = 2, .migrate_after = 0, .restart_after = 3});
  const Islands::Ticket stuck = islands->Next(), best = islands->Next();
  Tell(*islands, stuck, Made(1, "a"), 0.1);
  Tell(*islands, best, Made(2, "b"), 0.9);
  const Islands::Ticket under_way = islands->Next();
  ASSERT_EQ(under_way.island, 0u);
  EXPECT_FALSE(islands->TellFailure(stuck, kStart).restarted);
  EXPECT_FALSE(islands->TellFailure(stuck, kStart).restarted);
  EXPECT_TRUE(islands->TellFailure(stuck, kStart).restarted);
  EXPECT_EQ(islands->archive(0).elites().size(), 1u);
  EXPECT_EQ(islands->archive(0).BestElite()->solution.id, 2u);
  EXPECT_TRUE(islands->IsStale(under_way));
  // Who has the best goes on, however long nothing better came.
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(islands->TellFailure(best, kStart).restarted);
  EXPECT_EQ(islands->archive(1).BestElite()->solution.id, 2u);
}

TEST(IslandsTest, ProposalsGrowStaleWhenTooMuchCameMeanwhile) {
  const auto islands = New({.islands = 1, .most_overtaken = 2});
  const Islands::Ticket old = islands->Next();
  for (uint64_t id = 1; id <= 2; ++id)
    Tell(*islands, islands->Next(), Made(id, absl::StrCat(id)), 0.1);
  EXPECT_FALSE(islands->IsStale(old));
  Tell(*islands, islands->Next(), Made(3, "x"), -9);  // not taken in
  EXPECT_FALSE(islands->IsStale(old));
  Tell(*islands, islands->Next(), Made(4, "x"), 0.1);
  EXPECT_TRUE(islands->IsStale(old));
  // What was measured all the same counts.
  Tell(*islands, old, Made(5, "y"), 0.8);
  EXPECT_EQ(islands->BestElite()->solution.id, 5u);
}

TEST(IslandsTest, ParentsAreTheFastTheNewAndTheUntried) {
  const auto shares = [](const ParentWeights& weights) {
    const auto islands =
        New({.islands = 1, .parents = weights, .restart_after = 0});
    for (uint64_t id = 1; id <= 4; ++id)
      Tell(*islands, islands->Next(), Made(id, absl::StrCat(id)), 1.0 / id);
    std::map<uint64_t, int> counts;
    for (int i = 0; i < 4000; ++i)
      ++counts[islands->ChooseParent(0)->solution.id];
    return counts;
  };
  // Ranks of four elites have 4, 3, 2 and 1 of 10 tickets.
  const auto fitness = shares({1, 0, 0});
  EXPECT_NEAR(fitness.at(1), 1600, 120);
  EXPECT_NEAR(fitness.at(4), 400, 80);
  const auto recency = shares({0, 0, 1});
  EXPECT_NEAR(recency.at(4), 1600, 120);
  EXPECT_NEAR(recency.at(1), 400, 80);
  for (const auto& [id, count] : shares({0, 1, 0}))
    EXPECT_EQ(count, 1000) << id;
  EXPECT_EQ(New({})->ChooseParent(0), nullptr);
}

TEST(IslandsTest, RemeasurementReachesEveryIsland) {
  const auto islands =
      New({.islands = 2, .migrate_after = 1, .restart_after = 0});
  Tell(*islands, {}, Made(1), 0.9);
  ASSERT_EQ(islands->archive(1).elites().size(), 1u);
  EXPECT_EQ(islands->Remeasured(1, 0.3), absl::OkStatus());
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(islands->archive(i).BestElite()->objective, 0.3);
  EXPECT_EQ(islands->Remeasured(9, 0).code(), absl::StatusCode::kNotFound);
}

// Whatever happens, the same calls give the same islands, and the best elite of
// all stays.
TEST(IslandsTest, TheBestStaysAndSeedsDecide) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const Islands::Options options = {
        .islands = 3,
        .topology = seed % 2 == 0 ? Islands::Topology::kRing
                                  : Islands::Topology::kRandom,
        .migrate_after = 7,
        .migrants = 2,
        .restart_after = 20,
        .seed = seed};
    const auto islands = New(options), twin = New(options);
    Random random(seed);
    double best = -0.7;
    for (uint64_t id = 1; id <= 600; ++id) {
      const double objective = random.Unit() * 2 - 1;
      const Proposal made =
          Made(id, std::string(1, static_cast<char>('a' + random.Below(6))));
      const bool fails = random.Below(4) == 0;
      for (Islands* one : {islands.get(), twin.get()}) {
        const Islands::Ticket ticket = one->Next();
        one->ChooseParent(ticket.island);
        if (fails) {
          one->TellFailure(ticket, kStart);
        } else {
          Tell(*one, ticket, made, objective);
        }
      }
      if (!fails) best = std::max(best, objective);
      if (best > -0.7) EXPECT_EQ(islands->BestElite()->objective, best);
    }
    const auto ranked = islands->Ranked(), same = twin->Ranked();
    ASSERT_EQ(ranked.size(), same.size());
    for (size_t i = 0; i < ranked.size(); ++i)
      EXPECT_EQ(ranked[i]->solution.id, same[i]->solution.id);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(islands->ChooseParent(i)->solution.id,
                twin->ChooseParent(i)->solution.id);
    }
  }
}

TEST(IslandsTest, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(Islands::Create({.islands = 0}).ok());
  EXPECT_FALSE(Islands::Create({.parents = {0, 0, 0}}).ok());
  EXPECT_FALSE(Islands::Create({.parents = {1, -1, 1}}).ok());
  EXPECT_FALSE(Islands::Create({.parents = {std::nan(""), 1, 1}}).ok());
}

}  // namespace
}  // namespace reprise::evolution
