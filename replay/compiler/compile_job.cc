#include "replay/compiler/compile_job.h"

#include <algorithm>

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/raw_ostream.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/code_hash.h"
#include "replay/compiler/codegen.h"
#include "replay/compiler/codegen_options.h"
#include "replay/compiler/kernel_selection.h"
#include "replay/compiler/module_facts.h"
#include "replay/compiler/note_accesses.h"
#include "replay/compiler/pipeline.h"
#include "replay/compiler/stopwatch.h"
#ifdef REPRISE_HAVE_CPU_LOWERING
#include "replay/device/cpu/lowering/lowering.h"
#endif

namespace reprise {
namespace {

// LLVM reports some back end errors through the context.
class ErrorCollector : public llvm::DiagnosticHandler {
 public:
  explicit ErrorCollector(std::string& errors) : errors_(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() != llvm::DS_Error) return true;
    llvm::raw_string_ostream stream(errors_);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    stream << "\n";
    return true;
  }

 private:
  std::string& errors_;
};

}  // namespace

CompileJob::CompileJob(KnownInput& known, const v1::Variant& variant,
                       v1::CompileTarget target,
                       const Compiler::Options& options, SharedTools& shared,
                       v1::CompileReply& reply)
    : known_(known),
      variant_(variant),
      target_(target),
      options_(options),
      shared_(shared),
      reply_(reply) {
  context_.setDiagnosticHandler(
      std::make_unique<ErrorCollector>(backend_errors_));
}

