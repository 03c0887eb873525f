// The one place that knows what a parameter name means (design: "Parameter
// names"): a tuner's assignment in, a Variant out, and back.
//
//   frontend                     clang | nvrtc
//   pipeline                     text
//   codegen.fp_contract          on | off; so are flush_denormals,
//                                approximate_division, approximate_sqrt,
//                                reassociate, no_signed_zeros,
//                                finite_math_only
//   codegen.unroll_threshold, codegen.inline_threshold,
//   codegen.max_registers, codegen.max_threads_per_block,
//   codegen.min_blocks_per_multiprocessor,
//   codegen.prefer_vector_bits   integers
//   ptxas.level                  0 to 3
//   launch.block.x, .y, .z       threads; the recorded ones where left out
//   launch.dynamic_shared_bytes  bytes
//
// Every codegen.*, ptxas.* and frontend parameter also takes the text
// "default": left as the application was built. A boolean stands for on or off.
//
// Thread-safety: const and shareable.
#ifndef REPRISE_BAYESOPT_PARAMETER_MAPPER_H_
#define REPRISE_BAYESOPT_PARAMETER_MAPPER_H_

#include <string>

#include "absl/status/statusor.h"
#include "bayesopt/space.h"
#include "reprise/v1/types.pb.h"

namespace reprise::bayesopt {

class ParameterMapper {
 public:
  explicit ParameterMapper(const v1::LaunchConfig& recorded);

  // `base` (source edits, usually) with the assignment's choices written over
  // it. What equals the recorded launch or the default pipeline is left unset,
  // so that equal builds are equal variants. INVALID_ARGUMENT: an unknown name,
  // or a value of the wrong type or out of range.
  absl::StatusOr<v1::Variant> ToVariant(const Assignment& assignment,
                                        const v1::Variant& base = {}) const;

  // The choices a variant states, by name; what is unset is left out.
  Assignment ToAssignment(const v1::Variant& variant) const;

  // The choices a variant states in one line, "as built" when there are none:
  // "codegen.fp_contract=off launch.block=128x1x1 pipeline=default<O2>"; of a
  // long pipeline, what makes it another than O3.
  std::string Describe(const v1::Variant& variant) const;

 private:
  v1::LaunchConfig recorded_;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_PARAMETER_MAPPER_H_
