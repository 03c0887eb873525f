#include "bayesopt/acquisition.h"

#include <cmath>
#include <numbers>

namespace reprise::bayesopt {
namespace {

// log(phi(z) + z Phi(z)).
double LogImprovement(double z) {
  static const double kLogSqrt2Pi = std::log(2 * std::numbers::pi) / 2;
  if (z > -5) {
    const double phi = std::exp(-z * z / 2 - kLogSqrt2Pi);
    return std::log(phi + z * std::erfc(-z / std::numbers::sqrt2) / 2);
  }
  // The asymptotic series of Mills' ratio: phi(z) (1/z^2 - 3/z^4 + 15/z^6).
  const double inverse = 1 / (z * z);
  return -z * z / 2 - kLogSqrt2Pi +
         std::log(inverse * (1 - 3 * inverse + 15 * inverse * inverse));
}

}  // namespace

double LogExpectedImprovement(double mean, double deviation, double best) {
  return std::log(deviation) + LogImprovement((best - mean) / deviation);
}

}  // namespace reprise::bayesopt
