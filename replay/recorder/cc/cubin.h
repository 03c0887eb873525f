// Machine code in fatbins: taking a cubin out, and the variables that it
// declares, inline assembly's too.
//
// Layouts as nvcc 13.0 writes them. A fatbin's entries are plain, LZ4 blocks
// (--compress-mode=speed) or zstd frames (size, balance, default); small or all
// entries are compressed as -Xfatbin says.
//
// Thread-safe. Input is untrusted: malformed bytes give INVALID_ARGUMENT.
#ifndef REPRISE_REPLAY_RECORDER_CC_CUBIN_H_
#define REPRISE_REPLAY_RECORDER_CC_CUBIN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

// The machine code in a fatbin that a device of the architecture ("sm_90",
// "sm_90a") runs: of exactly that name, else of the device's own number with or
// without letter, else of the highest lower minor number of the same major one.
// NOT_FOUND lists what there is.
absl::StatusOr<std::string> CubinFor(std::string_view fatbin,
                                     const std::string& architecture);

struct CubinVariable {
  std::string symbol;
  uint64_t bytes = 0;
  bool constant = false;  // in constant memory
  // Variables of a section lie at these offsets from its begin, wherever it is
  // loaded.
  std::string section;
  uint64_t offset = 0;
};

// Variables in global and constant memory, in the order of the symbol table;
// among them string literals ("$str") and what inline assembly declares
// ("$__name__70$1"). A variable that no code of the cubin names is not in it.
absl::StatusOr<std::vector<CubinVariable>> CubinVariables(
    std::string_view cubin);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_CC_CUBIN_H_
