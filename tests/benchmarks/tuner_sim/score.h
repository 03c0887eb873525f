// How good a search was: the performance score P, evaluation-based and
// aggregated through ranks.
//
// Let v[0] >= ... >= v[N-1] be the times of the valid configurations, among T
// configurations in all. A search's state after m evaluations is the rank in v
// of the best it found (0 before it found any). With F(m) = v[mean rank over
// seeds] and B(m) = v[expected rank of m random evaluations without repeats],
// B paying for the T - N that fail as any search does, the score after m
// evaluations is (B(m) - F(m)) / (B(m) - v[N-1]): 0 is random search, 1 is the
// optimum at once. P is its mean over m = 1..min(M, 220), where M is the number
// of evaluations after which random search is expected within 5 % of the way
// from the optimum to the median.
//
// After the performance score of "A methodology for comparing optimization
// algorithms for auto-tuning" (Willemsen, Schoonhoven, Filipovič, Tørring,
// van Nieuwpoort, van Werkhoven, 2024), whose baseline leaves failures out and
// whose abscissa is time.
//
// Immutable; may be shared by threads.
#ifndef REPRISE_TESTS_BENCHMARKS_TUNER_SIM_SCORE_H_
#define REPRISE_TESTS_BENCHMARKS_TUNER_SIM_SCORE_H_

#include <cstddef>
#include <vector>

namespace reprise::tuner_sim {

inline constexpr int kMaximumHorizon = 220;

// What one search found: after each evaluation the true time of what it then
// takes for the best, infinity before it has any.
using Trace = std::vector<double>;

struct Interval {
  double value = 0;
  double low = 0;  // 95 % confidence
  double high = 0;
};

class Scorer {
 public:
  // `times`: of the valid configurations, slowest first; not empty. `total`:
  // the failing ones too.
  Scorer(std::vector<double> times, size_t total);

  int horizon() const { return horizon_; }
  // Expected rank and time of the best of m random evaluations.
  double BaselineRank(int m) const { return baseline_rank_[m]; }
  double BaselineTime(int m) const { return TimeAt(baseline_rank_[m]); }
  // Rank of a time: of the fastest configuration that is no faster.
  double RankOf(double time) const;
  // v at a rank, linear between ranks.
  double TimeAt(double rank) const;

  // P of one search method from its traces, each at least horizon() long; not
  // empty.
  double Score(const std::vector<Trace>& traces) const;
  // P of `resamples` bootstrap samples of the traces.
  std::vector<double> Bootstrap(const std::vector<Trace>& traces, int resamples,
                                size_t seed) const;

  // Mean over traces of optimum over best after m evaluations (0 before any).
  double OptimumFraction(const std::vector<Trace>& traces, int m) const;
  // Median over traces of the evaluations until optimum over best reaches
  // `fraction`; infinity when most never do.
  double EvaluationsTo(const std::vector<Trace>& traces, double fraction) const;

 private:
  std::vector<std::vector<double>> Ranks(
      const std::vector<Trace>& traces) const;
  double ScoreOfMeans(const std::vector<double>& mean_ranks) const;

  std::vector<double> times_;
  int horizon_ = 1;
  std::vector<double> baseline_rank_;  // by m; 0 is unused
};

// Mean over spaces of a value and of its bootstrap samples.
Interval MeanInterval(const std::vector<double>& values,
                      const std::vector<std::vector<double>>& resamples);

}  // namespace reprise::tuner_sim

#endif  // REPRISE_TESTS_BENCHMARKS_TUNER_SIM_SCORE_H_
