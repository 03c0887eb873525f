#include "replay/recorder/session/launch_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/recorder/session/substitutions.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::LaunchConfig Shape(uint32_t grid, uint32_t block, uint32_t shared = 0) {
  v1::LaunchConfig launch;
  launch.mutable_grid()->set_x(grid);
  launch.mutable_block()->set_x(block);
  launch.set_dynamic_shared_bytes(shared);
  return launch;
}

std::unique_ptr<LaunchLedger> Make(LaunchLedger::Options options) {
  options.record = true;
  auto ledger = LaunchLedger::Create(std::move(options));
  EXPECT_TRUE(ledger.ok()) << ledger.status();
  return *std::move(ledger);
}

RecordResult Finished(LaunchLedger& ledger) {
  RecordResult result;
  EXPECT_TRUE(ledger.Finish(nullptr, &result).ok());
  return result;
}

// The standard library's matcher calls itself for every character.
TEST(LaunchLedgerTest, MatchesTheBeginningOfNamesOfAnyLength) {
  LaunchLedger::Options options;
  options.kernel_regex = "k.*b";
  const auto ledger = Make(options);
  const std::string long_name(1 << 20, 'a');
  EXPECT_FALSE(ledger->Meet("k" + long_name, "image").record);
  EXPECT_TRUE(ledger->Meet("kab" + long_name, "image").record);
}

TEST(LaunchLedgerTest, CountsPerKernelAndImage) {
  const auto ledger = Make({});
  EXPECT_EQ(ledger->Begin("_Z1kv", "image1", Shape(1, 1)).occurrence, 0u);
  EXPECT_EQ(ledger->Begin("_Z1kv", "image1", Shape(2, 1)).occurrence, 1u);
  // A static kernel of another file may have the same name.
  EXPECT_EQ(ledger->Begin("_Z1kv", "image2", Shape(1, 1)).occurrence, 0u);
  const RecordResult result = Finished(*ledger);
  ASSERT_EQ(result.kernels.size(), 2u);
  EXPECT_EQ(result.kernels[0].launches, 2u);
  EXPECT_EQ(result.kernels[0].display_name, "k()");
  EXPECT_EQ(result.kernels[1].launches, 1u);
}

TEST(LaunchLedgerTest, ChoosesByNameSkipAndCount) {
  LaunchLedger::Options options;
  options.kernel_regex = "^scale\\(";
  options.skip = 1;
  const auto ledger = Make(options);
  EXPECT_FALSE(ledger->Begin("_Z5otherv", "i", Shape(1, 1)).record);
  EXPECT_FALSE(ledger->Begin("_Z5scalev", "i", Shape(1, 1)).record);  // skipped
  const LaunchTicket second = ledger->Begin("_Z5scalev", "i", Shape(1, 1));
  EXPECT_TRUE(second.record);
  ledger->AddUnit(second, v1::Unit(), {"shape", {}, "hash"});
  EXPECT_FALSE(ledger->Begin("_Z5scalev", "i", Shape(1, 1)).record);
  EXPECT_EQ(ledger->Instances(second.kernel).size(), 1u);
}

TEST(LaunchLedgerTest, GivesUpAKernelThatCannotBeRecorded) {
  const auto ledger = Make({});
  int tried = 0;
  for (int i = 0; i < 10; ++i) {
    const LaunchTicket ticket = ledger->Begin("_Z1kv", "i", Shape(1, 1));
    if (!ticket.record) continue;
    ++tried;
    ledger->NoteProblem(ticket, "it is odd");
  }
  EXPECT_GT(tried, 0);
  EXPECT_LT(tried, 10);
  EXPECT_THAT(Finished(*ledger).problem, HasSubstr("it is odd"));
}

// As processes do that launch at the same time.
TEST(LaunchLedgerTest, WhatIsBeingRecordedCounts) {
  const auto ledger = Make({});
  const size_t kernel = ledger->Meet("_Z1kv", "i").kernel;
  const LaunchTicket first = ledger->BeginKnown(kernel, Shape(1, 1));
  EXPECT_TRUE(first.record);
  EXPECT_FALSE(ledger->BeginKnown(kernel, Shape(1, 1)).record);
  EXPECT_FALSE(ledger->IsDone(kernel));
  ledger->NoteGivenUp(first, "");
  const LaunchTicket third = ledger->BeginKnown(kernel, Shape(1, 1));
  EXPECT_TRUE(third.record);
  ledger->NoteCaptured(third);
  EXPECT_FALSE(ledger->BeginKnown(kernel, Shape(1, 1)).record);
  EXPECT_TRUE(ledger->IsDone(kernel));
  EXPECT_THAT(Finished(*ledger).problem, Not(HasSubstr("not recorded")));
}

