// Clang's front end in process: one translation unit, for the device, for one
// exact architecture, to LLVM IR before optimization with libdevice linked.
//
// The driver runs once per translation unit. Variants whose edits leave a
// prefix of the main file alone compile from a precompiled header of that
// prefix, built from the unmodified source when first wanted and kept in
// memory; where none can be built they compile without.
//
// Variants also do without the bodies of host functions, as long as the kernels
// that are wanted come out: a kernel template may be instantiated by host code
// alone, and then everything is compiled. A variant is rejected only by a
// compile of everything.
//
// Not thread-safe. The CompileTranslationUnit is borrowed and must outlive it.
#ifndef REPRISE_REPLAY_COMPILER_FRONTEND_H_
#define REPRISE_REPLAY_COMPILER_FRONTEND_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "replay/compiler/toolchain.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

struct FrontendResult {
  // Null where the source has errors. Holds kernel descriptions as
  // kernel_metadata.h says.
  std::unique_ptr<llvm::Module> module;
  // Errors as Clang prints them, file:line:column first.
  std::string diagnostics;
  bool used_pch = false;
  // Files beside the unit's own and the toolchain's that edited sources read or
  // ask for, "a.cu:3: ..." each. Their errors are not for a variant's author.
  std::vector<std::string> foreign_files;
};

class Frontend {
 public:
  // INVALID_ARGUMENT: the arguments make no device compile; the message holds
  // what Clang's driver says. FAILED_PRECONDITION: this machine lacks Clang's
  // headers or a CUDA toolkit.
  //
  // `kernels` are those that must come out; empty: unknown, so that everything
  // is compiled always.
  static absl::StatusOr<std::unique_ptr<Frontend>> Create(
      const v1::CompileTranslationUnit& unit, const std::string& architecture,
      std::vector<std::string> kernels, const Toolchain& tools);
  virtual ~Frontend() = default;

  using Overlays = google::protobuf::RepeatedPtrField<v1::SourceOverlay>;

  // Compiles with the overlays in place. With `fast` false, everything and from
  // scratch.
  virtual FrontendResult Compile(const Overlays& overlays, bool fast,
                                 llvm::LLVMContext& context) = 0;

  // Whether this translation unit may read one of the files: true where that
  // is not known.
  virtual bool Reads(const Overlays& overlays) const = 0;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_FRONTEND_H_
