// A Gaussian process's predictions at many candidates at once, kept up to date
// as the process grows: a new point costs one row over the candidates instead
// of a solve for each. Not thread-safe. Memory: 4 bytes a candidate and point.
#ifndef REPRISE_BAYESOPT_CANDIDATE_POSTERIOR_H_
#define REPRISE_BAYESOPT_CANDIDATE_POSTERIOR_H_

#include <cstddef>
#include <vector>

#include "Eigen/Core"
#include "bayesopt/gaussian_process.h"
#include "bayesopt/kernel.h"

namespace reprise::bayesopt {

class CandidatePosterior {
 public:
  // Forgets everything; `candidates`: coordinates by rows, one column each.
  void Reset(Points candidates);
  size_t candidates() const { return static_cast<size_t>(points_.cols()); }
  const Points& points() const { return points_; }

  // Rows for the first `size` points of the process stay valid.
  void Truncate(size_t size);
  // Takes over the process's further points and computes mean() and
  // variance(). The points before must be those of the last call.
  void Update(const GaussianProcess& process);

  const Eigen::ArrayXf& mean() const { return mean_; }
  const Eigen::ArrayXf& variance() const { return variance_; }

 private:
  void AddRow(const GaussianProcess& process);

  Points points_;
  std::vector<Eigen::ArrayXf> rows_;    // row i of L^-1 K(points, candidates)
  std::vector<const float*> row_data_;  // their elements
  Eigen::ArrayXf mean_;
  Eigen::ArrayXf variance_;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_CANDIDATE_POSTERIOR_H_
