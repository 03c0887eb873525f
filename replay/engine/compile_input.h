// From a unit to what the compile pool needs. Thread-safe.
#ifndef REPRISE_REPLAY_ENGINE_COMPILE_INPUT_H_
#define REPRISE_REPLAY_ENGINE_COMPILE_INPUT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "replay/device/device.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// Loads source closures and IR from the unit's store. FAILED_PRECONDITION for a
// machine-code-only unit: it replays on CUDA and cannot be remixed.
absl::StatusOr<std::shared_ptr<const v1::CompileInput>> LoadCompileInput(
    const UnitReader& unit);

// The same for building for a device. A GPU of a newer generation than the
// unit's runs no machine code for that: its own architecture is built for.
absl::StatusOr<std::shared_ptr<const v1::CompileInput>> LoadCompileInput(
    const UnitReader& unit, const Device& device);

}  // namespace reprise

#endif  // REPRISE_REPLAY_ENGINE_COMPILE_INPUT_H_
