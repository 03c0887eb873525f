// Searches without a model: what the optimizer is compared with, and what it
// can fall back on. As every sampler they never repeat a configuration, which
// favours them over the usual ones, and take outcomes in any order; what fails
// is worse than anything that does not. Not thread-safe.
#ifndef REPRISE_BAYESOPT_BASELINES_H_
#define REPRISE_BAYESOPT_BASELINES_H_

#include <memory>

#include "bayesopt/sampler.h"

namespace reprise::bayesopt {

struct HillClimbingOptions {
  // The first climb starts from the best of as many random configurations.
  int initial_random = 16;
  // Chance that a new climb starts from the best configuration so far with
  // `kick` of its parameters changed, rather than from a random one.
  double kick_share = 0.8;
  double kick = 0.3;  // chance per parameter
};

// First-improvement hill climbing with restarts: tries, in random order, all
// configurations that differ in one parameter, moves to the first that is
// better, and starts anew when none is.
std::unique_ptr<Sampler> NewHillClimbingSampler(
    HillClimbingOptions options = {});

struct GeneticOptions {
  int population = 10;
  // Chance of each parameter to change after the crossover.
  double mutation = 0.15;
};

// Steady-state genetic algorithm: parents are drawn from the best
// `population` so far, the better the likelier; uniform crossover; a child that
// is known already mutates until it is not.
std::unique_ptr<Sampler> NewGeneticSampler(GeneticOptions options = {});

struct AnnealingOptions {
  int initial_random = 8;
  // Of relative cost: a move to twice the cost is accepted with chance
  // exp(-1 / temperature).
  double start_temperature = 0.1;
  double cooling = 0.95;  // per trial
  // Chance that a step goes to a near value (Space::Neighbor) rather than to
  // any other one of a parameter.
  double near_share = 0.8;
  // Reheated, at the best so far, when this temperature is reached.
  double end_temperature = 0.005;
};

// Simulated annealing. Moves over configurations that are known already cost
// nothing and are made at once.
std::unique_ptr<Sampler> NewAnnealingSampler(AnnealingOptions options = {});

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_BASELINES_H_
