// What a sampler by models makes of a tuner's history: encoded, sorted into
// what came out OK and what failed, and the few numbers that steer a search. A
// pure function of the history's observations and imports. Not thread-safe.
#ifndef REPRISE_BAYESOPT_EXPERIENCE_H_
#define REPRISE_BAYESOPT_EXPERIENCE_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <string_view>
#include <vector>

#include "bayesopt/cost_model.h"
#include "bayesopt/feasibility.h"
#include "bayesopt/feature_map.h"
#include "bayesopt/sampler.h"
#include "bayesopt/space.h"
#include "bayesopt/tpe.h"

namespace reprise::bayesopt {

class Experience {
 public:
  // Told of every observation that is taken in, and whether it was the cheapest
  // so far.
  using Visitor = std::function<void(const Observation&, bool gained)>;

  // Both must outlive the experience.
  Experience(const Space& space, FeatureMap& map) : space_(space), map_(map) {}

  // Takes in what the history has beyond the last call's.
  void Digest(const History& history, const Visitor& visit);

  std::vector<float> Encode(const Configuration& configuration) const;

  // Of the observations that came out OK, in their order.
  const std::vector<CostModel::Datum>& costs() const { return costs_; }
  const std::vector<CostModel::Datum>& imported() const { return imported_; }
  // Of all observations, in their order.
  const std::vector<Feasibility::Example>& outcomes() const {
    return outcomes_;
  }
  bool any_failed() const { return outcomes_.size() > costs_.size(); }

  // How many observations are of configurations that somebody else named
  // (seeds, injected ones): good ones perhaps, but no sample of the space.
  size_t given() const { return given_; }

  // Of Digest's last history: its cheapest configurations, best first, at most
  // as many.
  std::vector<const Configuration*> Elites(const History& history,
                                           size_t most) const;
  TreeParzenEstimator Parzen(const History& history) const;

  // How much a log probability of coming out OK counts beside a log expected
  // improvement, 1 or more: more the more of the latest trials failed beyond
  // what is tolerated, and less is tolerated the longer nothing was gained.
  // Where nothing feasible is left to gain, expected improvement alone would go
  // on trying what fails.
  double Caution() const;

 private:
  const Space& space_;
  FeatureMap& map_;
  size_t consumed_ = 0;  // observations
  double best_cost_ = std::numeric_limits<double>::infinity();
  size_t gained_at_ = 0;  // observation of the latest gain
  size_t given_ = 0;
  std::vector<CostModel::Datum> costs_;
  std::vector<size_t> observation_of_;  // of the costs
  std::vector<Feasibility::Example> outcomes_;
  std::vector<CostModel::Datum> imported_;
};

// Whether a trial of this origin was named by the caller, not by a sampler.
bool IsGiven(std::string_view origin);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_EXPERIENCE_H_
