#include "replay/engine/paired_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "replay/base/check.h"

namespace reprise {
namespace {

constexpr double kTrimmedShare = 0.2;  // at each end

double Polynomial(const double* coefficients, int count, double x) {
  double value = 0;
  for (int i = 0; i < count; ++i) value = value * x + coefficients[i];
  return value;
}

std::vector<double> LogRatios(const std::vector<double>& a,
                              const std::vector<double>& b) {
  CHECK(a.size() == b.size());
  std::vector<double> ratios(a.size());
  for (size_t i = 0; i < a.size(); ++i) ratios[i] = std::log(a[i] / b[i]);
  return ratios;
}

}  // namespace

double UpperMedian(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle =
      values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double NormalQuantile(double probability) {
  static constexpr double kA[] = {
      -3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
      1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  static constexpr double kB[] = {-5.447609879822406e+01, 1.615858368580409e+02,
                                  -1.556989798598866e+02, 6.680131188771972e+01,
                                  -1.328068155288572e+01, 1};
  static constexpr double kC[] = {
      -7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
      -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  static constexpr double kD[] = {7.784695709041462e-03, 3.224671290700398e-01,
                                  2.445134137142996e+00, 3.754408661907416e+00,
                                  1};
  constexpr double kTail = 0.02425;
  CHECK(probability > 0 && probability < 1);
  if (probability < kTail) {
    const double q = std::sqrt(-2 * std::log(probability));
    return Polynomial(kC, 6, q) / Polynomial(kD, 5, q);
  }
  if (probability > 1 - kTail) return -NormalQuantile(1 - probability);
  const double q = probability - 0.5;
  const double r = q * q;
  return q * Polynomial(kA, 6, r) / Polynomial(kB, 6, r);
}

double StudentQuantile(double probability, double degrees_of_freedom) {
  const double z = NormalQuantile(probability);
  const double v = degrees_of_freedom;
  const double z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z,
               z9 = z7 * z * z;
  return z + (z3 + z) / (4 * v) + (5 * z5 + 16 * z3 + 3 * z) / (96 * v * v) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * v * v * v) +
         (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) /
             (92160 * v * v * v * v);
}

RatioEstimate EstimateRatio(const std::vector<double>& a,
                            const std::vector<double>& b, double confidence) {
  std::vector<double> logs = LogRatios(a, b);
  std::sort(logs.begin(), logs.end());
  const int n = static_cast<int>(logs.size());
  RatioEstimate estimate;
  estimate.pairs = n;
  estimate.high = std::numeric_limits<double>::infinity();
  if (n == 0) return estimate;
  const int trimmed = static_cast<int>(kTrimmedShare * n);
  const int kept = n - 2 * trimmed;
  double sum = 0, winsorized_sum = 0;
  for (int i = 0; i < n; ++i) {
    if (i >= trimmed && i < n - trimmed) sum += logs[i];
    winsorized_sum += logs[std::clamp(i, trimmed, n - trimmed - 1)];
  }
  const double mean = sum / kept;
  estimate.ratio = std::exp(mean);
  if (n < 3) return estimate;
  const double winsorized_mean = winsorized_sum / n;
  double squares = 0;
  for (int i = 0; i < n; ++i) {
    const double difference =
        logs[std::clamp(i, trimmed, n - trimmed - 1)] - winsorized_mean;
    squares += difference * difference;
  }
  const double deviation = std::sqrt(squares / (n - 1));
  const double error =
      deviation / ((1 - 2.0 * trimmed / n) * std::sqrt(static_cast<double>(n)));
  const double half =
      StudentQuantile(0.5 + confidence / 2, std::max(kept - 1, 1)) * error;
  estimate.low = std::exp(mean - half);
  estimate.high = std::exp(mean + half);
  return estimate;
}

std::optional<Interval95> PredictOneMore(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  if (n < 2) return std::nullopt;
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half = StudentQuantile(0.975, n - 1) *
                      std::sqrt(squares / (n - 1) * (1 + 1 / n));
  return Interval95{mean - half, mean + half};
}

StoppingRule SearchStopping() {
  StoppingRule rule;
  rule.maximum_pairs = 25;
  rule.width_confidence = 0.95;
  return rule;
}

StopReason DecideStop(const StoppingRule& rule, const std::vector<double>& a,
                      const std::vector<double>& b) {
  const int pairs = static_cast<int>(a.size());
  if (pairs < rule.minimum_pairs) return StopReason::kContinue;
  const RatioEstimate sure = EstimateRatio(a, b, rule.decision_confidence);
  if (sure.high < rule.loser_ratio) return StopReason::kClearLoser;
  const RatioEstimate width = EstimateRatio(a, b, rule.width_confidence);
  if ((width.high - width.low) / width.ratio < rule.relative_width)
    return StopReason::kConfident;
  return pairs >= rule.maximum_pairs ? StopReason::kMaximumPairs
                                     : StopReason::kContinue;
}

const char* StopReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kContinue:
      return "budget";
    case StopReason::kConfident:
      return "confident";
    case StopReason::kClearLoser:
      return "clear loser";
    case StopReason::kMaximumPairs:
      return "maximum pairs";
  }
  return "unknown";
}

}  // namespace reprise
