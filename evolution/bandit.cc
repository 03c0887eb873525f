#include "evolution/bandit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace reprise::evolution {

std::vector<std::string> Bandit::Rank(std::vector<std::string> arms) const {
  std::vector<std::pair<double, size_t>> scores;
  for (size_t i = 0; i < arms.size(); ++i) {
    const auto found = arms_.find(arms[i]);
    double score = std::numeric_limits<double>::infinity();
    if (found != arms_.end() && found->second.pulls > 0) {
      const auto pulls = static_cast<double>(found->second.pulls);
      score = found->second.reward / pulls +
              exploration_ *
                  std::sqrt(std::log(static_cast<double>(pulls_ + 1)) / pulls);
    }
    scores.emplace_back(-score, i);
  }
  std::sort(scores.begin(), scores.end());
  std::vector<std::string> ranked;
  for (const auto& [score, i] : scores) ranked.push_back(std::move(arms[i]));
  return ranked;
}

void Bandit::Pull(const std::string& arm) {
  ++arms_[arm].pulls;
  ++pulls_;
}

void Bandit::Reward(const std::string& arm, double reward) {
  arms_[arm].reward += std::clamp(reward, 0.0, 1.0);
}

void Bandit::Forget(const std::string& arm) {
  Arm& pulled = arms_[arm];
  if (pulled.pulls == 0) return;
  --pulled.pulls;
  --pulls_;
}

}  // namespace reprise::evolution
