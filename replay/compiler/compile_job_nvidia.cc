// A compile by NVIDIA's compiler: source to PTX there, PTX to machine code as
// ever.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/compile_job.h"
#include "replay/compiler/nvidia_options.h"
#include "replay/compiler/ptx_text.h"
#include "replay/compiler/stopwatch.h"

namespace reprise {

absl::Status CompileJob::WantNvidiaFrontend(int index) {
  if (known_.nvidia_frontends[index] != nullptr) return absl::OkStatus();
  if (!shared_.looked_for_nvrtc) {
    shared_.looked_for_nvrtc = true;
    absl::StatusOr<std::unique_ptr<Nvrtc>> loaded =
        Nvrtc::Load(options_.tools.nvrtc_candidates);
    if (loaded.ok()) shared_.nvrtc = *std::move(loaded);
  }
  if (shared_.nvrtc == nullptr && options_.tools.nvcc.empty()) {
    return absl::UnavailableError(
        "this machine has neither NVRTC nor nvcc: front end nvrtc needs the "
        "CUDA 13 toolkit; install it or name it by CUDA_HOME");
  }
  NvidiaFrontend::Options options;
  options.architecture = known_.input.architecture();
  if (index == 0)
    options.kernels.assign(known_.input.kernels().begin(),
                           known_.input.kernels().end());
  options.keep_variables = known_.input.keep_variables();
  options.tools = options_.tools;
  options.scratch_directory = absl::StrCat(shared_.scratch_directory, "/",
                                           shared_.scratch_directories++);
  RETURN_IF_ERROR(MakeDirectories(options.scratch_directory, 0700));
  ASSIGN_OR_RETURN(
      known_.nvidia_frontends[index],
      NvidiaFrontend::Create(known_.input.translation_units(index),
                             std::move(options), shared_.nvrtc.get()));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> CompileJob::CompileByNvidia(
    const Overlays& overlays, const v1::CodegenOptions& codegen) {
  const Stopwatch watch;
  std::vector<std::string> ptx;
  for (int i = 0; i < known_.input.translation_units_size(); ++i) {
    Note(absl::StrCat("NVIDIA's compiler on ",
                      known_.input.translation_units(i).main_file()));
    RETURN_IF_ERROR(WantNvidiaFrontend(i));
    ASSIGN_OR_RETURN(NvidiaFrontend::Result result,
                     known_.nvidia_frontends[i]->Compile(overlays, codegen));
    if (!result.nvcc_because.empty()) {
      absl::StrAppend(reply_.mutable_diagnostics(),
                      "compiled by nvcc, since NVRTC cannot take ",
                      known_.input.translation_units(i).main_file(), ": ",
                      result.nvcc_because, "\n");
    }
    ptx.push_back(std::move(result.ptx));
  }
  reply_.set_frontend_ms(watch.ElapsedMs());
  return ptx;
}

absl::Status CompileJob::NameKernels(std::vector<std::string>& ptx) {
  const std::vector<std::string> made = PtxKernelNames(ptx[0]);
  kernels_.assign(known_.input.kernels().begin(), known_.input.kernels().end());
  if (kernels_.empty()) kernels_ = made;
  std::vector<std::string> own;
  for (const std::string& kernel : kernels_) {
    const int found = FindKernelSymbol(made, kernel);
    if (found < 0) {
      return absl::NotFoundError(absl::StrCat(
          "kernel ", kernel,
          " is not in the compiled source any more, or several could be it; a "
          "variant keeps its name and parameter types. The source has: ",
          absl::StrJoin(made, ", ")));
    }
    own.push_back(made[static_cast<size_t>(found)]);
  }
  ptx[0] = KeepPtxKernels(ptx[0], own);
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i] != kernels_[i])
      ptx[0] = RenamePtxSymbol(ptx[0], own[i], kernels_[i]);
  // Other units hold what the kernels call.
  for (size_t i = 1; i < ptx.size(); ++i) ptx[i] = KeepPtxKernels(ptx[i], {});
  return absl::OkStatus();
}

absl::Status CompileJob::DescribePtx(const std::vector<std::string>& ptx) {
  for (const std::string& kernel : kernels_) {
    ASSIGN_OR_RETURN(*reply_.add_kernels(), DescribePtxKernel(ptx[0], kernel));
  }
  for (const std::string& text : ptx) {
    for (v1::ModuleGlobal& variable : PtxVariables(text))
      *reply_.add_globals() = std::move(variable);
  }
  return absl::OkStatus();
}

absl::Status CompileJob::RunNvidia() {
  if (target_ != v1::COMPILE_TARGET_PTX && target_ != v1::COMPILE_TARGET_CUBIN)
    return absl::InvalidArgumentError(
        "got front end nvrtc for a build that needs LLVM IR (the cpu device, "
        "or "
        "noted accesses): it makes code for GPUs only; use front end clang");
  RETURN_IF_ERROR(CheckNvidiaVariant(variant_));
  ASSIGN_OR_RETURN(std::vector<std::string> ptx,
                   CompileByNvidia(variant_.sources(), variant_.codegen()));
  RETURN_IF_ERROR(NameKernels(ptx));
  if (!variant_.sources().empty()) RETURN_IF_ERROR(CheckPtx(ptx));
  ptx[0] = SetPtxLimits(ptx[0], variant_.codegen(),
                        variant_.codegen().has_max_registers()
                            ? variant_.codegen().max_registers()
                            : known_.options[0].max_registers);
  RETURN_IF_ERROR(DescribePtx(ptx));
  if (target_ == v1::COMPILE_TARGET_PTX) {
    if (ptx.size() > 1)
      return absl::InvalidArgumentError(
          "PTX of several translation units is several texts; build a cubin");
    KeepPtx(ptx[0]);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(LoadLinker());
  return LinkCubin(ptx);
}

}  // namespace reprise
