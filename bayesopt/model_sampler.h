// The default sampler: proposes by models of what was observed.
//
// After a few configurations that lie far apart, most trials go to the largest
// expected improvement under a Gaussian process (cost_model.h) times the
// learned probability of coming out OK (feasibility.h). Those few come on top
// of seeds and injected configurations, which are no sample of the space. The
// rest go to other models that fail differently: the process's mean
// (exploitation), a random forest's expected improvement, a tree-structured
// Parzen estimator. A bandit shares the trials out by what each has gained.
//
// Of a finite space of up to Options::most_pooled configurations every one is
// scored; elsewhere candidates are generated (candidate_generator.h). Pending
// trials are believed to come out as predicted, so that a batch spreads.
//
// Costs: see docs/bayesopt.md. Memory: 4 bytes a candidate and point of the
// process, which has at most CostModel::Options::most_points.
#ifndef REPRISE_BAYESOPT_MODEL_SAMPLER_H_
#define REPRISE_BAYESOPT_MODEL_SAMPLER_H_

#include <cstddef>
#include <memory>

#include "bayesopt/candidate_generator.h"
#include "bayesopt/cost_model.h"
#include "bayesopt/feature_map.h"
#include "bayesopt/sampler.h"

namespace reprise::bayesopt {

struct ModelSamplerOptions {
  // Trials that come from no model: as far as can be from those before. Seeds
  // and injected configurations do not count.
  size_t initial = 6;
  size_t most_pooled = 20'000;
  CostModel::Options cost_model;
  GenerationCounts generation;
  // Shares of the trials that each arm but the first is given whatever it
  // gains, and what it may have more when it gains.
  double least_share = 0.01;
  double bandit_share = 0.05;
  // Numbers of a caller's own per configuration: what passes counted, say.
  StatisticsSource statistics;
};

std::unique_ptr<Sampler> NewModelSampler(ModelSamplerOptions options = {});

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_MODEL_SAMPLER_H_
