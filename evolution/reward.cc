#include "evolution/reward.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace reprise::evolution {
namespace {

constexpr double kLeastRight = 0.4;
constexpr double kRepairedShare = 0.9;
// A gain of this much in log speed-up is a full reward.
constexpr double kFullGain = 0.2;

}  // namespace

std::optional<double> RewardOf(v1::OutcomeKind kind, double speedup,
                               bool repaired) {
  switch (kind) {
    case v1::OUTCOME_KIND_OK:
      return std::max(kLeastRight, speedup * (repaired ? kRepairedShare : 1));
    case v1::OUTCOME_KIND_WRONG_RESULT:
      return 0.3;
    case v1::OUTCOME_KIND_DEVICE_FAULT:
    case v1::OUTCOME_KIND_TIMEOUT:
    case v1::OUTCOME_KIND_INVALID_LAUNCH:
      return 0.2;
    case v1::OUTCOME_KIND_COMPILE_ERROR:
      return 0.1;
    case v1::OUTCOME_KIND_REJECTED:
      return 0;
    default:
      return std::nullopt;
  }
}

double BanditReward(double reward, double parent_speedup) {
  if (reward < kLeastRight) return reward;
  const double gain = std::log(reward / std::max(parent_speedup, 1e-9));
  return kLeastRight +
         (1 - kLeastRight) * std::clamp(gain / kFullGain, 0.0, 1.0);
}

}  // namespace reprise::evolution
