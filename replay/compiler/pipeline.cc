#include "replay/compiler/pipeline.h"

#include "absl/strings/str_cat.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/Analysis/LazyCallGraph.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "replay/compiler/test_faults.h"

namespace reprise {
namespace {

std::string UnitName(const llvm::Any& ir) {
  if (const auto* function = llvm::any_cast<const llvm::Function*>(&ir))
    return (*function)->getName().str();
  if (const auto* loop = llvm::any_cast<const llvm::Loop*>(&ir))
    return (*loop)->getHeader()->getParent()->getName().str();
  if (const auto* nodes = llvm::any_cast<const llvm::LazyCallGraph::SCC*>(&ir))
    return (*nodes)->getName();
  return "the module";
}

// The order matters: a manager ends before those it has proxies of.
struct Analyses {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graph;
  llvm::ModuleAnalysisManager modules;

  void Register(llvm::PassBuilder& builder) {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(graph);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, graph, modules);
  }
};

}  // namespace

void RunPasses(llvm::ModulePassManager& passes, llvm::Module& module) {
  Analyses analyses;
  llvm::PassBuilder builder;
  analyses.Register(builder);
  passes.run(module, analyses.modules);
}

std::string VerifierErrors(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  bool broken_debug_info = false;
  if (!llvm::verifyModule(module, &stream, &broken_debug_info)) return "";
  return text.empty() ? "invalid IR" : text;
}

absl::Status RunPipeline(const std::string& pipeline,
                         llvm::TargetMachine& target, const ProgressNote& note,
                         bool test_faults, llvm::Module& module) {
  llvm::PassInstrumentationCallbacks callbacks;
  if (note) {
    callbacks.registerBeforeNonSkippedPassCallback(
        [&note, &callbacks](llvm::StringRef pass, llvm::Any ir) {
          const llvm::StringRef name = callbacks.getPassNameForClassName(pass);
          note(absl::StrCat("pass ", (name.empty() ? pass : name).str(), " on ",
                            UnitName(ir)));
        });
  }
  llvm::PipelineTuningOptions tuning;
  tuning.SLPVectorization = true;  // as Clang's -O3
  Analyses analyses;
  llvm::PassBuilder builder(&target, tuning, std::nullopt, &callbacks);
  if (test_faults) RegisterTestFaults(builder);
  llvm::TargetLibraryInfoImpl library(module.getTargetTriple());
  analyses.functions.registerPass(
      [&] { return llvm::TargetLibraryAnalysis(library); });
  analyses.Register(builder);
  llvm::ModulePassManager passes;
  const std::string text = pipeline.empty() ? "default<O3>" : pipeline;
  if (llvm::Error error = builder.parsePassPipeline(passes, text)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pipeline \"", text, "\": ", llvm::toString(std::move(error))));
  }
  passes.run(module, analyses.modules);
  if (note) note("verifier");
  const std::string errors = VerifierErrors(module);
  if (!errors.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("pipeline \"", text, "\" left invalid IR: ", errors));
  }
  return absl::OkStatus();
}

}  // namespace reprise
