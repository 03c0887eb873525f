// Tolerances as sources state them, in annotate attributes of kernels and
// parameters. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_TOLERANCE_ANNOTATION_H_
#define REPRISE_REPLAY_COMPILER_TOLERANCE_ANNOTATION_H_

#include <optional>
#include <string_view>

#include "reprise/v1/types.pb.h"

namespace reprise {

// "tolerance:1e-6" (absolute and relative), "tolerance:1e-6,1e-5" (absolute,
// relative), or "tolerance:abs=1e-6,rel=1e-5,outliers=0.01", numbers with or
// without f; empty for other texts.
std::optional<v1::Tolerance> ParseToleranceAnnotation(std::string_view text);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_TOLERANCE_ANNOTATION_H_
