// What a tuner is given of a unit, and learns from an outcome: the same in a
// campaign and in a replay server's tuning session. Pure functions.
#ifndef REPRISE_SERVICES_COORDINATOR_TUNING_TERMS_H_
#define REPRISE_SERVICES_COORDINATOR_TUNING_TERMS_H_

#include <vector>

#include "bayesopt/trial_space.h"
#include "replay/device/device.h"
#include "replay/engine/evaluator.h"
#include "reprise/v1/types.pb.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

// Whether results may differ in their last bits at all, by the tolerances of
// the unit's ranges and the one where none is declared.
bool AllowsInexact(const v1::Unit& unit,
                   const v1::Tolerance& default_tolerance);

// The space of pipelines, code generation and launches. `unit` with what the
// evaluator learned of its ranges (Evaluator::unit).
bayesopt::TrialSpaceOptions SpaceOptionsOf(const v1::Unit& unit,
                                           const BaselineReport& baseline,
                                           const DeviceFacts& device);

// Of an OK outcome: variant over baseline, pair by pair; 1 where it is the
// baseline's own code.
std::vector<double> CostSamples(const v1::Outcome& outcome);

}  // namespace reprise

#endif  // REPRISE_SERVICES_COORDINATOR_TUNING_TERMS_H_
