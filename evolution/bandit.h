// A UCB1 bandit over named arms: which kinds of change pay. Not thread-safe.
#ifndef REPRISE_EVOLUTION_BANDIT_H_
#define REPRISE_EVOLUTION_BANDIT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reprise::evolution {

class Bandit {
 public:
  explicit Bandit(double exploration = 0.5) : exploration_(exploration) {}

  // `arms` by score, best first: mean reward plus the exploration bonus; an arm
  // never pulled comes before all others. Ties keep the order of `arms`.
  std::vector<std::string> Rank(std::vector<std::string> arms) const;

  // A pull whose reward is not known yet counts against its arm until told.
  void Pull(const std::string& arm);
  // `reward` from 0 to 1 for a pull of before.
  void Reward(const std::string& arm, double reward);
  // A pull that taught nothing is taken back.
  void Forget(const std::string& arm);

 private:
  struct Arm {
    uint64_t pulls = 0;
    double reward = 0;
  };
  double exploration_;
  uint64_t pulls_ = 0;
  std::map<std::string, Arm> arms_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_BANDIT_H_
