// The parts of a unit that describe its kernel rather than its memory. Pure
// functions but for what they ask of the host; thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_UNIT_DESCRIPTION_H_
#define REPRISE_REPLAY_RECORDER_SESSION_UNIT_DESCRIPTION_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "replay/recorder/session/memory_image.h"
#include "reprise/v1/node.pb.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

// Names, parameters and where the kernel's source begins. What a pointer
// points to is what the source declares, else how the launch used it.
v1::Kernel DescribeKernel(const v1::CompiledKernelInfo& info,
                          const std::string& arguments,
                          const std::vector<ImageRange>& image);

// Declared tolerances on the ranges they are about: a parameter's on those of
// the memory that its argument points into, from there to the next parameter's;
// a kernel's on all others that it writes. Only floating-point ranges.
void ApplyTolerances(const v1::CompiledKernelInfo& info,
                     const std::string& arguments, v1::Unit* unit);

v1::Provenance DescribeRecording(const std::vector<std::string>& command,
                                 absl::Duration duration);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_UNIT_DESCRIPTION_H_
