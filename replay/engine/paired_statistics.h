// Statistics of interleaved timing: how much faster is B than A, and how sure
// are we?
//
// Samples come in pairs measured one right after the other (ABBA order), so
// that drift of the machine cancels in the ratio of a pair. The estimate is the
// 20 % trimmed mean of log(A/B); its confidence interval is Yuen's, which uses
// the winsorized variance (Yuen 1974, "The two-sample trimmed t for unequal
// population variances"; one-sample form in Wilcox, "Introduction to Robust
// Estimation and Hypothesis Testing", ch. 4). Trimming keeps one preempted
// launch from deciding. Pure functions; thread-safe.
#ifndef REPRISE_REPLAY_ENGINE_PAIRED_STATISTICS_H_
#define REPRISE_REPLAY_ENGINE_PAIRED_STATISTICS_H_

#include <optional>
#include <vector>

namespace reprise {

struct RatioEstimate {
  double ratio = 1;  // A time / B time; over 1: B is faster
  double low = 0;    // confidence interval of the ratio
  double high = 0;
  int pairs = 0;
};

// Both vectors hold durations > 0 in the same unit and have equal length. With
// fewer than 3 pairs the interval is [0, infinity). `confidence` is two-sided,
// e.g. 0.95.
RatioEstimate EstimateRatio(const std::vector<double>& a,
                            const std::vector<double>& b,
                            double confidence = 0.95);

// Where one more of such numbers lies with 95 % confidence, if they are of one
// normal distribution: mean -+ t * s * sqrt(1 + 1/n) (Hahn and Meeker,
// "Statistical Intervals", ch. 4). Of fewer than two: nothing is known.
struct Interval95 {
  double low = 0;
  double high = 0;
};
std::optional<Interval95> PredictOneMore(const std::vector<double>& values);

// The middle value, of two the larger. 0 of nothing.
double UpperMedian(std::vector<double> values);

// Quantile of Student's t, by the Cornish-Fisher expansion; within 1 % for 4 or
// more degrees of freedom.
double StudentQuantile(double probability, double degrees_of_freedom);

// Quantile of the standard normal distribution (Acklam's rational
// approximation, relative error below 1.2e-9).
double NormalQuantile(double probability);

// When to stop measuring a variant against the baseline. Looked at after every
// pair; since looking often inflates false positives, calling a loser wants the
// interval at `decision_confidence`, wider than the one that is reported.
struct StoppingRule {
  int minimum_pairs = 5;
  int maximum_pairs = 40;
  double decision_confidence = 0.999;
  // Stop as confident when the interval at `width_confidence` is narrower than
  // this, relative to the ratio. Looking often does little harm there: a width
  // says nothing about which of the two is faster (Chow and Robbins 1965, "On
  // the asymptotic theory of fixed-width sequential confidence intervals").
  double relative_width = 0.02;
  double width_confidence = 0.99;
  // A variant whose whole interval lies below this ratio is a clear loser.
  double loser_ratio = 1.0;
};

// For trials that a search ranks and nobody believes: its best are measured
// again.
StoppingRule SearchStopping();

enum class StopReason { kContinue, kConfident, kClearLoser, kMaximumPairs };

StopReason DecideStop(const StoppingRule& rule, const std::vector<double>& a,
                      const std::vector<double>& b);
const char* StopReasonName(StopReason reason);

}  // namespace reprise

#endif  // REPRISE_REPLAY_ENGINE_PAIRED_STATISTICS_H_
