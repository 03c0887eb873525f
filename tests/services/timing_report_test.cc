#include "services/coordinator/timing_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/coordinator/result_files.h"

namespace reprise {
namespace {

using testing::HasSubstr;

v1::Outcome Measured() {
  v1::Outcome outcome;
  outcome.set_kind(v1::OUTCOME_KIND_OK);
  v1::Timing* timing = outcome.mutable_timing();
  timing->set_l2(v1::L2_POLICY_COLD);
  v1::ClockReport* clocks = timing->mutable_clocks();
  clocks->set_samples(11);
  clocks->set_sm_mhz_low(1980);
  clocks->set_sm_mhz_high(1980);
  outcome.add_baseline_ns(100000);
  outcome.add_variant_ns(50000);
  timing->add_baseline_wall_ns(140000);
  timing->add_variant_wall_ns(90400.4);
  timing->set_wall_excess_ns(400.4);
  timing->set_wall_excess_allowed_ns(10000);
  return outcome;
}

TEST(TimingReportTest, SaysHowItWasMeasured) {
  EXPECT_EQ(TimingText(Measured()),
            "cold L2; SM clock 1980 MHz, not held down; wall clock agrees (0.4 "
            "us more than beside the baseline, 10.0 allowed)");
}

TEST(TimingReportTest, SaysWhatWasDiscardedAndWhatIsInDoubt) {
  v1::Outcome outcome = Measured();
  v1::Timing* timing = outcome.mutable_timing();
  for (int i = 0; i < 2; ++i)
    timing->add_discarded_pairs()->set_reason("power cap");
  timing->set_doubtful_pairs(1);
  timing->set_doubt("power cap");
  EXPECT_THAT(TimingText(outcome),
              HasSubstr("; 2 pairs measured again (power cap); the device "
                        "stayed so for 1 pair (power cap)"));
  const nlohmann::ordered_json json = TimingJson(outcome);
  EXPECT_EQ(json["discarded_pairs"].size(), 2u);
  EXPECT_EQ(json["doubtful_pairs"], 1);
}

TEST(TimingReportTest, WallClockDisagreesWhereItRejectsAndNotWhereOthersDo) {
  v1::Outcome outcome = Measured();
  outcome.set_kind(v1::OUTCOME_KIND_REJECTED);
  EXPECT_THAT(TimingText(outcome), HasSubstr("wall clock agrees"));
  outcome.mutable_timing()->set_wall_excess_ns(20000);
  EXPECT_THAT(TimingText(outcome), HasSubstr("wall clock disagrees"));
}

TEST(TimingReportTest, WhatIsNotKnownIsSaidToBe) {
  v1::Outcome outcome;
  outcome.mutable_timing()->mutable_clocks()->set_unknown("nobody looks");
  EXPECT_EQ(TimingText(outcome),
            "caches not controlled; clocks unknown: nobody looks; wall clock "
            "not read");
  const nlohmann::ordered_json json = TimingJson(outcome);
  EXPECT_EQ(json["clocks"]["unknown"], "nobody looks");
  EXPECT_FALSE(json.contains("wall_clock"));
}

TEST(TimingReportTest, TrialsHoldEverySample) {
  TrialRecord trial;
  trial.outcome = Measured();
  const auto json = nlohmann::json::parse(TrialJson(trial));
  EXPECT_EQ(json["timing"]["l2"], "cold L2");
  EXPECT_EQ(json["timing"]["samples"].dump(), "[[100000,50000,140000,90400]]");
  EXPECT_EQ(json["timing"]["clocks"]["sm_mhz"].dump(), "[1980,1980]");
  EXPECT_EQ(json["timing"]["wall_clock"]["allowed_ns"], 10000);
}

TEST(TimingReportTest, ResultsSayByWhatAWinIsBelieved) {
  v1::Result result;
  result.set_better(true);
  result.set_l2(v1::L2_POLICY_WARM);
  result.set_decision_confidence(0.999);
  result.set_least_ratio(1.01);
  *result.mutable_outcome() = Measured();
  v1::Remeasurement* final = result.add_remeasurements();
  final->set_phase("final");
  final->mutable_outcome()->mutable_speedup()->set_ratio(2);
  EXPECT_THAT(ResultText(result),
              HasSubstr("believed   by a sample of its own: above 1 with 99.9% "
                        "confidence, at least 1.01\n"));
  EXPECT_THAT(ResultText(result), HasSubstr("timing     cold L2; SM clock"));
  const nlohmann::ordered_json json = ResultJson(result);
  EXPECT_EQ(json["l2"], "warm L2");
  EXPECT_EQ(json["decision"]["measured_again"][0]["phase"], "final");
  EXPECT_EQ(json["decision"]["measured_again"][0]["speedup"], 2.0);
}

TEST(TimingReportTest, SearchThatFoundNothingStillSaysHowItMeasured) {
  v1::Result result;
  result.mutable_baseline_clocks()->set_unknown("no library");
  EXPECT_THAT(ResultText(result),
              HasSubstr("timing     caches not controlled; clocks unknown: no "
                        "library\n"));
}

}  // namespace
}  // namespace reprise
