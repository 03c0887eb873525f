// Turns device IR (unoptimized, as Clang emits it for NVPTX, libdevice linked
// in) into a host module whose kernels run one block per call (replay/device/
// cpu/abi.h).
//
// The result is ready for a PassBuilder pipeline with a TargetMachine of the
// host and for code generation to a relocatable object, which an executor
// (replay/device/cpu/executor_client.h) loads. Its triple and data layout are
// the host's; what it leaves undefined is
//   - the module's device variables, which the executor resolves to addresses
//     in recorded memory (LoweredModule::globals), and
//   - runtime entry points named __reprise_*, and libm functions, which the
//     executor supplies.
//
// Thread-safety: functions may be called from several threads on modules of
// different contexts.
#ifndef REPRISE_REPLAY_DEVICE_CPU_LOWERING_LOWERING_H_
#define REPRISE_REPLAY_DEVICE_CPU_LOWERING_LOWERING_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reprise/v1/node.pb.h"
#include "reprise/v1/types.pb.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace reprise {

struct LoweringOptions {
  // Mark and count every access to memory that other launches can see.
  bool instrument = false;
  // The launch the code is for. Absent fields promise nothing; a block
  // dimension that is set is compiled in, and the entry refuses others.
  v1::LaunchConfig launch;
  std::vector<std::string> kernels;  // empty: all
  // Device variables stay that no kernel names.
  bool keep_variables = false;
};

struct LoweredModule {
  std::vector<v1::CompiledKernelInfo> kernels;
  std::vector<v1::ModuleGlobal> globals;
};

// Lowers `module` in place. Kernels other than the chosen ones are removed.
// NOT_FOUND: a chosen kernel is not in the module. FAILED_PRECONDITION: the
// device code uses something the cpu device cannot run; the message names the
// kernel, the instruction and its source place. INVALID_ARGUMENT: not device
// IR. On an error the module is unusable.
absl::StatusOr<LoweredModule> LowerToHost(llvm::Module& module,
                                          const LoweringOptions& options);

}  // namespace reprise

#endif  // REPRISE_REPLAY_DEVICE_CPU_LOWERING_LOWERING_H_
