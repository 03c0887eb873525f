#include "services/coordinator/tuning_terms.h"

#include <algorithm>
#include <string>

namespace reprise {
namespace {

bool HasTolerance(const v1::Tolerance& tolerance) {
  return tolerance.absolute() > 0 || tolerance.relative() > 0;
}

bool Has(const BaselineReport& baseline, const std::string& frontend) {
  return std::find(baseline.frontends.begin(), baseline.frontends.end(),
                   frontend) != baseline.frontends.end();
}

}  // namespace

bool AllowsInexact(const v1::Unit& unit,
                   const v1::Tolerance& default_tolerance) {
  if (HasTolerance(default_tolerance)) return true;
  return std::any_of(unit.memory().begin(), unit.memory().end(),
                     [](const v1::MemoryRange& range) {
                       return range.write_set().bytes() > 0 &&
                              HasTolerance(range.tolerance());
                     });
}

bayesopt::TrialSpaceOptions SpaceOptionsOf(const v1::Unit& unit,
                                           const BaselineReport& baseline,
                                           const DeviceFacts& device) {
  bayesopt::TrialSpaceOptions space;
  space.device_kind = device.kind == "cpu" ? "cpu" : "cuda";
  space.recorded = unit.launch();
  space.has_clang = Has(baseline, "clang");
  space.has_nvrtc = Has(baseline, "nvrtc");
  space.max_threads_per_block = device.max_threads_per_block;
  space.allow_inexact = AllowsInexact(unit, baseline.tolerance);
  space.allow_fp_contract = space.allow_inexact;
  // A kernel that exchanges data within its block nearly always has the block's
  // size baked in.
  for (const v1::CompiledKernelInfo& kernel : baseline.code.kernels()) {
    space.block_may_change =
        !kernel.has_barriers() && kernel.static_shared_bytes() == 0;
  }
  return space;
}

std::vector<double> CostSamples(const v1::Outcome& outcome) {
  std::vector<double> samples;
  for (int i = 0; i < outcome.variant_ns_size(); ++i) {
    samples.push_back(outcome.variant_ns(i) / outcome.baseline_ns(i));
  }
  if (samples.empty()) samples.push_back(1.0);
  return samples;
}

}  // namespace reprise
