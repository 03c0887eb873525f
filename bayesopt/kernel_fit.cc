#include "bayesopt/kernel_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "Eigen/Cholesky"
#include "nlopt.h"

namespace reprise::bayesopt {
namespace {

constexpr double kJitter = 1e-8;

// Squared distances within each group, unscaled.
std::vector<Eigen::ArrayXXd> GroupDistances(const FitData& data,
                                            size_t groups) {
  const Eigen::Index n = data.points.cols();
  std::vector<Eigen::ArrayXXd> distances(groups, Eigen::ArrayXXd::Zero(n, n));
  for (Eigen::Index i = 0; i < data.points.rows(); ++i) {
    Eigen::ArrayXXd& group = distances[data.group_of[static_cast<size_t>(i)]];
    const auto row = data.points.row(i).array();
    for (Eigen::Index j = 0; j < n; ++j) {
      group.col(j) += (row.transpose() - row(j)).square();
    }
  }
  return distances;
}

class Posterior {
 public:
  Posterior(const FitData& data, size_t groups, const FitPriors& priors)
      : data_(data),
        priors_(priors),
        distances_(GroupDistances(data, groups)) {}

  // `gradient`: as many places as x, or empty.
  double At(std::span<const double> x, std::span<double> gradient) const {
    const size_t groups = distances_.size();
    const Eigen::Index n = data_.targets.size();
    const double signal = std::exp(x[groups]);
    const double noise = std::exp(x[groups + 1]);
    Eigen::ArrayXXd squared = Eigen::ArrayXXd::Zero(n, n);
    for (size_t g = 0; g < groups; ++g) {
      squared += std::exp(-2 * x[g]) * distances_[g];
    }
    squared = (5 * squared).sqrt();
    const Eigen::ArrayXXd decay = signal * (-squared).exp();
    const Eigen::MatrixXd covariance =
        decay * (1 + squared + squared.square() / 3);
    Eigen::MatrixXd with_noise = covariance;
    with_noise.diagonal() +=
        data_.measured_variances +
        Eigen::VectorXd::Constant(n, noise + kJitter * (1 + signal));
    const Eigen::LLT<Eigen::MatrixXd> factor(with_noise);
    if (factor.info() != Eigen::Success) {
      std::fill(gradient.begin(), gradient.end(), 0.0);
      return -std::numeric_limits<double>::max();
    }
    const Eigen::VectorXd alpha = factor.solve(data_.targets);
    double value = -data_.targets.dot(alpha) / 2;
    for (Eigen::Index i = 0; i < n; ++i) {
      value -= std::log(factor.matrixLLT()(i, i));
    }
    if (!gradient.empty()) {
      // d/dx = tr((alpha alpha' - K^-1) dK/dx) / 2
      Eigen::MatrixXd weight = -factor.solve(Eigen::MatrixXd::Identity(n, n));
      weight.noalias() += alpha * alpha.transpose();
      const Eigen::ArrayXXd slope =
          weight.array() * decay * (1 + squared) * (5.0 / 3.0);
      for (size_t g = 0; g < groups; ++g) {
        gradient[g] = std::exp(-2 * x[g]) * (slope * distances_[g]).sum() / 2;
      }
      gradient[groups] = (weight.array() * covariance.array()).sum() / 2;
      gradient[groups + 1] = noise * weight.diagonal().sum() / 2;
    }
    return value + Prior(x, gradient);
  }

 private:
  double Prior(std::span<const double> x, std::span<double> gradient) const {
    double value = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const LogPrior& prior = i < distances_.size()    ? priors_.length
                              : i == distances_.size() ? priors_.signal
                                                       : priors_.noise;
      const double z = (x[i] - prior.mean) / prior.deviation;
      value -= z * z / 2;
      if (!gradient.empty()) gradient[i] -= z / prior.deviation;
    }
    return value;
  }

  const FitData& data_;
  const FitPriors& priors_;
  const std::vector<Eigen::ArrayXXd> distances_;
};

std::vector<double> ToVector(const KernelParameters& parameters) {
  std::vector<double> x = parameters.log_lengths;
  x.push_back(parameters.log_signal_variance);
  x.push_back(parameters.log_noise_variance);
  return x;
}

KernelParameters FromVector(const std::vector<double>& x) {
  KernelParameters parameters;
  parameters.log_lengths.assign(x.begin(), x.end() - 2);
  parameters.log_signal_variance = x[x.size() - 2];
  parameters.log_noise_variance = x[x.size() - 1];
  return parameters;
}

// What NLopt climbs; keeps the best point seen, since NLopt may end elsewhere.
struct Climb {
  const Posterior* posterior;
  std::vector<double> best;
  double best_value;
};

double Evaluate(unsigned count, const double* x, double* gradient, void* data) {
  auto* climb = static_cast<Climb*>(data);
  const double value = climb->posterior->At(
      {x, count}, {gradient, gradient == nullptr ? 0 : size_t{count}});
  if (value > climb->best_value) {
    climb->best_value = value;
    climb->best.assign(x, x + count);
  }
  return value;
}

}  // namespace

double LogPosterior(const FitData& data, const KernelParameters& parameters,
                    const FitPriors& priors, std::vector<double>* gradient) {
  const std::vector<double> x = ToVector(parameters);
  std::span<double> into;
  if (gradient != nullptr) {
    gradient->resize(x.size());
    into = *gradient;
  }
  return Posterior(data, parameters.log_lengths.size(), priors).At(x, into);
}

KernelParameters PriorMean(size_t groups, const FitPriors& priors) {
  KernelParameters parameters;
  parameters.log_lengths.assign(groups, priors.length.mean);
  parameters.log_signal_variance = priors.signal.mean;
  parameters.log_noise_variance = priors.noise.mean;
  return parameters;
}

KernelParameters FitKernel(const FitData& data, const KernelParameters& start,
                           const FitPriors& priors, int evaluations) {
  const Posterior posterior(data, start.log_lengths.size(), priors);
  std::vector<double> x = ToVector(start);
  Climb climb{&posterior, x, posterior.At(x, {})};
  std::vector<double> low(x.size(), -4);
  std::vector<double> high(x.size(), 4);
  low.back() = -12;  // noise
  high.back() = 1;
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::clamp(x[i], low[i], high[i]);
  const std::unique_ptr<nlopt_opt_s, decltype(&nlopt_destroy)> optimizer(
      nlopt_create(NLOPT_LD_LBFGS, static_cast<unsigned>(x.size())),
      &nlopt_destroy);
  if (optimizer == nullptr) return start;
  nlopt_set_lower_bounds(optimizer.get(), low.data());
  nlopt_set_upper_bounds(optimizer.get(), high.data());
  nlopt_set_max_objective(optimizer.get(), &Evaluate, &climb);
  nlopt_set_maxeval(optimizer.get(), evaluations);
  nlopt_set_ftol_abs(optimizer.get(), 1e-3);
  double value = 0;
  // Whatever it reports (lost precision, most often), the best point seen
  // stands.
  nlopt_optimize(optimizer.get(), x.data(), &value);
  return FromVector(climb.best);
}

}  // namespace reprise::bayesopt
