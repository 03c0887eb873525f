// Perturbed instances: the same launch on inputs nobody recorded, so that a
// variant which tests for this program's data and takes a short cut is caught
// (design: honest results).
//
// Floating-point inputs (ranges typed F32 or F64 that the kernel read before
// writing) are scaled element by element by 1 + u, u uniform in [-amplitude,
// amplitude]; zeros, infinities and NaNs stay. Integers stay: they may be
// indices, whose meaning is not known. The baseline computes the expected
// result. Thread-safe.
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

struct PerturbOptions {
  uint64_t seed = 0;
  double amplitude = 0.01;
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
  std::string diagnostics;
};

// Runs baseline and variant once on perturbed inputs and compares them.
absl::StatusOr<PerturbedVerdict> VerifyOnPerturbedInputs(
    const UnitReader& unit, Device& device, CompilePool& pool,
    const BaselineReport& baseline, const v1::Variant& variant,
    const PerturbOptions& options);

}  // namespace reprise

#endif  // REPRISE_REPLAY_ENGINE_PERTURB_H_
