#include "replay/compiler/clang_driver.h"

#include <mutex>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clang/Basic/Diagnostic.h"
#include "clang/Basic/DiagnosticOptions.h"
#include "clang/Basic/LangOptions.h"
#include "clang/Driver/Compilation.h"
#include "clang/Driver/Driver.h"
#include "clang/Driver/Job.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "llvm/Option/ArgList.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include "replay/compiler/unit_options.h"

namespace reprise {
namespace {

std::vector<std::string> DriverArguments(const v1::CompileTranslationUnit& unit,
                                         const std::string& architecture,
                                         const Toolchain& tools) {
  // Clang finds the rest of its installation from its own place.
  std::vector<std::string> args = {
      CleanPath(tools.clang_resources + "/../../../bin/clang++", "/"),
      "--driver-mode=g++", "--no-default-config",
      // Ours first, so that a unit's own --cuda-path wins.
      "--cuda-path=" + tools.cuda_home};
  for (const std::string& arg : unit.clang_args()) args.push_back(arg);
  for (const std::string& arg :
       {std::string("-resource-dir"), tools.clang_resources,
        std::string("--cuda-device-only"), "--offload-arch=" + architecture,
        std::string("--no-cuda-version-check"), std::string("-w"),
        std::string("-Wno-unknown-cuda-version"),
        std::string("-Qunused-arguments"), std::string("-O3"),
        std::string("-Xclang"), std::string("-disable-llvm-passes"),
        std::string("-emit-llvm"), std::string("-c"), std::string("-o"),
        std::string("-"), std::string("-x"), std::string("cuda"),
        unit.main_file()})
    args.push_back(arg);
  return args;
}

// cc1's arguments without those for LLVM's command line: they are the
// process's, not the job's; unit_options.h reads them.
std::vector<const char*> FrontEndArguments(
    const llvm::opt::ArgStringList& all) {
  std::vector<const char*> args;
  for (size_t i = 1; i < all.size(); ++i) {  // the first is -cc1
    if (llvm::StringRef(all[i]) == "-mllvm") {
      ++i;
    } else {
      args.push_back(all[i]);
    }
  }
  return args;
}

void AdjustForResidence(clang::CompilerInvocation& invocation) {
  // A worker lives on after the compile, and descriptions of kernels are read
  // from the AST after IR was made.
  invocation.getFrontendOpts().DisableFree = false;
  clang::CodeGenOptions& codegen = invocation.getCodeGenOpts();
  codegen.ClearASTBeforeBackend = false;
  codegen.DisableLLVMPasses = true;
  codegen.EmitLLVMUseLists = false;
  codegen.VerifyModule = false;  // verified after the pipeline
  // For messages that name a line; taken out before the pipeline.
  codegen.setDebugInfo(llvm::codegenoptions::DebugLineTablesOnly);
  codegen.DwarfVersion = 4;
  // Once, when a precompiled header is built, and not in each compile.
  invocation.getLangOpts().PCHInstantiateTemplates = true;
  clang::DiagnosticOptions& diagnostics = invocation.getDiagnosticOpts();
  diagnostics.IgnoreWarnings = true;
  diagnostics.ShowColors = false;
  diagnostics.ErrorLimit = 10;
}

}  // namespace

void InitializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    const char* options[] = {"reprise", "-enable-memcpyopt-without-libcalls"};
    llvm::cl::ParseCommandLineOptions(2, options, "", &llvm::nulls());
  });
}

absl::StatusOr<std::shared_ptr<clang::CompilerInvocation>>
CreateDeviceInvocation(const v1::CompileTranslationUnit& unit,
                       const std::string& architecture, const Toolchain& tools,
                       FileSystemPtr files) {
  if (tools.clang_resources.empty()) {
    return absl::FailedPreconditionError(
        "clang's own headers were not found (lib/clang/22); install clang-22 "
        "or set REPRISE_CLANG_RESOURCES");
  }
  InitializeLlvm();
  std::string text;
  llvm::raw_string_ostream stream(text);
  clang::DiagnosticOptions options;
  clang::DiagnosticsEngine diagnostics(
      clang::DiagnosticIDs::create(), options,
      new clang::TextDiagnosticPrinter(stream, options));
  const std::vector<std::string> words =
      DriverArguments(unit, architecture, tools);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  clang::driver::Driver driver(argv[0], llvm::sys::getDefaultTargetTriple(),
                               diagnostics, "reprise", files);
  driver.setProbePrecompiled(false);
  const std::unique_ptr<clang::driver::Compilation> compilation(
      driver.BuildCompilation(argv));
  if (!compilation || diagnostics.hasErrorOccurred())
    return absl::InvalidArgumentError(text);
  const clang::driver::Command* front_end = nullptr;
  for (const clang::driver::Command& job : compilation->getJobs()) {
    const auto& arguments = job.getArguments();
    if (!arguments.empty() && llvm::StringRef(arguments[0]) == "-cc1")
      front_end = &job;
  }
  if (front_end == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the arguments of ", unit.main_file(),
                     " make no device compile: ", text));
  }
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  if (!clang::CompilerInvocation::CreateFromArgs(
          *invocation, FrontEndArguments(front_end->getArguments()),
          diagnostics, argv[0]))
    return absl::InvalidArgumentError(text);
  AdjustForResidence(*invocation);
  return invocation;
}

}  // namespace reprise
