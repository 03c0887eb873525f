// What NVIDIA's compilers are told for a translation unit and a variant, from
// the unit's Clang arguments. Thread-safe; needs no LLVM.
#ifndef REPRISE_REPLAY_COMPILER_NVIDIA_OPTIONS_H_
#define REPRISE_REPLAY_COMPILER_NVIDIA_OPTIONS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// Words that NVRTC and nvcc understand alike.
struct NvidiaOptions {
  // -D, -U, -std and the arithmetic: -fmad, -ftz, -prec-div, -prec-sqrt,
  // -use_fast_math.
  std::vector<std::string> language;
  // Directories in the order of the command; second: of system headers.
  std::vector<std::pair<std::string, bool>> include_directories;
  std::vector<std::string> pre_includes;
  bool relocatable = false;
};

NvidiaOptions TranslateForNvidia(const v1::CompileTranslationUnit& unit,
                                 const v1::CodegenOptions& codegen);

// "compute_90a" of "sm_90a".
std::string VirtualArchitecture(const std::string& architecture);

// INVALID_ARGUMENT where a variant asks for what only Clang and LLVM have: a
// pipeline, thresholds of passes, fast-math flags of its own.
absl::Status CheckNvidiaVariant(const v1::Variant& variant);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_NVIDIA_OPTIONS_H_
