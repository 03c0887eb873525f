#include "replay/device/cpu/lowering/lowering.h"

#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/lowering/internal.h"

namespace reprise {
namespace {

absl::Status CheckInput(const llvm::Module& module) {
  if (!llvm::StringRef(module.getTargetTriple().str()).starts_with("nvptx")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got IR for ", module.getTargetTriple().str(), ", expected nvptx64"));
  }
  for (const llvm::GlobalValue& value : module.global_values()) {
    if (value.getName().starts_with("__reprise_")) {
      return absl::InvalidArgumentError(
          absl::StrCat("the device code defines ", value.getName().str(),
                       "; names that begin with "
                       "__reprise_ belong to the cpu device"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoweredModule> LowerToHost(llvm::Module& module,
                                          const LoweringOptions& options) {
  RETURN_IF_ERROR(CheckInput(module));
  cpu::LoweringState state{module, options, {}, {}, {}};
  RETURN_IF_ERROR(cpu::FindKernels(state));
  cpu::RemoveUnused(state);
  cpu::ResolveReflect(module);
  cpu::RemoveUnused(state);
  RETURN_IF_ERROR(cpu::LowerIntrinsics(state));
  if (options.instrument) cpu::CountFlops(state);
  RETURN_IF_ERROR(cpu::LowerGlobals(state));
  cpu::MoveToHost(state);
  RETURN_IF_ERROR(cpu::LinkDeviceLibrary(state));
  RETURN_IF_ERROR(cpu::BuildThreadFunctions(state));
  if (options.instrument) cpu::NoteAccesses(state);
  RETURN_IF_ERROR(cpu::BuildEntries(state));
  RETURN_IF_ERROR(cpu::CheckLowered(state));
  LoweredModule lowered;
  for (cpu::KernelState& kernel : state.kernels)
    lowered.kernels.push_back(std::move(kernel.info));
  lowered.globals = std::move(state.globals);
  return lowered;
}

}  // namespace reprise
