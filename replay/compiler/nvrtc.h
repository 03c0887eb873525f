// NVIDIA's run-time compiler, loaded at run time from the CUDA toolkit: CUDA
// C++ for the device to PTX, in process; needs no GPU and no driver.
//
// Thread-safe once loaded. The library stays loaded.
#ifndef REPRISE_REPLAY_COMPILER_NVRTC_H_
#define REPRISE_REPLAY_COMPILER_NVRTC_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

struct NvrtcSource {
  std::string text;
  std::string name;  // path, for messages and quoted includes
  std::map<std::string, std::string> headers;  // text by the name in #include
  std::vector<std::string> options;
  // Kernels to be made out of templates ("Scale<float, 4>").
  std::vector<std::string> name_expressions;
};

class Nvrtc {
 public:
  // Takes the first candidate that loads. FAILED_PRECONDITION says what was
  // tried.
  static absl::StatusOr<std::unique_ptr<Nvrtc>> Load(
      const std::vector<std::string>& candidates);
  virtual ~Nvrtc() = default;

  // INVALID_ARGUMENT with the log where source or options are refused.
  virtual absl::StatusOr<std::string> CompileToPtx(
      const NvrtcSource& source) = 0;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_NVRTC_H_
