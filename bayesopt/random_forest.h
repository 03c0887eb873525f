// A forest of randomized regression trees over encoded points (L. Breiman,
// Random forests, 2001; P. Geurts et al., Extremely randomized trees, 2006:
// every split draws its thresholds). With targets 0 and 1 it estimates a
// probability. Deterministic given `random`. Thread-safe once grown.
#ifndef REPRISE_BAYESOPT_RANDOM_FOREST_H_
#define REPRISE_BAYESOPT_RANDOM_FOREST_H_

#include <cstddef>
#include <span>
#include <vector>

#include "bayesopt/random.h"

namespace reprise::bayesopt {

class RandomForest {
 public:
  struct Options {
    int trees = 24;
    int least_leaf = 2;  // points in a leaf
    int most_depth = 12;
    bool bootstrap = true;
    // Share of the coordinates that a split looks at.
    double split_share = 0.6;
  };
  struct Prediction {
    double mean = 0;
    double variance = 0;  // between the trees
  };

  RandomForest() = default;
  // `points`: one vector of coordinates each, equally long.
  RandomForest(const std::vector<std::vector<float>>& points,
               std::span<const double> targets, const Options& options,
               Random& random);

  bool empty() const { return roots_.empty(); }
  Prediction Predict(std::span<const float> point) const;

 private:
  struct Node {
    int coordinate = -1;  // -1: a leaf
    float threshold = 0;  // left: point[coordinate] <= threshold
    size_t left = 0;
    size_t right = 0;
    double value = 0;  // mean of the targets
  };
  struct Split {
    int coordinate = -1;  // -1: none
    float threshold = 0;
  };
  struct Growth;
  struct Sums;

  static Split BestSplit(const Growth& growth, std::span<const size_t> members,
                         const Sums& all, Random& random);

  size_t Grow(const Growth& growth, std::span<size_t> members, int depth,
              Random& random);

  std::vector<Node> nodes_;
  std::vector<size_t> roots_;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_RANDOM_FOREST_H_
