// The toolkit's nvcc as a child process, to PTX, which needs the host compiler
// that nvcc needs, for preprocessing; and its ptxas, from PTX to machine code.
//
// The child stays in this process's group, so that who kills the group of a
// compile worker ends it too. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_NVCC_CHILD_H_
#define REPRISE_REPLAY_COMPILER_NVCC_CHILD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/compiler/nvjitlink.h"

namespace reprise {

struct NvccCommand {
  std::string nvcc;                    // the executable
  std::string architecture;            // "compute_90a"
  std::vector<std::string> arguments;  // language, directories
  std::string source;
  std::string scratch;  // an existing directory for temporary files
};

// INVALID_ARGUMENT holds what nvcc printed; UNAVAILABLE: it cannot be run.
absl::StatusOr<std::string> RunNvccToPtx(const NvccCommand& command);

struct PtxasCommand {
  std::string ptxas;                 // the executable
  std::string architecture;          // "sm_90a"
  std::vector<std::string> options;  // "-O1"
  std::string ptx;                   // the text
  std::string scratch;  // an existing directory for temporary files
};

// As RunNvccToPtx.
absl::StatusOr<LinkedCubin> RunPtxas(const PtxasCommand& command);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_NVCC_CHILD_H_
