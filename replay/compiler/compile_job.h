// One compile of a unit's variant for a target; what Compiler::Compile does.
//
// Not thread-safe; lives for one compile. Needs LLVM's headers, so it is for
// this folder only.
#ifndef REPRISE_REPLAY_COMPILER_COMPILE_JOB_H_
#define REPRISE_REPLAY_COMPILER_COMPILE_JOB_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "replay/compiler/code_inventory.h"
#include "replay/compiler/compiler.h"
#include "replay/compiler/frontend.h"
#include "replay/compiler/nvidia_frontend.h"
#include "replay/compiler/nvjitlink.h"
#include "replay/compiler/nvrtc.h"
#include "replay/compiler/unit_options.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// What is loaded when first wanted and serves all jobs.
struct SharedTools {
  std::unique_ptr<NvJitLink> linker;
  std::unique_ptr<Nvrtc> nvrtc;  // null where it is missing
  bool looked_for_nvrtc = false;
  // Of NVIDIA's compilers.
  std::string scratch_directory;
  int scratch_directories = 0;  // made in it so far
};

// An input with what is built from it once.
struct KnownInput {
  explicit KnownInput(v1::CompileInput given)
      : input(std::move(given)),
        frontends(input.translation_units_size()),
        nvidia_frontends(input.translation_units_size()) {
    for (const v1::CompileTranslationUnit& unit : input.translation_units())
      options.push_back(ParseUnitOptions(unit));
  }
  const v1::CompileInput input;
  std::vector<std::unique_ptr<Frontend>> frontends;  // null until wanted
  std::vector<std::unique_ptr<NvidiaFrontend>> nvidia_frontends;  // the same
  std::vector<UnitOptions> options;
  // All units' recorded IR as one module, as LinkUnits leaves it, in bitcode;
  // empty until wanted. And its kernels.
  std::string selected_ir;
  std::vector<std::string> selected_kernels;
  // Of the unmodified code, by front end; unset until wanted.
  std::optional<CodeInventory> recorded, recorded_ptx;
};

// One compile: the reply is filled as the steps go. Steps return the variant's
// faults as INVALID_ARGUMENT, NOT_FOUND and FAILED_PRECONDITION, this
// machine's as other codes.
class CompileJob {
 public:
  // All but the variant and the target are filled or kept for later compiles:
  // Everything outlives the job.
  CompileJob(KnownInput& known, const v1::Variant& variant,
             v1::CompileTarget target, const Compiler::Options& options,
             SharedTools& shared, v1::CompileReply& reply);

  absl::Status Run();

 private:
  using Overlays = Frontend::Overlays;

  absl::Status WantFrontend(int index);
  absl::StatusOr<std::unique_ptr<llvm::Module>> LoadUnit(
      int index, const Overlays& overlays);
  absl::StatusOr<std::unique_ptr<llvm::Module>> CompileUnit(
      int index, const Overlays& overlays);
  // All units as one module. `kernels`: those that are wanted; empty: all of
  // the first unit, which are added.
  absl::StatusOr<std::unique_ptr<llvm::Module>> JoinUnits(
      const Overlays& overlays, std::vector<std::string>& kernels);
  absl::StatusOr<std::unique_ptr<llvm::Module>> LinkUnits();
  // As JoinUnits, and nothing but what the kernels reach.
  absl::StatusOr<std::unique_ptr<llvm::Module>> SelectedUnits(
      const Overlays& overlays);
  // The same of the variants that leave the sources as they are.
  absl::StatusOr<std::unique_ptr<llvm::Module>> RecordedUnits();
  absl::StatusOr<std::unique_ptr<llvm::Module>> ReadIr(const std::string& ir,
                                                       const std::string& name);

  // --- What a variant may not do (compile_job_guards.cc).
  // The reply gets kind REJECTED, whatever the status says.
  absl::Status Reject(const std::vector<std::string>& reasons);
  // Passes that touch more than the module.
  absl::Status CheckPipeline();
  // Edits of files that are not the user's own.
  absl::Status CheckEditedFiles();
  // Code that does what the recorded code does not.
  absl::Status CheckCode(const llvm::Module& module);
  absl::Status CheckPtx(const std::vector<std::string>& ptx);
  absl::Status WantRecordedInventory();
  absl::Status WantRecordedPtxInventory();
  // Kernels and variables, before the target's own changes.
  void Describe(const llvm::Module& module);
  absl::Status FinishIr(llvm::Module& module);
  // Adds the notes of accesses; what cannot be noted goes to the diagnostics.
  absl::Status Instrument(llvm::TargetMachine& machine, llvm::Module& module);
  absl::Status FinishGpu(llvm::Module& module);
  absl::Status FinishCpu(llvm::Module& module);
  absl::Status LoadLinker();
  absl::Status LinkCubin(const std::vector<std::string>& ptx);
  void KeepPtx(const std::string& ptx);

  // --- NVIDIA's compiler instead of Clang and LLVM (compile_job_nvidia.cc).
  absl::Status RunNvidia();
  absl::Status WantNvidiaFrontend(int index);
  // PTX of all units, the kernels under the names that the input has.
  absl::StatusOr<std::vector<std::string>> CompileByNvidia(
      const Overlays& overlays, const v1::CodegenOptions& codegen);
  absl::Status NameKernels(std::vector<std::string>& ptx);
  absl::Status DescribePtx(const std::vector<std::string>& ptx);
  absl::Status RunPasses(llvm::TargetMachine& machine, llvm::Module& module);
  absl::StatusOr<std::string> Emit(llvm::TargetMachine& machine,
                                   llvm::CodeGenFileType type,
                                   llvm::Module& module);
  bool Fuses() const {
    return variant_.codegen().has_fp_contract()
               ? variant_.codegen().fp_contract()
               : known_.options[0].fuse;
  }
  void Note(std::string_view what) const {
    if (options_.note) options_.note(what);
  }

  KnownInput& known_;
  const v1::Variant& variant_;
  const v1::CompileTarget target_;
  const Compiler::Options& options_;
  SharedTools& shared_;
  v1::CompileReply& reply_;
  std::vector<std::string> kernels_;  // that are compiled
  std::string backend_errors_;
  llvm::LLVMContext context_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_COMPILE_JOB_H_
