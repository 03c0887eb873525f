#include "bayesopt/gaussian_process.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

namespace reprise::bayesopt {
namespace {

// Keeps the factor positive where points nearly coincide.
constexpr double kLeastPivot = 1e-9;

double Dot(const double* a, const double* b, size_t count) {
  const auto size = static_cast<Eigen::Index>(count);
  return Eigen::Map<const Eigen::VectorXd>(a, size).dot(
      Eigen::Map<const Eigen::VectorXd>(b, size));
}

}  // namespace

GaussianProcess::GaussianProcess(KernelParameters parameters,
                                 std::span<const size_t> group_of)
    : kernel_(std::move(parameters), group_of) {}

void GaussianProcess::Append(std::span<const float> point,
                             double measured_variance) {
  const size_t n = points_.size();
  std::vector<double> row(n + 1);
  for (size_t i = 0; i < n; ++i) {
    const std::vector<double>& other = rows_[i];
    row[i] = (kernel_.Between(points_[i], point) -
              Dot(row.data(), other.data(), i)) /
             other[i];
  }
  const double variance = kernel_.parameters().signal_variance() +
                          kernel_.parameters().noise_variance() +
                          measured_variance;
  row[n] = std::sqrt(
      std::max(variance - Dot(row.data(), row.data(), n), kLeastPivot));
  rows_.push_back(std::move(row));
  points_.emplace_back(point.begin(), point.end());
}

void GaussianProcess::Truncate(size_t size) {
  points_.resize(size);
  rows_.resize(size);
  whitened_.resize(std::min(size, whitened_.size()));
}

void GaussianProcess::SetTargets(std::span<const double> targets, double mean) {
  mean_ = mean;
  whitened_.resize(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    whitened_[i] =
        (targets[i] - mean - Dot(rows_[i].data(), whitened_.data(), i)) /
        rows_[i][i];
  }
}

GaussianProcess::Prediction GaussianProcess::Predict(
    std::span<const float> point) const {
  std::vector<double> v(whitened_.size());
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = (kernel_.Between(points_[i], point) -
            Dot(v.data(), rows_[i].data(), i)) /
           rows_[i][i];
  }
  const double variance = kernel_.parameters().signal_variance() -
                          Dot(v.data(), v.data(), v.size());
  return {mean_ + Dot(v.data(), whitened_.data(), v.size()),
          std::max(variance, 0.0)};
}

double GaussianProcess::LogLikelihood() const {
  double sum = 0;
  for (size_t i = 0; i < whitened_.size(); ++i) {
    sum -= whitened_[i] * whitened_[i] / 2 + std::log(rows_[i][i]) +
           std::log(2 * std::numbers::pi) / 2;
  }
  return sum;
}

}  // namespace reprise::bayesopt
