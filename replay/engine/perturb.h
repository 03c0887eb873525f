// Perturbed instances: the same launch on inputs nobody recorded, so that a
// variant which tests for this program's data and takes a short cut is caught
// (design: honest results).
//
// Floating-point inputs (ranges typed F32 or F64 that the kernel read before
// writing) are scaled element by element by 1 + u, u uniform in [-amplitude,
// amplitude]; infinities and NaNs stay, and zeros where there is anything else
// (an input of zeros alone, such as a bias, becomes u, or nobody would see that
// a variant leaves it out). Integers stay: they may be indices, whose meaning
// is not known. The baseline computes the expected result.
//
// A variant may also recognise the recorded inputs, look up their result, and
// compute honestly on all others. So where a speed-up is claimed, it has to
// show on the perturbed inputs too. Thread-safe.
#ifndef REPRISE_REPLAY_ENGINE_PERTURB_H_
#define REPRISE_REPLAY_ENGINE_PERTURB_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "replay/compiler/compile_pool.h"
#include "replay/device/device.h"
#include "replay/engine/evaluator.h"
#include "replay/unit/unit_store.h"

namespace reprise {

inline constexpr double kLeastClaim = 1.1;

struct PerturbOptions {
  uint64_t seed = 0;
  double amplitude = 0.01;
  // Speed-up that was measured on the recorded inputs; at least half of what it
  // is above 1 has to be there on perturbed ones. Below kLeastClaim: not looked
  // at, since so few pairs would not tell.
  double claimed_ratio = 0;
  uint64_t max_bytes_per_range = 1ull
                                 << 30;  // with a larger range: not applicable
};

// A unit whose prologue is perturbed, in a store of its own under
// `scratch_directory`, which must outlive it. NOT_FOUND when the kernel reads
// no floating-point memory.
absl::StatusOr<UnitReader> PerturbUnit(const UnitReader& unit,
                                       const std::string& scratch_directory,
                                       const PerturbOptions& options);

struct PerturbedVerdict {
  bool applicable = false;  // false: nothing to perturb
  bool verified = false;
  double ratio = 0;  // baseline time / variant time there; 0: not measured
  std::string diagnostics;
};

// Runs baseline and variant on perturbed inputs and compares them: once, and
// where a speed-up is claimed in turns, until it is known whether it is there,
// for at most half a minute. A claim that is not known to be wrong holds.
absl::StatusOr<PerturbedVerdict> VerifyOnPerturbedInputs(
    const UnitReader& unit, Device& device, CompilePool& pool,
    const BaselineReport& baseline, const v1::Variant& variant,
    const PerturbOptions& options);

}  // namespace reprise

#endif  // REPRISE_REPLAY_ENGINE_PERTURB_H_
