// Configurations for a model to choose among: all of a small finite space, or
// else neighbours of the best, draws of the Parzen estimator, and random ones.
#ifndef REPRISE_BAYESOPT_CANDIDATE_GENERATOR_H_
#define REPRISE_BAYESOPT_CANDIDATE_GENERATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "bayesopt/feature_map.h"
#include "bayesopt/kernel.h"
#include "bayesopt/random.h"
#include "bayesopt/space.h"
#include "bayesopt/tpe.h"

namespace reprise::bayesopt {

// All of a finite space, encoded once. Not thread-safe.
// Memory: a configuration, its points and its hash for each.
class CandidatePool {
 public:
  // nullopt: the space has pipelines, more than `most` valid configurations, or
  // too many invalid ones to look through.
  static std::optional<CandidatePool> Build(const Space& space, FeatureMap& map,
                                            size_t most);

  size_t size() const { return configurations_.size(); }
  const Configuration& configuration(size_t i) const {
    return configurations_[i];
  }
  // One column each; the last row is 0 (cost_model.h).
  const Points& points() const { return points_; }
  std::vector<float> Point(size_t i) const;

  // Takes a configuration out of the candidates, if it is among them.
  void Take(const Space& space, const Configuration& configuration);
  bool taken(size_t i) const { return taken_[i]; }
  // How many are not taken.
  size_t left() const { return left_; }

 private:
  CandidatePool() = default;

  std::vector<Configuration> configurations_;
  std::map<ConfigurationHash, size_t> index_;
  std::vector<bool> taken_;
  size_t left_ = 0;
  Points points_;
};

struct GenerationCounts {
  size_t elites = 6;
  size_t neighbors = 32;  // of each elite
  size_t drawn = 64;      // by the estimator
  size_t random = 96;
};

// Distinct valid configurations that are not `seen`, at most as many as
// `counts` say. `elites`: the best so far, best first.
std::vector<Configuration> GenerateCandidates(
    const Space& space, const std::vector<const Configuration*>& elites,
    const TreeParzenEstimator& estimator,
    const std::function<bool(const Configuration&)>& seen,
    const GenerationCounts& counts, Random& random);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_CANDIDATE_GENERATOR_H_
