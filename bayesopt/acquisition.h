// What a candidate is worth: the logarithm of its expected improvement.
//
// Expected improvement underflows where it matters most, far from the incumbent
// or late in a search; its logarithm does not (S. Ament et al., Unexpected
// improvements to expected improvement for Bayesian optimization, 2023).
// Thread-safe: pure functions.
#ifndef REPRISE_BAYESOPT_ACQUISITION_H_
#define REPRISE_BAYESOPT_ACQUISITION_H_

namespace reprise::bayesopt {

// log E[max(0, best - y)], y normal with `mean` and `deviation` > 0.
double LogExpectedImprovement(double mean, double deviation, double best);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_ACQUISITION_H_