TEST(LaunchLedgerTest, SaysWhatWasLaunchedWhenNothingMatches) {
  LaunchLedger::Options options;
  options.kernel_regex = "nothing";
  const auto ledger = Make(options);
  for (int i = 0; i < 3; ++i) ledger->Begin("_Z5scalePf", "i", Shape(1, 1));
  const RecordResult result = Finished(*ledger);
  EXPECT_THAT(result.problem, HasSubstr("no kernel matches 'nothing'"));
  EXPECT_THAT(result.problem, HasSubstr("3 x scale(float*)"));
  EXPECT_EQ(result.ExitCode(), 1);
}

TEST(LaunchLedgerTest, SaysThatNothingWasLaunched) {
  EXPECT_THAT(Finished(*Make({})).problem, HasSubstr("launched no kernel"));
}

TEST(LaunchLedgerTest, SaysThatAllLaunchesWereSkipped) {
  LaunchLedger::Options options;
  options.skip = 5;
  const auto ledger = Make(options);
  ledger->Begin("_Z1kv", "i", Shape(1, 1));
  EXPECT_THAT(Finished(*ledger).problem, HasSubstr("--skip 5"));
}

TEST(LaunchLedgerTest, GivesNoCountForAKernelThatCannotRun) {
  const auto ledger = Make({});
  ledger->NoteRefusal("_Z1kv", "i", "it needs tensor cores");
  const RecordResult result = Finished(*ledger);
  EXPECT_THAT(result.problem, HasSubstr("refused k()"));
  EXPECT_THAT(result.problem, HasSubstr("it needs tensor cores"));
  ASSERT_EQ(result.kernels.size(), 1u);
  EXPECT_TRUE(result.kernels[0].refused);
}

TEST(LaunchLedgerTest, RefusesABadExpression) {
  LaunchLedger::Options options;
  options.kernel_regex = "(";
  EXPECT_EQ(LaunchLedger::Create(options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(RecordResultTest, TheApplicationsFailureComesFirst) {
  RecordResult result;
  EXPECT_EQ(result.ExitCode(), 0);
  result.problem = "nothing";
  EXPECT_EQ(result.ExitCode(), 1);
  result.application_exit_code = 7;
  EXPECT_EQ(result.ExitCode(), 7);
}

TEST(SubstitutionsTest, GuardsDecide) {
  Substitution tuned;
  tuned.kernel = "_ZL1kPf";
  tuned.guard = Shape(4, 256);
  Substitution other = tuned;
  other.guard = Shape(8, 256);
  Substitutions substitutions({tuned, other});
  const Substitution* chosen = substitutions.Choose("_Z1kPf", Shape(8, 256));
  ASSERT_NE(chosen, nullptr);
  EXPECT_EQ(chosen->guard.grid().x(), 8u);
  EXPECT_EQ(substitutions.Choose("_Z1kPf", Shape(8, 128)), nullptr);
  EXPECT_EQ(substitutions.Choose("_Z1kPf", Shape(8, 256, 64)), nullptr);
  EXPECT_EQ(substitutions.Choose("_Z1mPf", Shape(8, 256)), nullptr);
  const auto counts = substitutions.Counts();
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].applied, 1u);
  EXPECT_EQ(counts[0].declined, 2u);
  EXPECT_EQ(counts[0].reasons.at(Substitutions::kOtherLaunch), 2u);
}

TEST(SubstitutionsTest, ClustersAndCooperationAreGuardedToo) {
  Substitution tuned;
  tuned.kernel = "k";
  tuned.guard = Shape(4, 256);
  Substitutions substitutions({tuned});
  v1::LaunchConfig launch = Shape(4, 256);
  launch.mutable_cluster()->set_x(1);
  launch.mutable_cluster()->set_y(1);
  launch.mutable_cluster()->set_z(1);
  EXPECT_NE(substitutions.Choose("k", launch), nullptr);
  launch.mutable_cluster()->set_x(2);
  EXPECT_EQ(substitutions.Choose("k", launch), nullptr);
  launch = Shape(4, 256);
  launch.set_cooperative(true);
  EXPECT_EQ(substitutions.Choose("k", launch), nullptr);
}

TEST(SubstitutionsTest, ApplicationsMayCountForThemselves) {
  Substitution tuned;
  tuned.kernel = "_ZL1kPf";
  Substitutions substitutions({tuned});
  EXPECT_EQ(substitutions.Of("_Z1kPf").size(), 1u);
  EXPECT_TRUE(substitutions.Of("_Z1mPf").empty());
  substitutions.AddApplied("_Z1kPf", 3);
  substitutions.AddDeclined("_Z1kPf", "a reason", 2);
  substitutions.AddDeclined("_Z1kPf", "another", 0);
  substitutions.AddApplied("_Z1mPf", 9);
  const auto counts = substitutions.Counts();
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].applied, 3u);
  EXPECT_EQ(counts[0].declined, 2u);
  EXPECT_EQ(counts[0].reasons.size(), 1u);
}

}  // namespace
}  // namespace reprise
