#include "evolution/move_emitter.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "evolution/archive.h"
#include "evolution/bandit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Eight letters; a move makes one of them a capital. Kind "good" is what pays:
// of two sites, the objective is 0.1 each.
EvolvableSource Letters() {
  return EvolvableSource({{"f", "abcdefgh", false}},
                         {{"f", 0, 8, RegionKind::kKernel, "k"}});
}

std::vector<Move> LetterMoves() {
  std::vector<Move> moves;
  for (size_t i = 0; i < 8; ++i) {
    Move move;
    move.kind = i < 2 ? "good" : (i < 5 ? "plain" : "inexact");
    move.site = move.kind + "@f:" + std::to_string(i);
    move.key = move.site + "=1";
    move.description = "raise letter " + std::to_string(i);
    move.inexact = i >= 5;
    move.claim = i == 3 ? "letters may be raised" : "";
    move.edits = {{"f", i, 1, std::string(1, static_cast<char>('A' + i)), 0}};
    moves.push_back(move);
  }
  return moves;
}

std::unique_ptr<Emitter> Make(MoveEmitterOptions options = {}) {
  auto emitter = NewMoveEmitter(Letters(), LetterMoves(), options);
  EXPECT_TRUE(emitter.ok()) << emitter.status();
  return *std::move(emitter);
}

double Objective(const Proposal& proposal) {
  const std::string& text = proposal.files.at("f");
  return (text[0] == 'A' ? 0.1 : 0) + (text[1] == 'B' ? 0.1 : 0) - 0.001;
}

// Asks, evaluates and tells; returns what was asked for.
std::vector<Proposal> RunRounds(Emitter& emitter, Archive& archive,
                                int rounds) {
  std::vector<Proposal> all;
  for (int i = 0; i < rounds; ++i) {
    auto asked = emitter.Ask(archive, 4);
    EXPECT_TRUE(asked.ok()) << asked.status();
    for (Proposal& proposal : *asked) {
      proposal.id = all.size() + 1;
      const double objective = Objective(proposal);
      EXPECT_TRUE(archive.Add(proposal, objective).ok());
      emitter.Tell(proposal, {v1::OUTCOME_KIND_OK, objective, objective, ""});
      all.push_back(proposal);
    }
  }
  return all;
}

TEST(MoveEmitterTest, FirstTriesEachKindAlone) {
  auto emitter = Make();
  Archive archive;
  const auto proposals = emitter->Ask(archive, 3).value();
  ASSERT_EQ(proposals.size(), 3u);
  EXPECT_THAT(proposals[0].kinds, ElementsAre("good"));
  EXPECT_THAT(proposals[1].kinds, ElementsAre("plain"));
  EXPECT_THAT(proposals[2].kinds, ElementsAre("inexact"));
  EXPECT_TRUE(proposals[2].inexact);
  EXPECT_FALSE(proposals[0].inexact);
  EXPECT_THAT(proposals[0].parents, ElementsAre(0u));
  EXPECT_EQ(proposals[0].emitter, "moves");
  // At all its sites.
  EXPECT_EQ(proposals[0].files.at("f"), "ABcdefgh");
  EXPECT_EQ(proposals[2].files.at("f"), "abcdeFGH");
}

TEST(MoveEmitterTest, AGroupTakesOneParameterWhereItCan) {
  std::vector<Move> moves;
  for (size_t site = 0; site < 3; ++site) {
    for (const char* parameter : {"2", "4", "8"}) {
      if (site == 2 && parameter[0] != '8') continue;  // only one choice
      Move move;
      move.kind = "unroll";
      move.site = "unroll@f:" + std::to_string(site);
      move.key = move.site + "=" + parameter;
      move.edits = {{"f", site, 1, parameter, 0}};
      moves.push_back(move);
    }
  }
  std::set<std::string> firsts;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    MoveEmitterOptions options;
    options.seed = seed;
    auto emitter = NewMoveEmitter(Letters(), moves, options).value();
    firsts.insert(emitter->Ask(Archive(), 1).value()[0].files.at("f"));
  }
  EXPECT_THAT(firsts, testing::UnorderedElementsAre("228defgh", "448defgh",
                                                    "888defgh"));
}

TEST(MoveEmitterTest, SimplifyLeavesOutEachChangeInTurn) {
  auto emitter = Make();
  const Proposal three = emitter->Ask(Archive(), 3).value()[2];
  std::set<std::string> texts;
  const auto all = emitter->Simplify(three);
  ASSERT_TRUE(all.ok()) << all.status();
  for (const Proposal& simpler : *all) {
    texts.insert(simpler.files.at("f"));
  }
  EXPECT_THAT(
      texts, testing::UnorderedElementsAre("abcdefGH", "abcdeFgH", "abcdeFGh"));
  Proposal recorded;
  EXPECT_TRUE(emitter->Simplify(recorded)->empty());
}

TEST(MoveEmitterTest, NeverTheSameSourceTwiceUntilAllAreTried) {
  auto emitter = Make();
  Archive archive;
  std::set<std::string> seen;
  for (const Proposal& proposal : RunRounds(*emitter, archive, 100)) {
    EXPECT_TRUE(seen.insert(proposal.files.at("f")).second);
    EXPECT_TRUE(Letters().CheckConfined(proposal.files).ok());
  }
  EXPECT_EQ(seen.size(), 255u);  // all subsets but the empty one
}

