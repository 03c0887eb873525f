#include "bayesopt/random_forest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace reprise::bayesopt {

struct RandomForest::Growth {
  const std::vector<std::vector<float>>& points;
  std::span<const double> targets;
  const Options& options;
};

struct RandomForest::Sums {
  double count = 0;
  double sum = 0;
  // Sum of squares about the mean, but for a term that no split changes.
  double Gain() const { return count > 0 ? sum * sum / count : 0; }
};

RandomForest::RandomForest(const std::vector<std::vector<float>>& points,
                           std::span<const double> targets,
                           const Options& options, Random& random) {
  if (points.empty()) return;
  const Growth growth{points, targets, options};
  for (int tree = 0; tree < options.trees; ++tree) {
    std::vector<size_t> members(points.size());
    std::iota(members.begin(), members.end(), size_t{0});
    if (options.bootstrap) {
      for (size_t& member : members) member = random.Below(points.size());
    }
    roots_.push_back(Grow(growth, members, 0, random));
  }
}

// The best of one random threshold for each of some coordinates, or of all
// where none of those can be split.
RandomForest::Split RandomForest::BestSplit(const Growth& growth,
                                            std::span<const size_t> members,
                                            const Sums& all, Random& random) {
  const auto least = static_cast<double>(growth.options.least_leaf);
  Split best;
  double best_gain = all.Gain() + 1e-12;
  for (const double share : {growth.options.split_share, 1.0}) {
    for (size_t c = 0; c < growth.points[0].size(); ++c) {
      if (!random.Chance(share)) continue;
      float low = std::numeric_limits<float>::infinity();
      float high = -low;
      for (const size_t member : members) {
        low = std::min(low, growth.points[member][c]);
        high = std::max(high, growth.points[member][c]);
      }
      if (!(high > low)) continue;
      const float draw =
          low + static_cast<float>(random.Unit() * 0.999) * (high - low);
      Sums left;
      for (const size_t member : members) {
        if (growth.points[member][c] > draw) continue;
        left.count += 1;
        left.sum += growth.targets[member];
      }
      const Sums right{all.count - left.count, all.sum - left.sum};
      if (left.count < least || right.count < least) continue;
      const double gain = left.Gain() + right.Gain();
      if (gain <= best_gain) continue;
      best_gain = gain;
      best = {static_cast<int>(c), draw};
    }
    if (best.coordinate >= 0) break;
  }
  return best;
}

size_t RandomForest::Grow(const Growth& growth, std::span<size_t> members,
                          int depth, Random& random) {
  const size_t index = nodes_.size();
  nodes_.emplace_back();
  Sums all;
  bool alike = true;
  for (const size_t member : members) {
    all.count += 1;
    all.sum += growth.targets[member];
    alike &= growth.targets[member] == growth.targets[members[0]];
  }
  nodes_[index].value = all.sum / all.count;
  const auto least = static_cast<double>(growth.options.least_leaf);
  if (alike || depth >= growth.options.most_depth || all.count < 2 * least) {
    return index;
  }
  const auto [coordinate, threshold] = BestSplit(growth, members, all, random);
  if (coordinate < 0) return index;
  const auto middle =
      std::stable_partition(members.begin(), members.end(), [&](size_t member) {
        return growth.points[member][static_cast<size_t>(coordinate)] <=
               threshold;
      });
  const auto left_size = static_cast<size_t>(middle - members.begin());
  const size_t left = Grow(growth, members.first(left_size), depth + 1, random);
  const size_t right =
      Grow(growth, members.subspan(left_size), depth + 1, random);
  nodes_[index].coordinate = coordinate;
  nodes_[index].threshold = threshold;
  nodes_[index].left = left;
  nodes_[index].right = right;
  return index;
}

RandomForest::Prediction RandomForest::Predict(
    std::span<const float> point) const {
  double sum = 0;
  double squares = 0;
  for (const size_t root : roots_) {
    size_t at = root;
    while (nodes_[at].coordinate >= 0) {
      const Node& node = nodes_[at];
      at = point[static_cast<size_t>(node.coordinate)] <= node.threshold
               ? node.left
               : node.right;
    }
    sum += nodes_[at].value;
    squares += nodes_[at].value * nodes_[at].value;
  }
  const auto count = static_cast<double>(std::max<size_t>(1, roots_.size()));
  const double mean = sum / count;
  return {mean, std::max(0.0, squares / count - mean * mean)};
}

}  // namespace reprise::bayesopt
