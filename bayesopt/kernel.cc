#include "bayesopt/kernel.h"

#include <cmath>
#include <utility>
#include <vector>

#include "bayesopt/vector_loops.h"

namespace reprise::bayesopt {
namespace {

const double kSqrt5 = std::sqrt(5.0);

}  // namespace

double KernelParameters::signal_variance() const {
  return std::exp(log_signal_variance);
}
double KernelParameters::noise_variance() const {
  return std::exp(log_noise_variance);
}

double Matern52(double squared) {
  const double r = kSqrt5 * std::sqrt(squared);
  return (1 + r + r * r / 3) * std::exp(-r);
}

double Matern52Slope(double squared) {
  const double r = kSqrt5 * std::sqrt(squared);
  return 5.0 / 3.0 * (1 + r) * std::exp(-r);
}

Kernel::Kernel(KernelParameters parameters, std::span<const size_t> group_of)
    : parameters_(std::move(parameters)) {
  for (const size_t group : group_of) {
    scale_.push_back(
        static_cast<float>(std::exp(-parameters_.log_lengths[group])));
  }
}

void Kernel::Against(const Points& points, std::span<const float> point,
                     Eigen::ArrayXf& out) const {
  out.setZero(points.cols());
  const auto count = static_cast<size_t>(points.cols());
  for (size_t i = 0; i < scale_.size(); ++i) {
    AddSquaredDifferences(points.row(static_cast<Eigen::Index>(i)).data(),
                          point[i], scale_[i], count, out.data());
  }
  MaternInPlace(static_cast<float>(parameters_.signal_variance()), count,
                out.data());
}

double Kernel::Between(std::span<const float> a,
                       std::span<const float> b) const {
  double squared = 0;
  for (size_t i = 0; i < scale_.size(); ++i) {
    const double difference = (double{a[i]} - double{b[i]}) * double{scale_[i]};
    squared += difference * difference;
  }
  return parameters_.signal_variance() * Matern52(squared);
}

}  // namespace reprise::bayesopt
