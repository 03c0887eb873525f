// Which configurations will fail, learned from those that did: one classifier
// for each kind of failure, since what breaks the compiler is not what breaks
// the launch. Deterministic. Not thread-safe.
#ifndef REPRISE_BAYESOPT_FEASIBILITY_H_
#define REPRISE_BAYESOPT_FEASIBILITY_H_

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "bayesopt/random_forest.h"
#include "reprise/v1/types.pb.h"

namespace reprise::bayesopt {

class Feasibility {
 public:
  // What is known of one point.
  struct Example {
    std::vector<float> point;
    v1::OutcomeKind kind = v1::OUTCOME_KIND_UNSPECIFIED;
  };

  // Learns from all of `examples`. A pure function of them.
  void Learn(const std::vector<Example>& examples);

  // Probability that a point comes out OK: the product over the kinds of not
  // failing so. Never 0: nothing is ruled out for good.
  double Probability(std::span<const float> point) const;
  // Probability of one kind of failure; 0 where none was seen.
  double Probability(v1::OutcomeKind failure,
                     std::span<const float> point) const;

  // Whether anything has failed so far.
  bool empty() const { return classifiers_.empty(); }

 private:
  std::map<v1::OutcomeKind, RandomForest> classifiers_;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_FEASIBILITY_H_
