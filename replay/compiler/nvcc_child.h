// The toolkit's nvcc as a child process, to PTX. Needs the host compiler that
// nvcc needs, for preprocessing.
//
// The child stays in this process's group, so that who kills the group of a
// compile worker ends it too. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_NVCC_CHILD_H_
#define REPRISE_REPLAY_COMPILER_NVCC_CHILD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

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

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_NVCC_CHILD_H_
