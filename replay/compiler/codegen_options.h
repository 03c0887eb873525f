// Applies what a variant asks of code generation, and what the application's
// own command asked, to IR before the pipeline. Works on IR alone, so that
// these options cost no front end.
#ifndef REPRISE_REPLAY_COMPILER_CODEGEN_OPTIONS_H_
#define REPRISE_REPLAY_COMPILER_CODEGEN_OPTIONS_H_

#include <string>
#include <vector>

#include "llvm/IR/Module.h"
#include "replay/compiler/unit_options.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

// Sets fast-math flags, denormal mode, register cap and launch bounds on the
// module's functions. libdevice's own functions keep their arithmetic; which of
// their forms is taken (ftz, approximate square root) is decided here, by
// replacing __nvvm_reflect. Thread-safe for different modules.
void ApplyCodegenOptions(const v1::CodegenOptions& options,
                         const UnitOptions& unit, llvm::Module& module);

// LLVM options that exist only as globals of the process, set for one job and
// put back by the destructor. Not thread-safe: one job at a time in a process.
class ScopedLlvmOptions {
 public:
  ScopedLlvmOptions(const v1::CodegenOptions& options, const UnitOptions& unit);
  ~ScopedLlvmOptions();
  ScopedLlvmOptions(const ScopedLlvmOptions&) = delete;
  ScopedLlvmOptions& operator=(const ScopedLlvmOptions&) = delete;

 private:
  void Set(const std::string& name, const std::string& value);
  std::vector<std::string> names_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_CODEGEN_OPTIONS_H_