TEST(MoveEmitterTest, FindsAndKeepsWhatPays) {
  auto emitter = Make();
  Archive archive;
  RunRounds(*emitter, archive, 8);
  EXPECT_NEAR(archive.BestElite()->objective, 0.199, 1e-9);
}

TEST(MoveEmitterTest, TheSameCallsGiveTheSameProposals) {
  const auto genomes = [](uint64_t seed) {
    MoveEmitterOptions options;
    options.seed = seed;
    auto emitter = Make(options);
    Archive archive;
    std::vector<std::string> out;
    for (const Proposal& proposal : RunRounds(*emitter, archive, 20)) {
      out.push_back(proposal.genome);
    }
    return out;
  };
  EXPECT_EQ(genomes(1), genomes(1));
  EXPECT_NE(genomes(1), genomes(2));
}

TEST(MoveEmitterTest, SaysWhatAProposalIs) {
  MoveEmitterOptions options;
  options.singles_first = false;
  auto emitter = Make(options);
  Archive archive;
  bool found = false;
  for (const Proposal& proposal : RunRounds(*emitter, archive, 60)) {
    if (proposal.files.at("f") != "abcDEfgh") continue;
    found = true;
    EXPECT_EQ(proposal.description, "Raise letter 3; raise letter 4.");
    EXPECT_EQ(proposal.genome, "plain@f:3=1;plain@f:4=1");
    EXPECT_EQ(proposal.claim, "letters may be raised");
    EXPECT_THAT(proposal.kinds, ElementsAre("plain"));
  }
  EXPECT_TRUE(found);
}

TEST(MoveEmitterTest, LeavesInexactMovesOutWhereNotAllowed) {
  MoveEmitterOptions options;
  options.allow_inexact = false;
  auto emitter = Make(options);
  Archive archive;
  const auto all = RunRounds(*emitter, archive, 20);
  EXPECT_EQ(all.size(), 31u);  // subsets of five
  for (const Proposal& proposal : all) EXPECT_FALSE(proposal.inexact);
}

TEST(MoveEmitterTest, KeepsTheBoundOnMoves) {
  MoveEmitterOptions options;
  options.max_moves_per_proposal = 2;
  auto emitter = Make(options);
  Archive archive;
  const auto all = RunRounds(*emitter, archive, 30);
  EXPECT_EQ(all.size(), 8u + 28u);
}

TEST(MoveEmitterTest, ElitesOfOthersAreNoParents) {
  auto emitter = Make();
  Archive archive;
  Proposal foreign;
  foreign.id = 77;
  foreign.emitter = "llm";
  foreign.files = {{"f", "xxxxxxxx"}};
  foreign.kinds = {"llm"};
  EXPECT_TRUE(archive.Add(foreign, 5.0).ok());
  for (const Proposal& proposal : RunRounds(*emitter, archive, 20)) {
    for (const uint64_t parent : proposal.parents) EXPECT_NE(parent, 77u);
  }
}

TEST(MoveEmitterTest, RefusesAmbiguousKeysAndEditsOutside) {
  auto twice = LetterMoves();
  twice[1].key = twice[0].key;
  EXPECT_FALSE(NewMoveEmitter(Letters(), twice).ok());
  auto outside = LetterMoves();
  outside[0].edits[0].offset = 100;
  const auto refused = NewMoveEmitter(Letters(), outside);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("outside"));
  EXPECT_TRUE(NewMoveEmitter(Letters(), {}).ok());
}

TEST(MoveEmitterTest, WithoutMovesThereIsNothingToPropose) {
  auto emitter = NewMoveEmitter(Letters(), {}).value();
  EXPECT_TRUE(emitter->Ask(Archive(), 5)->empty());
}

TEST(BanditTest, PrefersWhatPaysButTriesAllOnce) {
  Bandit bandit;
  EXPECT_THAT(bandit.Rank({"a", "b"}), ElementsAre("a", "b"));
  bandit.Pull("a");
  EXPECT_THAT(bandit.Rank({"a", "b"}), ElementsAre("b", "a"));
  for (int i = 0; i < 20; ++i) {
    bandit.Pull("a");
    bandit.Pull("b");
    bandit.Reward("b", 1);
  }
  EXPECT_THAT(bandit.Rank({"a", "b"}), ElementsAre("b", "a"));
  bandit.Pull("c");
  bandit.Forget("c");
  EXPECT_THAT(bandit.Rank({"a", "c"}), ElementsAre("c", "a"));
}

TEST(MoveEmitterTest, CopiesOfCodeDoNotMultiplyWithoutBound) {
  std::vector<Move> moves = LetterMoves();
  for (Move& move : moves) move.copies = 8;
  auto emitter = NewMoveEmitter(Letters(), moves, {});
  ASSERT_TRUE(emitter.ok());
  Archive archive;
  const std::vector<Proposal> all = RunRounds(**emitter, archive, 40);
  ASSERT_FALSE(all.empty());
  size_t most = 0;
  for (const Proposal& proposal : all) {
    const std::string& text = proposal.files.at("f");
    most = std::max<size_t>(
        most, std::count_if(text.begin(), text.end(),
                            [](char c) { return c >= 'A' && c <= 'Z'; }));
  }
  EXPECT_EQ(most, 2u);  // 8 * 8 are allowed, 8 * 8 * 8 are not
}

}  // namespace
}  // namespace reprise::evolution
