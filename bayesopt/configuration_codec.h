// Configurations in saved state (state_codec.h). What is read need not belong
// to any space: readers check it (Space::Check). Thread-safe: pure functions.
#ifndef REPRISE_BAYESOPT_CONFIGURATION_CODEC_H_
#define REPRISE_BAYESOPT_CONFIGURATION_CODEC_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "bayesopt/space.h"
#include "bayesopt/state_codec.h"

namespace reprise::bayesopt {

void WriteValue(const Value& value, StateWriter& writer);
Value ReadValue(StateReader& reader);

void WriteConfiguration(const Configuration& configuration,
                        StateWriter& writer);
Configuration ReadConfiguration(StateReader& reader);

void WriteOptional(const std::optional<Configuration>& configuration,
                   StateWriter& writer);
std::optional<Configuration> ReadOptional(StateReader& reader);

// For samplers that restore what they saved: whether a configuration, if there
// is one, is the space's, and what to say of bytes that cannot be theirs.
bool IsOf(const Space& space,
          const std::optional<Configuration>& configuration);
absl::Status DamagedState(std::string_view sampler);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_CONFIGURATION_CODEC_H_
