#include "replay/device/cpu/lowering/internal.h"

namespace reprise::cpu {

absl::Status Instrument(LoweringState& state) {
  return absl::UnimplementedError("instrumented builds are not there yet");
}

}  // namespace reprise::cpu
