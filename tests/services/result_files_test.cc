#include "services/coordinator/result_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using ::testing::HasSubstr;

v1::Result Winner() {
  v1::Result result;
  result.set_better(true);
  result.set_perturbed("verified");
  result.set_trials(7);
  v1::RangeErrors* exact = result.mutable_outcome()->add_errors();
  exact->set_name("counts");
  v1::RangeErrors* rounded = result.mutable_outcome()->add_errors();
  rounded->set_name("forces");
  return result;
}

TEST(ResultTextTest, SaysThatEveryBitIsEqual) {
  EXPECT_THAT(ResultText(Winner()),
              HasSubstr("every launch, bit for bit; perturbed inputs: "
                        "verified"));
}

TEST(ResultTextTest, SaysTheLargestErrorAndWhatWasAllowed) {
  v1::Result result = Winner();
  result.mutable_outcome()->mutable_errors(1)->set_max_absolute(3e-5);
  result.mutable_outcome()->mutable_errors(1)->set_max_relative(2e-6);
  result.add_range_tolerances();
  v1::Tolerance* allowed = result.add_range_tolerances();
  allowed->set_relative(1e-4);
  EXPECT_THAT(ResultText(result),
              HasSubstr("every launch, largest relative error 2e-06 in forces "
                        "(allowed 0.0001)"));
  allowed->set_absolute(2e-4);
  EXPECT_THAT(ResultText(result),
              HasSubstr("every launch, largest error 3e-05 in forces (allowed "
                        "0.0002 + 0.0001 of the value)"));
  const nlohmann::ordered_json json = ResultJson(result);
  EXPECT_EQ(json["verification"][1]["allowed_relative"], 1e-4);
}

TEST(ResultTextTest, TheGainInAProgramLiesBetweenWhatCachesMayHold) {
  v1::Result result;
  result.set_better(true);
  v1::Speedup& cold = *result.mutable_outcome()->mutable_speedup();
  cold.set_ci95_low(1.19);
  cold.set_ci95_high(1.2);
  EXPECT_EQ(ExpectedInProgram(result).low, 1.19);
  EXPECT_EQ(ExpectedInProgram(result).high, 1.2);
  v1::PolicySpeedup& warm = *result.add_other_l2();
  warm.set_l2(v1::L2_POLICY_WARM);
  warm.mutable_speedup()->set_ratio(1.25);
  warm.mutable_speedup()->set_ci95_low(1.24);
  warm.mutable_speedup()->set_ci95_high(1.26);
  EXPECT_EQ(ExpectedInProgram(result).low, 1.19);
  EXPECT_EQ(ExpectedInProgram(result).high, 1.26);
  v1::PolicySpeedup& dirty = *result.add_other_l2();
  dirty.set_l2(v1::L2_POLICY_DIRTY);
  dirty.mutable_speedup()->set_ci95_low(1.17);
  dirty.mutable_speedup()->set_ci95_high(1.18);
  // Loaded anew, it varies by more than from launch to launch.
  dirty.mutable_speedup()->set_anew_low(1.16);
  dirty.mutable_speedup()->set_anew_high(1.19);
  EXPECT_EQ(ExpectedInProgram(result).low, 1.16);
  EXPECT_EQ(ExpectedInProgram(result).high, 1.26);
  EXPECT_THAT(ResultText(result),
              HasSubstr("warm L2    1.250x, 95% interval 1.240 to 1.260"));
}

TEST(ResultTextTest, ASearchWithoutTrialsIsNotOneThatFoundNothing) {
  v1::Result result;
  EXPECT_THAT(ResultText(result),
              HasSubstr("the budget ended before the first trial"));
  result.set_interrupted(true);
  EXPECT_THAT(ResultText(result),
              HasSubstr("interrupted before the first trial"));
  result.set_trials(1);
  EXPECT_THAT(ResultText(result), HasSubstr("nothing better found in 1 trial"));
  EXPECT_THAT(ResultText(result), HasSubstr("interrupted after 1 trial,"));
}

TEST(ResultTextTest, ProposalsOfKnownCodeAreNoTrials) {
  v1::Result result;
  result.set_trials(3);
  (*result.mutable_outcomes())["OK"] = 2;
  (*result.mutable_outcomes())["WRONG_RESULT"] = 1;
  EXPECT_EQ(OutcomesText(result), "2 ok, 1 wrong result");
  (*result.mutable_outcomes())["SAME_CODE"] = 9;
  EXPECT_EQ(OutcomesText(result),
            "2 ok, 1 wrong result; 9 more proposals gave machine code known "
            "by then");
}

}  // namespace
}  // namespace reprise
