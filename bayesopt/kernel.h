// The covariance of log costs: Matérn-5/2 of a distance in which every group of
// coordinates has a length of its own (automatic relevance determination; C. E.
// Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning, 2006,
// eq. 4.17 and 5.1). Over the one-hot coordinates of a categorical the distance
// is a weighted Hamming distance.
//
// Pure functions and plain values; thread-safe.
#ifndef REPRISE_BAYESOPT_KERNEL_H_
#define REPRISE_BAYESOPT_KERNEL_H_

#include <cstddef>
#include <span>
#include <vector>

#include "Eigen/Core"

namespace reprise::bayesopt {

// Coordinates by rows, points by columns; unscaled.
using Points =
    Eigen::Array<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct KernelParameters {
  // Natural logarithms. Lengths: one a group.
  std::vector<double> log_lengths;
  double log_signal_variance = 0;
  double log_noise_variance = -6;
  friend bool operator==(const KernelParameters&,
                         const KernelParameters&) = default;

  double signal_variance() const;
  double noise_variance() const;
};

// Matérn-5/2 of unit variance at squared distance `squared`.
double Matern52(double squared);
// -2 d Matern52 / d squared.
double Matern52Slope(double squared);

class Kernel {
 public:
  // `group_of`: the group of each coordinate (FeatureMap).
  Kernel(KernelParameters parameters, std::span<const size_t> group_of);

  const KernelParameters& parameters() const { return parameters_; }

  // Covariances of `point` (unscaled) with all columns of `points`. In single
  // precision: candidates are many.
  void Against(const Points& points, std::span<const float> point,
               Eigen::ArrayXf& out) const;
  // Of two points, in double precision.
  double Between(std::span<const float> a, std::span<const float> b) const;

 private:
  KernelParameters parameters_;
  std::vector<float> scale_;  // 1 / length, by coordinate
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_KERNEL_H_
