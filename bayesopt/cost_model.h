// The surrogate of log costs: a Gaussian process over a tuner's observations
// and over what it imported, with the targets made fit for it and the kernel's
// parameters kept up to date.
//
// Targets are logarithms, centred and scaled; above a quantile they are all
// alike (winsorised): how slow a slow configuration is says little about where
// the fast ones are, and outliers would stretch every length. Imported points
// live in the same process at a distance of their own along one more
// coordinate, whose length the likelihood chooses: the less they agree with
// what is measured here, the less they say. They are scaled among themselves.
//
// At most Options::most_points points are in the process: the cheapest, the
// latest and a spread of the others. Between two fits points are appended.
//
// Given the observations, the state is Save()'s: a restored model predicts the
// same, bit for bit. Not thread-safe.
#ifndef REPRISE_BAYESOPT_COST_MODEL_H_
#define REPRISE_BAYESOPT_COST_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bayesopt/gaussian_process.h"
#include "bayesopt/kernel_fit.h"
#include "bayesopt/state_codec.h"

namespace reprise::bayesopt {

class CostModel {
 public:
  struct Options {
    FitPriors priors;
    double winsorise_above = 0.75;  // quantile of the targets
    int fit_evaluations = 15;
    size_t fit_points = 128;
    size_t first_fit = 5;       // observations
    double refit_growth = 1.2;  // of the observations since the last fit
    size_t most_points = 320;
    size_t most_imported = 60;  // of them
    // Imported points are dropped for good when they rank this many
    // observations or more with less correlation than this.
    size_t least_compared = 8;
    double least_correlation = 0.2;
  };
  struct Datum {
    std::vector<float> point;
    double log_cost = 0;
    double log_variance = 0;  // of log_cost, by measurement
  };

  // `group_of`: the coordinates' groups without that of imported points, which
  // this class adds.
  CostModel(std::vector<size_t> group_of, Options options);

  // Coordinates of a process's point: those given and the one that is added,
  // last (0 for candidates).
  size_t width() const { return group_of_.size(); }

  // Brings the process up to date with all observations so far, those of the
  // last call first, unchanged, and then with `pending`, which are believed to
  // come out as predicted. At least two of `own`.
  void Update(const std::vector<Datum>& own, const std::vector<Datum>& imported,
              const std::vector<std::vector<float>>& pending);

  const GaussianProcess& process() const { return *process_; }
  // Points of the process that the last Update left as they were.
  size_t kept() const { return kept_; }
  // Grows whenever the process was built anew.
  uint64_t generation() const { return generation_; }

  // Whether imported points were found to say nothing about what is measured.
  bool dropped_imported() const { return dropped_imported_; }

  // In the scale of the process's targets.
  double best() const { return best_; }
  double ToTarget(double log_cost) const;

  void Save(StateWriter& writer) const;
  void Restore(StateReader& reader);
  // Whether what was restored can be of so many observations.
  bool Fits(size_t own, size_t imported) const;

 private:
  struct Scale {
    double mean = 0;
    double deviation = 1;
    double cap = 0;  // of log costs
  };

  static double Standardise(const Scale& scale, double log_cost);
  bool FitIsDue(size_t own) const;
  Scale ScaleOf(const std::vector<Datum>& data) const;
  void Select(const std::vector<Datum>& own);
  bool Correlates(const std::vector<Datum>& own,
                  const std::vector<Datum>& imported) const;
  void Fit(const std::vector<Datum>& own, const std::vector<Datum>& imported);
  void Rebuild(const std::vector<Datum>& own,
               const std::vector<Datum>& imported);
  void AppendDatum(const Datum& datum, bool imported);

  const Options options_;
  std::vector<size_t> group_of_;
  KernelParameters parameters_;
  size_t fitted_ = 0;    // own observations at the last fit
  size_t imported_ = 0;  // points in front of the process
  bool dropped_imported_ = false;
  std::vector<uint64_t> order_;  // own observations in the process, in order
  uint64_t next_ = 0;            // own observations considered so far
  double variance_scale_ = 1;    // of measured variances, since the last fit

  Scale scale_;
  double best_ = 0;
  std::unique_ptr<GaussianProcess> process_;
  std::vector<double> targets_;
  size_t kept_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_COST_MODEL_H_
