// NVIDIA's compiler as the front end of one translation unit, to PTX: NVRTC in
// this process on what of the source is for the device, and where it cannot
// take that, the toolkit's nvcc as a child on the source as it is.
//
// A source is rejected only by nvcc, where this machine has it. Not
// thread-safe. The CompileTranslationUnit is borrowed and must outlive it.
#ifndef REPRISE_REPLAY_COMPILER_NVIDIA_FRONTEND_H_
#define REPRISE_REPLAY_COMPILER_NVIDIA_FRONTEND_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/compiler/nvrtc.h"
#include "replay/compiler/toolchain.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

class NvidiaFrontend {
 public:
  struct Options {
    std::string architecture;  // "sm_90a"
    // Those that must come out; empty: all of the unit.
    std::vector<std::string> kernels;
    bool keep_variables = false;
    Toolchain tools;
    std::string scratch_directory;
  };
  struct Result {
    std::string ptx;
    // Why it was nvcc; empty: it was NVRTC.
    std::string nvcc_because;
  };

  // `nvrtc` may be null where the library is missing, and outlives this.
  static absl::StatusOr<std::unique_ptr<NvidiaFrontend>> Create(
      const v1::CompileTranslationUnit& unit, Options options, Nvrtc* nvrtc);
  virtual ~NvidiaFrontend() = default;

  using Overlays = google::protobuf::RepeatedPtrField<v1::SourceOverlay>;

  // INVALID_ARGUMENT: the compiler's errors. FAILED_PRECONDITION: neither
  // compiler is there.
  virtual absl::StatusOr<Result> Compile(const Overlays& overlays,
                                         const v1::CodegenOptions& codegen) = 0;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_NVIDIA_FRONTEND_H_
