// PTX to machine code with a CUDA toolkit's nvJitLink, 12 or 13, loaded at run
// time; needs no GPU and no driver. Drivers of CUDA 12 take no machine code of
// 13's.
//
// Thread-safe once loaded. The library stays loaded.
#ifndef REPRISE_REPLAY_COMPILER_NVJITLINK_H_
#define REPRISE_REPLAY_COMPILER_NVJITLINK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

// What -verbose says about one kernel.
struct PtxasKernelReport {
  std::string symbol;
  uint32_t registers = 0;
  uint32_t spill_bytes = 0;  // stores and loads
  uint32_t shared_bytes = 0;
  uint32_t stack_bytes = 0;
};

struct LinkedCubin {
  std::string cubin;
  std::vector<PtxasKernelReport> kernels;
};

class NvJitLink {
 public:
  // Takes the first candidate that loads. FAILED_PRECONDITION says what was
  // tried.
  static absl::StatusOr<std::unique_ptr<NvJitLink>> Load(
      const std::vector<std::string>& candidates);
  virtual ~NvJitLink() = default;

  // The newest PTX that it takes: 84 for 8.4.
  virtual int ptx_version() const = 0;

  // `ptx`: one or more texts, linked. `options` beside -arch and -verbose.
  // What was linked before comes out of a cache: pass sequences often end in
  // the same PTX. INVALID_ARGUMENT with the error log where the PTX or an
  // option is refused.
  virtual absl::StatusOr<LinkedCubin> Link(
      const std::vector<std::string>& ptx, const std::string& architecture,
      const std::vector<std::string>& options) = 0;
};

// The newest PTX of a CUDA version: (12, 4) gives 84.
int PtxVersionOf(unsigned cuda_major, unsigned cuda_minor);

// Reads the log of ptxas -v; for tests.
std::vector<PtxasKernelReport> ParsePtxasLog(const std::string& log);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_NVJITLINK_H_
