// Builds the space of trials for one unit on one kind of device, and the
// configurations worth trying first. Thread-safe: pure functions.
#ifndef REPRISE_BAYESOPT_TRIAL_SPACE_H_
#define REPRISE_BAYESOPT_TRIAL_SPACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bayesopt/space.h"
#include "reprise/v1/types.pb.h"

namespace reprise::bayesopt {

struct TrialSpaceOptions {
  std::string device_kind = "cpu";  // "cpu" or "cuda"
  v1::LaunchConfig recorded;
  // False where the kernel's block size is baked in (its shared arrays, its
  // index arithmetic): then launch.block is not in the space. Dimensions in
  // which the recorded launch has one thread stay so.
  bool block_may_change = false;
  uint32_t max_threads_per_block = 1024;
  // Relaxed floating point beyond contraction: approximate division and square
  // root, flushed denormals, reassociation and so on. Only where the unit's
  // tolerance leaves room.
  bool allow_inexact = false;
  // Fusing a*b+c also changes bits; off for units compared bit by bit.
  bool allow_fp_contract = true;
  // Front ends that are there. Without Clang there are no passes to tune.
  bool has_clang = true;
  bool has_nvrtc = false;
  // Choices beside the recorded size; empty: not in the space.
  std::vector<uint32_t> dynamic_shared_bytes;
  uint32_t max_vector_bits = 512;  // cpu: widest vector of the host
  int max_pipeline_edits = 8;
};

// INVALID_ARGUMENT: an unknown device kind or an empty recorded block.
absl::StatusOr<std::shared_ptr<const Space>> BuildTrialSpace(
    const TrialSpaceOptions& options);

// Configurations of `space` worth trying first, best bet first, without the
// default configuration: the same list for the same space in every run, so that
// what one run found by them the next one finds too. Names that the space does
// not have are passed over.
std::vector<Configuration> SeedConfigurations(const Space& space);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_TRIAL_SPACE_H_
