// Shares trials among proposers by what they have gained: each arm's share is a
// least one plus its part of the rest in proportion to its discounted rate of
// gains. A pure function of what it is told; not thread-safe.
#ifndef REPRISE_BAYESOPT_BANDIT_H_
#define REPRISE_BAYESOPT_BANDIT_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "bayesopt/random.h"

namespace reprise::bayesopt {

class Bandit {
 public:
  struct Arm {
    double least_share = 0;
    // What is believed of it at first, and weighs as much as this many trials.
    double prior_rate = 0.1;
    double prior_trials = 10;
  };
  // The least shares sum up to 1 at most; priors are positive.
  explicit Bandit(std::vector<Arm> arms)
      : arms_(std::move(arms)), counts_(arms_.size()) {}

  // An outcome of the arm; `gained`: a new incumbent.
  void Tell(size_t arm, bool gained) {
    counts_[arm].trials = counts_[arm].trials * kDiscount + 1;
    counts_[arm].gains = counts_[arm].gains * kDiscount + (gained ? 1 : 0);
  }

  std::vector<double> Shares() const {
    double free = 1;
    double rates = 0;
    for (size_t i = 0; i < arms_.size(); ++i) {
      free -= arms_[i].least_share;
      rates += Rate(i);
    }
    std::vector<double> shares;
    for (size_t i = 0; i < arms_.size(); ++i) {
      shares.push_back(arms_[i].least_share + free * Rate(i) / rates);
    }
    return shares;
  }

  size_t Pick(Random& random) const {
    const std::vector<double> shares = Shares();
    double draw = random.Unit();
    for (size_t i = 0; i + 1 < shares.size(); ++i) {
      if (draw < shares[i]) return i;
      draw -= shares[i];
    }
    return shares.size() - 1;
  }

 private:
  static constexpr double kDiscount = 0.95;
  struct Counts {
    double trials = 0;
    double gains = 0;
  };

  double Rate(size_t i) const {
    const Arm& arm = arms_[i];
    return (counts_[i].gains + arm.prior_rate * arm.prior_trials) /
           (counts_[i].trials + arm.prior_trials);
  }

  std::vector<Arm> arms_;
  std::vector<Counts> counts_;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_BANDIT_H_
