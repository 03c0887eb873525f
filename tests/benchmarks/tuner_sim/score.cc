#include "tests/benchmarks/tuner_sim/score.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "bayesopt/random.h"
#include "replay/base/check.h"

namespace reprise::tuner_sim {
namespace {

// Evaluations after which random search is expected at c or better: with the
// i-th of N valid times the first that is, the best of m has expected rank
// m (N + 1) / (m + 1).
int Horizon(const std::vector<double>& times) {
  const size_t count = times.size();
  const double optimum = times.back();
  const double cutoff = optimum + 0.05 * (times[count / 2] - optimum);
  size_t i = 0;
  while (times[i] > cutoff) ++i;
  const double evaluations =
      std::ceil(static_cast<double>(i) / static_cast<double>(count + 1 - i));
  return static_cast<int>(std::clamp<double>(evaluations, 1, kMaximumHorizon));
}

// Expected rank of the best of m configurations, drawn without repeats from
// `total` of which `valid` are valid: k of them are, by the hypergeometric
// distribution, and the best of k has expected rank k (N + 1) / (k + 1) - 1.
double ExpectedRank(size_t valid, size_t total, int m) {
  const auto n = static_cast<double>(valid);
  const auto t = static_cast<double>(total);
  const auto log_choose = [](double from, double take) {
    return std::lgamma(from + 1) - std::lgamma(take + 1) -
           std::lgamma(from - take + 1);
  };
  double expected = 0;
  for (int k = 1; k <= m; ++k) {
    const double missed = m - k;
    if (k > n || missed > t - n) continue;
    const double chance = std::exp(
        log_choose(n, k) + log_choose(t - n, missed) - log_choose(t, m));
    expected += chance * (k * (n + 1) / (k + 1) - 1);
  }
  return expected;
}

double Best(const Trace& trace, int m) {
  CHECK(trace.size() >= static_cast<size_t>(m));
  return trace[static_cast<size_t>(m) - 1];
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

Scorer::Scorer(std::vector<double> times, size_t total)
    : times_(std::move(times)) {
  CHECK(!times_.empty() && total >= times_.size());
  horizon_ = Horizon(times_);
  for (int m = 0; m <= kMaximumHorizon; ++m) {
    const int draws = static_cast<int>(std::min<size_t>(m, total));
    baseline_rank_.push_back(ExpectedRank(times_.size(), total, draws));
  }
}

double Scorer::RankOf(double time) const {
  // The first that is faster.
  const auto faster = std::partition_point(
      times_.begin(), times_.end(), [time](double t) { return t >= time; });
  return std::max<double>(0, static_cast<double>(faster - times_.begin()) - 1);
}

double Scorer::TimeAt(double rank) const {
  const auto below = static_cast<size_t>(rank);
  if (below + 1 >= times_.size()) return times_.back();
  const double share = rank - std::floor(rank);
  return times_[below] * (1 - share) + times_[below + 1] * share;
}

std::vector<std::vector<double>> Scorer::Ranks(
    const std::vector<Trace>& traces) const {
  CHECK(!traces.empty());
  std::vector<std::vector<double>> ranks;
  for (const Trace& trace : traces) {
    std::vector<double>& of = ranks.emplace_back();
    for (int m = 1; m <= horizon_; ++m) of.push_back(RankOf(Best(trace, m)));
  }
  return ranks;
}

double Scorer::ScoreOfMeans(const std::vector<double>& mean_ranks) const {
  double sum = 0;
  for (int m = 1; m <= horizon_; ++m) {
    const double baseline = BaselineTime(m);
    const double room = baseline - times_.back();
    const double gain = baseline - TimeAt(mean_ranks[m - 1]);
    sum += room > 0 ? gain / room : 0;
  }
  return sum / horizon_;
}

double Scorer::Score(const std::vector<Trace>& traces) const {
  const std::vector<std::vector<double>> ranks = Ranks(traces);
  std::vector<double> mean(horizon_, 0);
  for (const std::vector<double>& of : ranks) {
    for (int m = 0; m < horizon_; ++m) {
      mean[m] += of[m] / static_cast<double>(ranks.size());
    }
  }
  return ScoreOfMeans(mean);
}

std::vector<double> Scorer::Bootstrap(const std::vector<Trace>& traces,
                                      int resamples, size_t seed) const {
  const std::vector<std::vector<double>> ranks = Ranks(traces);
  bayesopt::Random random(seed);
  std::vector<double> scores;
  for (int i = 0; i < resamples; ++i) {
    std::vector<double> mean(horizon_, 0);
    for (size_t draw = 0; draw < ranks.size(); ++draw) {
      const std::vector<double>& of = ranks[random.Below(ranks.size())];
      for (int m = 0; m < horizon_; ++m) {
        mean[m] += of[m] / static_cast<double>(ranks.size());
      }
    }
    scores.push_back(ScoreOfMeans(mean));
  }
  return scores;
}

double Scorer::OptimumFraction(const std::vector<Trace>& traces, int m) const {
  std::vector<double> fractions;
  for (const Trace& trace : traces) {
    fractions.push_back(times_.back() / Best(trace, m));
  }
  return Mean(fractions);
}

double Scorer::EvaluationsTo(const std::vector<Trace>& traces,
                             double fraction) const {
  std::vector<double> evaluations;
  for (const Trace& trace : traces) {
    const auto reached = std::find_if(
        trace.begin(), trace.end(),
        [&](double best) { return times_.back() / best >= fraction; });
    evaluations.push_back(
        reached == trace.end()
            ? std::numeric_limits<double>::infinity()
            : static_cast<double>(reached - trace.begin() + 1));
  }
  const auto middle =
      evaluations.begin() + static_cast<ptrdiff_t>(evaluations.size() / 2);
  std::nth_element(evaluations.begin(), middle, evaluations.end());
  return *middle;
}

Interval MeanInterval(const std::vector<double>& values,
                      const std::vector<std::vector<double>>& resamples) {
  CHECK(!values.empty() && values.size() == resamples.size());
  std::vector<double> means;
  for (size_t i = 0; i < resamples.front().size(); ++i) {
    double sum = 0;
    for (const std::vector<double>& of_space : resamples) sum += of_space[i];
    means.push_back(sum / static_cast<double>(resamples.size()));
  }
  std::sort(means.begin(), means.end());
  const auto at = [&](double quantile) {
    return means[static_cast<size_t>(quantile *
                                     static_cast<double>(means.size() - 1))];
  };
  return {Mean(values), at(0.025), at(0.975)};
}

}  // namespace reprise::tuner_sim
