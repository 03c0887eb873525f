// Tree-structured Parzen estimator (J. Bergstra et al., Algorithms for
// hyper-parameter optimization, 2011): which values the cheap trials have that
// the others have not, parameter by parameter. Given a parameter's value,
// neighbouring values of an ordinal share in the count; a pipeline is its
// passes. Deterministic. Not thread-safe.
#ifndef REPRISE_BAYESOPT_TPE_H_
#define REPRISE_BAYESOPT_TPE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bayesopt/random.h"
#include "bayesopt/space.h"

namespace reprise::bayesopt {

class TreeParzenEstimator {
 public:
  struct Example {
    const Configuration* configuration = nullptr;
    // Lower is better; infinity where the trial failed.
    double cost = 0;
  };

  // `space` and the configurations must outlive the estimator.
  TreeParzenEstimator(const Space& space, const std::vector<Example>& examples);

  // log of the density among the cheap over that among the others, up to a
  // constant; higher is better.
  double Score(const Configuration& configuration);

  // A valid configuration with values that cheap trials have. nullopt: there
  // are no examples, or constraints were in the way.
  std::optional<Configuration> Draw(Random& random) const;

 private:
  // What a value counts as: an index, or one of a bounded number of ranges of
  // indices. nullopt: inactive.
  std::optional<size_t> Bin(size_t parameter, const Value& value) const;
  void CountValues(size_t parameter);
  void CountPasses(size_t parameter);
  double ScorePipeline(size_t parameter, const std::string& text);

  const Space& space_;
  std::vector<Example> examples_;  // cheapest first
  size_t good_count_ = 0;          // of the examples
  // By parameter: log ratio by bin, or by pass where it is a pipeline.
  std::vector<std::vector<double>> ratios_;
  // Counted when first asked for.
  std::vector<std::map<std::string, double>> passes_;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_TPE_H_
