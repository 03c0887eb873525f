// The source closure of a translation unit: every file that its device compile
// reads. For the recorder (`reprise cc`); needs no LLVM header.
#ifndef REPRISE_REPLAY_COMPILER_SOURCE_CLOSURE_H_
#define REPRISE_REPLAY_COMPILER_SOURCE_CLOSURE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/compiler/toolchain.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// One file that a device compile reads.
struct ClosureFile {
  std::string path;  // absolute, as Clang opened it
  std::string content;
  bool system = false;  // found through a system include path
};

// Files that a device compile of `unit` reads, the main file first; libdevice
// and cuda.h, which Clang's driver reads, are among them. Preprocesses in this
// process (some 150 ms); call it in a child where a crash in Clang must not
// matter. INVALID_ARGUMENT holds Clang's errors where the source does not
// preprocess. Thread-safe.
absl::StatusOr<std::vector<ClosureFile>> ComputeSourceClosure(
    const v1::CompileTranslationUnit& unit, const std::string& architecture,
    const Toolchain& tools);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_SOURCE_CLOSURE_H_
