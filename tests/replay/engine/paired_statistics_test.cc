#include "replay/engine/paired_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace reprise {
namespace {

// Pairs of durations whose true ratio is `ratio`: common drift, independent
// log-normal noise, and now and then a launch that was preempted.
void Simulate(std::mt19937& random, double ratio, double noise, int pairs,
              std::vector<double>* a, std::vector<double>* b) {
  std::normal_distribution<double> normal(0, noise);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int i = 0; i < pairs; ++i) {
    const double drift = 1 + 0.3 * std::sin(i * 0.2);
    a->push_back(1000 * ratio * drift * std::exp(normal(random)) *
                 (uniform(random) < 0.05 ? 3 : 1));
    b->push_back(1000 * drift * std::exp(normal(random)) *
                 (uniform(random) < 0.05 ? 3 : 1));
  }
}

TEST(PairedStatisticsTest, StudentQuantilesMatchTheTables) {
  EXPECT_NEAR(StudentQuantile(0.975, 4), 2.776, 0.03);
  EXPECT_NEAR(StudentQuantile(0.975, 9), 2.262, 0.005);
  EXPECT_NEAR(StudentQuantile(0.975, 30), 2.042, 0.001);
  EXPECT_NEAR(NormalQuantile(0.975), 1.959964, 1e-5);
  EXPECT_NEAR(NormalQuantile(0.001), -3.090232, 1e-5);
}

TEST(PairedStatisticsTest, FindsTheRatioThroughDriftAndPreemption) {
  std::mt19937 random(7);
  std::vector<double> a, b;
  Simulate(random, 1.25, 0.02, 40, &a, &b);
  const RatioEstimate estimate = EstimateRatio(a, b);
  EXPECT_NEAR(estimate.ratio, 1.25, 0.03);
  EXPECT_LT(estimate.low, 1.25);
  EXPECT_GT(estimate.high, 1.25);
  EXPECT_EQ(estimate.pairs, 40);
}

TEST(PairedStatisticsTest, IntervalCoversTheTruthAboutAsOftenAsItSays) {
  std::mt19937 random(11);
  int covered = 0;
  constexpr int kExperiments = 2000;
  for (int i = 0; i < kExperiments; ++i) {
    std::vector<double> a, b;
    Simulate(random, 1.0, 0.03, 15, &a, &b);
    const RatioEstimate estimate = EstimateRatio(a, b);
    covered += estimate.low <= 1 && 1 <= estimate.high;
  }
  EXPECT_GT(covered, kExperiments * 0.92);
  EXPECT_LT(covered, kExperiments * 0.985);
}

TEST(PairedStatisticsTest, TooFewPairsClaimNothing) {
  const RatioEstimate estimate = EstimateRatio({2, 2}, {1, 1});
  EXPECT_EQ(estimate.ratio, 2);
  EXPECT_EQ(estimate.low, 0);
  EXPECT_TRUE(std::isinf(estimate.high));
}

TEST(PredictOneMoreTest, HoldsOneMoreNumberInNineteenOfTwenty) {
  EXPECT_FALSE(PredictOneMore({1}).has_value());
  std::mt19937 random(11);
  std::normal_distribution<double> normal(3, 0.5);
  constexpr int kExperiments = 4000;
  int held = 0;
  for (int i = 0; i < kExperiments; ++i) {
    std::vector<double> values(6);
    for (double& value : values) value = normal(random);
    const auto interval = PredictOneMore(values);
    const double one_more = normal(random);
    held += interval->low <= one_more && one_more <= interval->high;
  }
  EXPECT_NEAR(held / double{kExperiments}, 0.95, 0.012);
}

TEST(StoppingRuleTest, LoserStopsEarlyAndEqualsRunToTheMaximum) {
  StoppingRule rule;
  rule.minimum_pairs = 5;
  rule.maximum_pairs = 12;
  rule.relative_width = 0;
  std::vector<double> a, b;
  std::mt19937 random(3);
  Simulate(random, 0.5, 0.01, 5, &a, &b);
  EXPECT_EQ(DecideStop(rule, a, b), StopReason::kClearLoser);
  a = {10, 11, 10, 11, 10};
  b = {11, 10, 11, 10, 11};
  EXPECT_EQ(DecideStop(rule, a, b), StopReason::kContinue);
  a.resize(12, 10.5);
  b.resize(12, 10.4);
  EXPECT_EQ(DecideStop(rule, a, b), StopReason::kMaximumPairs);
}

TEST(StoppingRuleTest, LookingAfterEveryPairRarelyCallsEqualCodeALoser) {
  StoppingRule rule;
  rule.relative_width = 0;
  std::mt19937 random(5);
  int wrong = 0;
  constexpr int kExperiments = 500;
  for (int i = 0; i < kExperiments; ++i) {
    std::vector<double> a, b, seen_a, seen_b;
    Simulate(random, 1.0, 0.03, rule.maximum_pairs, &a, &b);
    StopReason reason = StopReason::kContinue;
    for (int pair = 0; reason == StopReason::kContinue; ++pair) {
      seen_a.push_back(a[pair]);
      seen_b.push_back(b[pair]);
      reason = DecideStop(rule, seen_a, seen_b);
    }
    wrong += reason == StopReason::kClearLoser;
  }
  EXPECT_LT(wrong, kExperiments * 0.05);
}

}  // namespace
}  // namespace reprise
