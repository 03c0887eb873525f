// Gaussian-process regression with a factor that grows by one point at a time.
//
// The covariance matrix K + noise = L L' is factored row by row
// (Cholesky-Banachiewicz): appending a point costs O(n^2) and gives bit for bit
// what factoring all points anew gives, so that a saved tuner that is restored
// continues exactly. Targets are set afterwards and may change without the
// factor (pending points take whatever target the caller believes).
//
// Not thread-safe. Memory: n^2 / 2 doubles.
#ifndef REPRISE_BAYESOPT_GAUSSIAN_PROCESS_H_
#define REPRISE_BAYESOPT_GAUSSIAN_PROCESS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "Eigen/Core"
#include "bayesopt/kernel.h"

namespace reprise::bayesopt {

class GaussianProcess {
 public:
  GaussianProcess(KernelParameters parameters,
                  std::span<const size_t> group_of);

  const Kernel& kernel() const { return kernel_; }
  size_t size() const { return points_.size(); }
  std::span<const float> point(size_t i) const { return points_[i]; }

  // `measured_variance`: how uncertain this point's target is by measurement,
  // beside the kernel's noise variance.
  void Append(std::span<const float> point, double measured_variance = 0);
  // Keeps the first `size` points.
  void Truncate(size_t size);
  // One target a point; the prior mean is `mean`.
  void SetTargets(std::span<const double> targets, double mean);

  struct Prediction {
    double mean = 0;
    double variance = 0;  // of the noise-free value; never negative
  };
  Prediction Predict(std::span<const float> point) const;
  double LogLikelihood() const;

  // Row i of L: i + 1 places.
  std::span<const double> FactorRow(size_t i) const { return rows_[i]; }
  // L^-1 (targets - mean).
  std::span<const double> whitened() const { return whitened_; }
  double mean() const { return mean_; }

 private:
  Kernel kernel_;
  std::vector<std::vector<float>> points_;
  std::vector<std::vector<double>> rows_;
  std::vector<double> whitened_;
  double mean_ = 0;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_GAUSSIAN_PROCESS_H_
