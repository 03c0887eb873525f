// Which of many candidates to try: by a score of a model's, and the probability
// of coming out OK. Thread-safe: pure functions.
#ifndef REPRISE_BAYESOPT_CANDIDATE_CHOICE_H_
#define REPRISE_BAYESOPT_CANDIDATE_CHOICE_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "bayesopt/candidate_posterior.h"
#include "bayesopt/cost_model.h"
#include "bayesopt/feasibility.h"
#include "bayesopt/kernel.h"
#include "bayesopt/random.h"

namespace reprise::bayesopt {

// Higher is better.
struct Scored {
  double score = 0;
  size_t candidate = 0;
};

// By log expected improvement under the process that `posterior` is of, which
// is `model`'s.
std::vector<Scored> ScoreByImprovement(const CandidatePosterior& posterior,
                                       const CostModel& model);

// By the process's mean: the lowest.
std::vector<Scored> ScoreByMean(const CandidatePosterior& posterior);

// By log expected improvement under a random forest over `data`, in the scale
// of `model`. `points`: one column a candidate; rows beyond those of the data
// are not looked at.
std::vector<Scored> ScoreByForest(const Points& points,
                                  const std::vector<CostModel::Datum>& data,
                                  const CostModel& model, Random& random);

// The candidate with the highest score plus `caution` times the log probability
// of coming out OK, among those that `eligible` takes; ties go to the first.
// `point` encodes a candidate. Candidates are looked at by falling score until
// none that follows can be better. nullopt: none is eligible.
std::optional<size_t> Choose(
    std::vector<Scored> scored, const Feasibility& feasibility, double caution,
    const std::function<std::vector<float>(size_t)>& point,
    const std::function<bool(size_t)>& eligible);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_CANDIDATE_CHOICE_H_
