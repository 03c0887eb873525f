#include "evolution/reward.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

TEST(RewardTest, TheFurtherItComesTheHigher) {
  const std::vector<double> rising = {
      *RewardOf(v1::OUTCOME_KIND_REJECTED, 100, false),
      *RewardOf(v1::OUTCOME_KIND_COMPILE_ERROR, 100, false),
      *RewardOf(v1::OUTCOME_KIND_DEVICE_FAULT, 100, false),
      *RewardOf(v1::OUTCOME_KIND_WRONG_RESULT, 100, false),
      *RewardOf(v1::OUTCOME_KIND_OK, 0.01, false),
      *RewardOf(v1::OUTCOME_KIND_OK, 1.5, true),
      *RewardOf(v1::OUTCOME_KIND_OK, 1.5, false),
      *RewardOf(v1::OUTCOME_KIND_OK, 3, false)};
  for (size_t i = 1; i < rising.size(); ++i)
    EXPECT_GT(rising[i], rising[i - 1]) << i;
  EXPECT_EQ(*RewardOf(v1::OUTCOME_KIND_TIMEOUT, 1, false),
            *RewardOf(v1::OUTCOME_KIND_INVALID_LAUNCH, 1, false));
  EXPECT_FALSE(RewardOf(v1::OUTCOME_KIND_INFRASTRUCTURE, 1, false));
  EXPECT_FALSE(RewardOf(v1::OUTCOME_KIND_UNSPECIFIED, 1, false));
}

TEST(RewardTest, BanditsSeeTheGainOverTheParent) {
  EXPECT_EQ(BanditReward(0.3, 1), 0.3);
  EXPECT_DOUBLE_EQ(BanditReward(1.5, 1.5), 0.4);
  EXPECT_DOUBLE_EQ(BanditReward(0.4, 1), 0.4);
  EXPECT_NEAR(BanditReward(2 * std::exp(0.1), 2), 0.7, 1e-12);
  EXPECT_DOUBLE_EQ(BanditReward(100, 2), 1);
}

}  // namespace
}  // namespace reprise::evolution