absl::Status CompileJob::WantFrontend(int index) {
  if (known_.frontends[index] != nullptr) return absl::OkStatus();
  // The kernels are in the first translation unit.
  std::vector<std::string> kernels;
  if (index == 0)
    kernels.assign(known_.input.kernels().begin(),
                   known_.input.kernels().end());
  ASSIGN_OR_RETURN(known_.frontends[index],
                   Frontend::Create(known_.input.translation_units(index),
                                    known_.input.architecture(),
                                    std::move(kernels), options_.tools));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<llvm::Module>> CompileJob::CompileUnit(
    int index, const Overlays& overlays) {
  Note(absl::StrCat("front end on ",
                    known_.input.translation_units(index).main_file()));
  RETURN_IF_ERROR(WantFrontend(index));
  // Precompiled headers pay from the second compile on; the recorder, which
  // compiles once, has no overlays.
  const bool fast = options_.use_pch && !overlays.empty();
  FrontendResult result =
      known_.frontends[index]->Compile(overlays, fast, context_);
  reply_.set_used_pch(reply_.used_pch() || result.used_pch);
  if (!result.foreign_files.empty()) return Reject(result.foreign_files);
  if (result.module == nullptr)
    return absl::InvalidArgumentError(result.diagnostics);
  NameVariablesByUnit(known_.input.translation_units(index), *result.module);
  return std::move(result.module);
}

absl::StatusOr<std::unique_ptr<llvm::Module>> CompileJob::LoadUnit(
    int index, const Overlays& overlays) {
  const v1::CompileTranslationUnit& unit =
      known_.input.translation_units(index);
  bool edited = unit.ir().empty();
  if (!edited && !overlays.empty()) {
    RETURN_IF_ERROR(WantFrontend(index));
    edited = known_.frontends[index]->Reads(overlays);
  }
  if (edited) return CompileUnit(index, overlays);
  Note(absl::StrCat("reading IR of ", unit.main_file()));
  return ReadIr(unit.ir(), unit.main_file());
}

absl::StatusOr<std::unique_ptr<llvm::Module>> CompileJob::ReadIr(
    const std::string& ir, const std::string& name) {
  auto module =
      llvm::parseBitcodeFile(llvm::MemoryBufferRef(ir, name), context_);
  if (!module) {
    return absl::DataLossError(
        absl::StrCat("the recorded IR of ", name,
                     " cannot be read: ", llvm::toString(module.takeError())));
  }
  return std::move(*module);
}

absl::StatusOr<std::unique_ptr<llvm::Module>> CompileJob::JoinUnits(
    const Overlays& overlays, std::vector<std::string>& kernels) {
  ASSIGN_OR_RETURN(std::unique_ptr<llvm::Module> module, LoadUnit(0, overlays));
  if (kernels.empty()) kernels = KernelNames(*module);
  for (int i = 1; i < known_.input.translation_units_size(); ++i) {
    ASSIGN_OR_RETURN(std::unique_ptr<llvm::Module> more, LoadUnit(i, overlays));
    Note("linking IR");
    if (llvm::Linker::linkModules(*module, std::move(more)))
      return absl::InvalidArgumentError(backend_errors_);
  }
  return module;
}

absl::StatusOr<std::unique_ptr<llvm::Module>> CompileJob::LinkUnits() {
  const Stopwatch watch;
  kernels_.assign(known_.input.kernels().begin(), known_.input.kernels().end());
  // IR as the recorder keeps it is whole: other kernels are units too.
  const bool whole =
      target_ == v1::COMPILE_TARGET_DEVICE_IR && kernels_.empty();
  std::unique_ptr<llvm::Module> module;
  if (whole) {
    ASSIGN_OR_RETURN(module, JoinUnits(variant_.sources(), kernels_));
  } else if (variant_.sources().empty()) {
    ASSIGN_OR_RETURN(module, RecordedUnits());
  } else {
    ASSIGN_OR_RETURN(module, SelectedUnits(variant_.sources()));
    RETURN_IF_ERROR(CheckCode(*module));
  }
  reply_.set_frontend_ms(watch.ElapsedMs());
  return module;
}

absl::StatusOr<std::unique_ptr<llvm::Module>> CompileJob::SelectedUnits(
    const Overlays& overlays) {
  ASSIGN_OR_RETURN(std::unique_ptr<llvm::Module> module,
                   JoinUnits(overlays, kernels_));
  RETURN_IF_ERROR(
      SelectKernels(kernels_, known_.input.keep_variables(), *module));
  return module;
}

// Read back even the first time, so that all compiles begin with the same
// module.
absl::StatusOr<std::unique_ptr<llvm::Module>> CompileJob::RecordedUnits() {
  if (known_.selected_ir.empty()) {
    ASSIGN_OR_RETURN(const std::unique_ptr<llvm::Module> module,
                     SelectedUnits({}));
    llvm::raw_string_ostream stream(known_.selected_ir);
    llvm::WriteBitcodeToFile(*module, stream);
    known_.selected_kernels = kernels_;
  }
  kernels_ = known_.selected_kernels;
  return ReadIr(known_.selected_ir,
                known_.input.translation_units(0).main_file());
}

void CompileJob::Describe(const llvm::Module& module) {
  for (v1::CompiledKernelInfo& kernel : KernelFacts(kernels_, module))
    *reply_.add_kernels() = std::move(kernel);
  for (v1::ModuleGlobal& global : GlobalFacts(module))
    *reply_.add_globals() = std::move(global);
}

absl::Status CompileJob::FinishIr(llvm::Module& module) {
  const std::string errors = VerifierErrors(module);
  if (!errors.empty())
    return absl::InternalError("the front end left invalid IR: " + errors);
  llvm::raw_string_ostream stream(*reply_.mutable_code());
  llvm::WriteBitcodeToFile(module, stream);
  stream.flush();
  reply_.set_code_sha256(DigestIr(module).sha256);
  CountInstructions(module, *reply_.mutable_facts());
  reply_.mutable_facts()->set_code_bytes(reply_.code().size());
  return absl::OkStatus();
}

absl::Status CompileJob::RunPasses(llvm::TargetMachine& machine,
                                   llvm::Module& module) {
  const Stopwatch watch;
  RETURN_IF_ERROR(RunPipeline(variant_.pipeline(), machine, options_.note,
                              options_.test_faults, module));
  reply_.set_pipeline_ms(watch.ElapsedMs());
  CountInstructions(module, *reply_.mutable_facts());
  std::vector<std::string> entries;
  for (const v1::CompiledKernelInfo& kernel : reply_.kernels())
    entries.push_back(kernel.entry().empty() ? kernel.symbol()
                                             : kernel.entry());
  return CheckKept(entries, known_.input.keep_variables(), module,
                   *reply_.mutable_globals());
}

absl::StatusOr<std::string> CompileJob::Emit(llvm::TargetMachine& machine,
                                             llvm::CodeGenFileType type,
                                             llvm::Module& module) {
  const Stopwatch watch;
  Note("code generation");
  ASSIGN_OR_RETURN(std::string code, EmitCode(machine, type, module));
  reply_.set_codegen_ms(watch.ElapsedMs());
  if (!backend_errors_.empty())
    return absl::InvalidArgumentError("code generation: " + backend_errors_);
  return code;
}

absl::Status CompileJob::Instrument(llvm::TargetMachine& machine,
                                    llvm::Module& module) {
  RETURN_IF_ERROR(RunPipeline(kPipelineBeforeNotes, machine, options_.note,
                              /*test_faults=*/false, module));
  Note("noting accesses");
  ASSIGN_OR_RETURN(const std::vector<std::string> not_noted,
                   NoteAccesses(module));
  for (const std::string& what : not_noted)
    absl::StrAppend(reply_.mutable_diagnostics(), "not noted: ", what, "\n");
  return absl::OkStatus();
}

absl::Status CompileJob::FinishGpu(llvm::Module& module) {
  llvm::StripDebugInfo(module);
  if (target_ != v1::COMPILE_TARGET_PTX) RETURN_IF_ERROR(LoadLinker());
  ASSIGN_OR_RETURN(
      std::unique_ptr<llvm::TargetMachine> machine,
      CreateGpuTargetMachine(
          known_.input.architecture(), module, Fuses(),
          shared_.linker != nullptr ? shared_.linker->ptx_version() : kAnyPtx));
  if (target_ == v1::COMPILE_TARGET_CUBIN_INSTRUMENTED)
    RETURN_IF_ERROR(Instrument(*machine, module));
  RETURN_IF_ERROR(RunPasses(*machine, module));
  for (v1::CompiledKernelInfo& kernel : *reply_.mutable_kernels()) {
    if (const llvm::Function* function = module.getFunction(kernel.symbol()))
      kernel.set_static_shared_bytes(StaticSharedBytes(*function));
  }
  ASSIGN_OR_RETURN(const std::string ptx,
                   Emit(*machine, llvm::CodeGenFileType::AssemblyFile, module));
  if (target_ != v1::COMPILE_TARGET_PTX) return LinkCubin({ptx});
  KeepPtx(ptx);
  return absl::OkStatus();
}

void CompileJob::KeepPtx(const std::string& ptx) {
  const CodeDigest digest = DigestPtx(ptx);
  reply_.set_code(ptx);
  reply_.set_code_sha256(digest.sha256);
  reply_.mutable_facts()->set_code_bytes(digest.code_bytes);
  for (const v1::CompiledKernelInfo& kernel : reply_.kernels()) {
    reply_.mutable_facts()->set_static_shared_bytes(std::max(
        reply_.facts().static_shared_bytes(), kernel.static_shared_bytes()));
  }
}

absl::Status CompileJob::LoadLinker() {
  if (shared_.linker != nullptr) return absl::OkStatus();
  Note("loading nvJitLink");
  absl::StatusOr<std::unique_ptr<NvJitLink>> loaded =
      NvJitLink::Load(options_.tools.nvjitlink_candidates);
  if (!loaded.ok()) return absl::UnavailableError(loaded.status().message());
  shared_.linker = *std::move(loaded);
  return absl::OkStatus();
}

absl::Status CompileJob::LinkCubin(const std::vector<std::string>& ptx) {
  Note("nvJitLink");
  const Stopwatch watch;
  std::vector<std::string> words;
  for (const std::string& option : known_.options[0].ptxas_options) {
    const bool level = option.rfind("-O", 0) == 0;
    if (!level || !variant_.codegen().has_ptxas_level())
      words.push_back("-Xptxas=" + option);
  }
  if (variant_.codegen().has_ptxas_level())
    words.push_back(
        absl::StrCat("-Xptxas=-O", variant_.codegen().ptxas_level()));
  ASSIGN_OR_RETURN(
      LinkedCubin linked,
      shared_.linker->Link(ptx, known_.input.architecture(), words));
  ASSIGN_OR_RETURN(const CodeDigest digest, DigestElf(linked.cubin));
  reply_.set_code(std::move(linked.cubin));
  reply_.set_code_sha256(digest.sha256);
  v1::CodeFacts& facts = *reply_.mutable_facts();
  facts.set_code_bytes(digest.code_bytes);
  for (const PtxasKernelReport& report : linked.kernels) {
    facts.set_registers(std::max(facts.registers(), report.registers));
    facts.set_spill_bytes(std::max(facts.spill_bytes(), report.spill_bytes));
    facts.set_static_shared_bytes(
        std::max(facts.static_shared_bytes(), report.shared_bytes));
    for (v1::CompiledKernelInfo& kernel : *reply_.mutable_kernels()) {
      if (kernel.symbol() == report.symbol)
        kernel.set_static_shared_bytes(report.shared_bytes);
    }
  }
  reply_.set_link_ms(watch.ElapsedMs());
  return absl::OkStatus();
}

#ifdef REPRISE_HAVE_CPU_LOWERING
namespace {

// What the lowering may build into code: the variant's own launch where it
// differs from the recorded one.
v1::LaunchConfig LaunchToBuildFor(const v1::CompileInput& input,
                                  const v1::Variant& variant) {
  v1::LaunchConfig launch = input.launch();
  if (variant.launch().has_block()) {
    *launch.mutable_block() = variant.launch().block();
    launch.clear_grid();  // re-derived by who launches
  }
  if (variant.launch().has_dynamic_shared_bytes())
    launch.set_dynamic_shared_bytes(variant.launch().dynamic_shared_bytes());
  return launch;
}

// The lowering knows entries, barriers and memory; what the source says and
// NVPTX's layout are known from before.
void MergeKernels(const LoweredModule& lowered, v1::CompileReply& reply) {
  for (v1::CompiledKernelInfo& kernel : *reply.mutable_kernels()) {
    for (const v1::CompiledKernelInfo& host : lowered.kernels) {
      if (host.symbol() != kernel.symbol()) continue;
      kernel.set_entry(host.entry());
      kernel.set_has_barriers(host.has_barriers());
      kernel.set_static_shared_bytes(host.static_shared_bytes());
      reply.mutable_facts()->set_static_shared_bytes(std::max(
          reply.facts().static_shared_bytes(), host.static_shared_bytes()));
    }
  }
  reply.clear_globals();
  for (const v1::ModuleGlobal& global : lowered.globals)
    *reply.add_globals() = global;
}

}  // namespace

absl::Status CompileJob::FinishCpu(llvm::Module& module) {
  Note("lowering to the host");
  LoweringOptions lowering;
  lowering.instrument = target_ == v1::COMPILE_TARGET_CPU_INSTRUMENTED;
  lowering.launch = LaunchToBuildFor(known_.input, variant_);
  lowering.keep_variables = known_.input.keep_variables();
  for (const v1::CompiledKernelInfo& kernel : reply_.kernels())
    lowering.kernels.push_back(kernel.symbol());
  ASSIGN_OR_RETURN(const LoweredModule lowered, LowerToHost(module, lowering));
  MergeKernels(lowered, reply_);
  llvm::StripDebugInfo(module);
  ASSIGN_OR_RETURN(std::unique_ptr<llvm::TargetMachine> machine,
                   CreateHostTargetMachine(Fuses()));
  AdoptHost(*machine, variant_.codegen(), module);
  RETURN_IF_ERROR(RunPasses(*machine, module));
  ASSIGN_OR_RETURN(std::string object,
                   Emit(*machine, llvm::CodeGenFileType::ObjectFile, module));
  ASSIGN_OR_RETURN(const CodeDigest digest, DigestElf(object));
  reply_.set_code(std::move(object));
  reply_.set_code_sha256(digest.sha256);
  reply_.mutable_facts()->set_code_bytes(digest.code_bytes);
  return absl::OkStatus();
}
#else
absl::Status CompileJob::FinishCpu(llvm::Module&) {
  return absl::UnimplementedError(
      "this build has no cpu lowering (CMake target reprise_cpu_lowering): "
      "code for the cpu device cannot be built");
}
#endif

absl::Status CompileJob::Run() {
  if (!variant_.frontend().empty() && variant_.frontend() != "clang" &&
      variant_.frontend() != "nvrtc") {
    return absl::InvalidArgumentError(
        absl::StrCat("got front end \"", variant_.frontend(),
                     "\", expected \"clang\" or \"nvrtc\""));
  }
  if (known_.options.empty())
    return absl::InternalError("got a compile input without translation units");
  RETURN_IF_ERROR(CheckPipeline());
  RETURN_IF_ERROR(CheckEditedFiles());
  if (variant_.frontend() == "nvrtc") return RunNvidia();
  const ScopedLlvmOptions process_options(variant_.codegen(),
                                          known_.options[0]);
  ASSIGN_OR_RETURN(std::unique_ptr<llvm::Module> module, LinkUnits());
  if (target_ == v1::COMPILE_TARGET_DEVICE_IR) {
    Describe(*module);
    return FinishIr(*module);
  }
  Note("codegen options");
  ApplyCodegenOptions(variant_.codegen(), known_.options[0], *module);
  Describe(*module);
  switch (target_) {
    case v1::COMPILE_TARGET_PTX:
    case v1::COMPILE_TARGET_CUBIN:
    case v1::COMPILE_TARGET_CUBIN_INSTRUMENTED:
      return FinishGpu(*module);
    case v1::COMPILE_TARGET_CPU:
    case v1::COMPILE_TARGET_CPU_INSTRUMENTED:
      return FinishCpu(*module);
    default:
      return absl::InternalError(
          absl::StrCat("got compile target ", target_, ", which is none"));
  }
}

}  // namespace reprise
