// Lengths, signal and noise of a kernel from data: the maximum of likelihood
// times prior, by NLopt's L-BFGS with the likelihood's gradient. Priors keep
// few points from claiming much. Thread-safe: pure functions.
#ifndef REPRISE_BAYESOPT_KERNEL_FIT_H_
#define REPRISE_BAYESOPT_KERNEL_FIT_H_

#include <cstddef>
#include <span>
#include <vector>

#include "Eigen/Core"
#include "bayesopt/kernel.h"

namespace reprise::bayesopt {

struct FitData {
  // Coordinates by rows, points by columns.
  Eigen::MatrixXd points;
  Eigen::VectorXd targets;  // mean 0, variance about 1
  // Of each target, by measurement, beside the noise variance that is fitted.
  Eigen::VectorXd measured_variances;
  std::span<const size_t> group_of;
};

// Normal, of natural logarithms.
struct LogPrior {
  double mean = 0;
  double deviation = 1;
};

struct FitPriors {
  LogPrior length{0.3, 0.9};
  LogPrior signal{0, 0.8};
  LogPrior noise{-6.5, 1.5};
};

// log likelihood + log prior (up to a constant), and its gradient by lengths in
// the order of groups, then signal, then noise, unless `gradient` is null.
double LogPosterior(const FitData& data, const KernelParameters& parameters,
                    const FitPriors& priors, std::vector<double>* gradient);

KernelParameters PriorMean(size_t groups, const FitPriors& priors);

// Climbs from `start` for at most `evaluations` evaluations of the posterior;
// never returns worse than `start`.
KernelParameters FitKernel(const FitData& data, const KernelParameters& start,
                           const FitPriors& priors, int evaluations);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_KERNEL_FIT_H_
