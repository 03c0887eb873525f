// What the timing samples of a trial say, and how many more are worth taking.
// Thread-safe: pure functions.
#ifndef REPRISE_BAYESOPT_TRIAL_STATISTICS_H_
#define REPRISE_BAYESOPT_TRIAL_STATISTICS_H_

#include <optional>
#include <vector>

namespace reprise::bayesopt {

// Not empty.
double Median(std::vector<double> samples);

// Variance of the logarithm of the median of positive samples; 0 when there is
// only one.
double LogVariance(const std::vector<double>& samples);

struct SamplePolicy {
  int least = 3;  // before anything is decided
  int most = 30;  // of a contender
  // A contender is known well enough at this standard deviation of its log.
  double precise_enough = 0.002;
  // Slower than the incumbent by this much beyond doubt: a loser.
  double margin = 0.02;
};

// How many more samples to take of a trial that gave `samples` so far, when the
// incumbent's cost is `best`: none of a clear loser, as many again of a
// contender until it is known well or has had the most.
int MoreSamples(const SamplePolicy& policy, const std::vector<double>& samples,
                std::optional<double> best);

// Spearman's rank correlation; tied values have their mean rank. 0 when either
// side is all alike. `a` and `b` are equally long.
double RankCorrelation(const std::vector<double>& a,
                       const std::vector<double>& b);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_TRIAL_STATISTICS_H_
