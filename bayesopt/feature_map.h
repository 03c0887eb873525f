// Configurations as points of a Euclidean space, for the models.
//
// Every parameter is one or more groups of coordinates; a model weighs groups,
// not coordinates, so that squared distances are sums over groups:
//
//   ordinal, integer       one coordinate in [0, 1]: the position's place in
//                          the parameter's range, by logarithm where all
//                          values are positive numbers. Where many of them are
//                          no powers of two, a second group: how often two
//                          divides the number (block sizes want whole warps,
//                          vector loads even tiles)
//   categorical, boolean   one coordinate a level, 0 or 1/sqrt(2): different
//                          levels are at distance 1 (Hamming)
//   permutation            one coordinate for every pair of items: which comes
//                          first (the distance is Kendall's)
//   pipeline               hashed counts of its passes (one group) and of
//                          pairs of neighbouring passes (another), relative to
//                          the initial pipeline
//   conditional            one more coordinate in its group that says inactive;
//                          the others rest in the middle, so that two inactive
//                          ones never differ
//
// Statistics: a caller may add numbers of its own per configuration (counts
// that LLVM's passes print, say); they form a last group.
//
// Not thread-safe: pipelines met before are remembered, a bounded number.
#ifndef REPRISE_BAYESOPT_FEATURE_MAP_H_
#define REPRISE_BAYESOPT_FEATURE_MAP_H_

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "bayesopt/space.h"

namespace reprise::bayesopt {

// Writes `size` finite numbers of about unit range that describe a
// configuration beyond its values. Must be pure.
struct StatisticsSource {
  size_t size = 0;
  std::function<void(const Configuration&, std::span<float>)> fill;
};

class FeatureMap {
 public:
  // `space` must outlive the map.
  explicit FeatureMap(const Space& space, StatisticsSource statistics = {});

  // Coordinates of a point.
  size_t width() const { return group_of_.size(); }
  size_t groups() const { return groups_; }
  // Which group a coordinate belongs to; groups are consecutive.
  const std::vector<size_t>& group_of() const { return group_of_; }

  // `point` has width() places.
  void Encode(const Configuration& configuration, std::span<float> point);

 private:
  struct Block {
    size_t parameter = 0;
    size_t first = 0;      // coordinate
    size_t width = 0;      // without the coordinate that says inactive
    bool ordered = false;  // ordinal and integer
    bool aligned = false;  // a second coordinate: powers of two in the number
    bool masked = false;   // that coordinate is there, at first + width
    float low = 0;         // ordinal and integer: position of 0 and width of 1
    float range = 1;
  };

  void Add(const Space& space, size_t parameter);
  void EncodeActive(const Block& block, const Value& value,
                    std::span<float> point);
  // Counts of a pipeline's passes and pairs.
  const std::vector<float>& CountsOf(const std::string& pipeline);

  const Space& space_;
  const StatisticsSource statistics_;
  std::vector<Block> blocks_;
  std::vector<size_t> group_of_;
  size_t groups_ = 0;
  std::map<std::string, std::vector<float>> counts_;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_FEATURE_MAP_H_
