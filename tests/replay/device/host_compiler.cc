#include "tests/replay/device/host_compiler.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>

#include "absl/strings/str_cat.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

std::unique_ptr<llvm::TargetMachine> HostMachine() {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  static_cast<void>(initialized);
  const llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target* target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  llvm::SubtargetFeatures features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    features.AddFeature(feature.first(), feature.second);
  }
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  options.TrapUnreachable = true;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, llvm::sys::getHostCPUName(), features.getString(), options,
      llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Aggressive));
}

absl::Status Optimize(llvm::Module& module, llvm::TargetMachine& machine,
                      const std::string& pipeline) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopUnrolling =
      true;
  tuning.LoopInterleaving = true;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, pipeline)) {
    return absl::InvalidArgumentError(llvm::toString(std::move(error)));
  }
  passes.run(module, modules);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::CompileReply> CompileForHost(const std::string& bitcode_path,
                                                const LoweringOptions& options,
                                                const std::string& pipeline,
                                                std::string* ir) {
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module =
      llvm::parseIRFile(bitcode_path, diagnostic, context);
  if (module == nullptr) {
    return absl::NotFoundError(absl::StrCat("cannot read ", bitcode_path, ": ",
                                            diagnostic.getMessage().str()));
  }
  ASSIGN_OR_RETURN(LoweredModule lowered, LowerToHost(*module, options));
  const auto machine = HostMachine();
  module->setDataLayout(machine->createDataLayout());
  RETURN_IF_ERROR(Optimize(*module, *machine, pipeline));
  if (ir != nullptr) {
    llvm::raw_string_ostream stream(*ir);
    module->print(stream, nullptr);
  }
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager codegen;
  if (machine->addPassesToEmitFile(codegen, stream, nullptr,
                                   llvm::CodeGenFileType::ObjectFile)) {
    return absl::InternalError("the host target emits no objects");
  }
  codegen.run(*module);
  v1::CompileReply reply;
  reply.set_kind(v1::OUTCOME_KIND_OK);
  reply.set_code(object.data(), object.size());
  for (auto& kernel : lowered.kernels) *reply.add_kernels() = std::move(kernel);
  for (auto& global : lowered.globals) *reply.add_globals() = std::move(global);
  return reply;
}

}  // namespace reprise
