// Clang's driver in process: from a translation unit's driver arguments to the
// arguments of the one device compile. Thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_CLANG_DRIVER_H_
#define REPRISE_REPLAY_COMPILER_CLANG_DRIVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "clang/Frontend/CompilerInvocation.h"
#include "replay/compiler/source_files.h"
#include "replay/compiler/toolchain.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// The invocation of a device compile to unoptimized LLVM IR (as -O3 -Xclang
// -disable-llvm-passes), warnings off. `files` is what the driver sees; it asks
// for GCC, the toolkit and Clang's headers. INVALID_ARGUMENT: the driver
// refuses the arguments, with its words; FAILED_PRECONDITION: this machine
// lacks what it needs.
absl::StatusOr<std::shared_ptr<clang::CompilerInvocation>>
CreateDeviceInvocation(const v1::CompileTranslationUnit& unit,
                       const std::string& architecture, const Toolchain& tools,
                       FileSystemPtr files);

// Makes the targets that Reprise compiles for known to LLVM, and sets the LLVM
// options that Clang's driver sets for the device. Once per process; cheap
// afterwards.
void InitializeLlvm();

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_CLANG_DRIVER_H_
