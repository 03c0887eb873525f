#include "bayesopt/candidate_generator.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace reprise::bayesopt {
namespace {

// Of the product of all parameters: what a walk through it visits at most.
constexpr uint64_t kMostVisited = 2'000'000;

}  // namespace

std::optional<CandidatePool> CandidatePool::Build(const Space& space,
                                                  FeatureMap& map,
                                                  size_t most) {
  if (!space.finite() || space.SizeBound() > kMostVisited) return std::nullopt;
  CandidatePool pool;
  const bool all = space.Enumerate(0, [&](const Configuration& candidate) {
    pool.configurations_.push_back(candidate);
    return pool.configurations_.size() <= most;
  });
  if (!all) return std::nullopt;
  const size_t count = pool.size();
  pool.points_.setZero(static_cast<Eigen::Index>(map.width() + 1),
                       static_cast<Eigen::Index>(count));
  std::vector<float> point(map.width());
  for (size_t i = 0; i < count; ++i) {
    map.Encode(pool.configurations_[i], point);
    for (size_t c = 0; c < point.size(); ++c) {
      pool.points_(static_cast<Eigen::Index>(c), static_cast<Eigen::Index>(i)) =
          point[c];
    }
    pool.index_[space.Hash(pool.configurations_[i])] = i;
  }
  pool.taken_.assign(count, false);
  pool.left_ = count;
  return pool;
}

std::vector<float> CandidatePool::Point(size_t i) const {
  std::vector<float> point(static_cast<size_t>(points_.rows()) - 1);
  for (size_t c = 0; c < point.size(); ++c) {
    point[c] =
        points_(static_cast<Eigen::Index>(c), static_cast<Eigen::Index>(i));
  }
  return point;
}

void CandidatePool::Take(const Space& space,
                         const Configuration& configuration) {
  const auto found = index_.find(space.Hash(configuration));
  if (found == index_.end() || taken_[found->second]) return;
  taken_[found->second] = true;
  --left_;
}

std::vector<Configuration> GenerateCandidates(
    const Space& space, const std::vector<const Configuration*>& elites,
    const TreeParzenEstimator& estimator,
    const std::function<bool(const Configuration&)>& seen,
    const GenerationCounts& counts, Random& random) {
  std::vector<Configuration> candidates;
  std::set<ConfigurationHash> known;
  const auto add = [&](std::optional<Configuration> candidate) {
    if (!candidate || seen(*candidate)) return;
    if (!known.insert(space.Hash(*candidate)).second) return;
    candidates.push_back(*std::move(candidate));
  };
  for (size_t i = 0; i < std::min(counts.elites, elites.size()); ++i) {
    for (size_t j = 0; j < counts.neighbors; ++j) {
      auto neighbor = space.Neighbor(*elites[i], random);
      // Every fourth is two steps away.
      if (neighbor && j % 4 == 3) neighbor = space.Neighbor(*neighbor, random);
      add(std::move(neighbor));
    }
  }
  for (size_t i = 0; i < counts.drawn; ++i) add(estimator.Draw(random));
  for (size_t i = 0; i < counts.random; ++i) add(space.Sample(random));
  return candidates;
}

}  // namespace reprise::bayesopt
