#include "evolution/ast/frontend.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clang/AST/ASTConsumer.h"
#include "clang/Basic/FileManager.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "clang/Lex/PPCallbacks.h"
#include "clang/Lex/Preprocessor.h"
#include "clang/Tooling/Tooling.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/VirtualFileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace reprise::evolution {
namespace {

constexpr size_t kMaxDiagnosticBytes = 8192;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string ResourceDirectory(const AnalyzeOptions& options) {
  if (!options.resource_dir.empty()) return options.resource_dir;
  const std::string from_environment = Environment("REPRISE_CLANG_RESOURCES");
  return from_environment.empty() ? REPRISE_CLANG_RESOURCES : from_environment;
}

std::string CudaHome(const AnalyzeOptions& options) {
  if (!options.cuda_home.empty()) return options.cuda_home;
  const std::string from_environment = Environment("CUDA_HOME");
  return from_environment.empty() ? "/usr/local/cuda" : from_environment;
}

std::vector<std::string> Arguments(const SourceContext& context,
                                   const AnalyzeOptions& options) {
  const std::string resources = ResourceDirectory(options);
  std::vector<std::string> args = {
      // Clang finds the rest of its installation from its own place.
      AbsolutePath(resources + "/../../../bin/clang++", "/"),
      "--driver-mode=g++", "--no-default-config",
      // First, so that a unit's own --cuda-path wins.
      "--cuda-path=" + CudaHome(options)};
  args.insert(args.end(), context.clang_args.begin(), context.clang_args.end());
  for (const std::string& arg :
       {std::string("-resource-dir"), resources,
        std::string("--cuda-device-only"),
        "--offload-arch=" + context.architecture,
        std::string("--no-cuda-version-check"),
        std::string("-Wno-unknown-cuda-version"), std::string("-w"),
        std::string("-Qunused-arguments"), std::string("-fsyntax-only"),
        std::string("-ferror-limit=10"), std::string("-fno-color-diagnostics"),
        std::string("-x"), std::string("cuda"), context.main_file}) {
    args.push_back(arg);
  }
  return args;
}

llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> Files(
    const SourceContext& context, const FileContents& overlay) {
  llvm::IntrusiveRefCntPtr<llvm::vfs::OverlayFileSystem> files(
      new llvm::vfs::OverlayFileSystem(llvm::vfs::createPhysicalFileSystem()));
  llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> memory(
      new llvm::vfs::InMemoryFileSystem());
  const auto add = [&](const std::string& path, const std::string& content) {
    // The first of a name stays.
    memory->addFile(AbsolutePath(path, context.directory), 0,
                    llvm::MemoryBuffer::getMemBufferCopy(content, path));
  };
  for (const auto& [path, content] : overlay) add(path, content);
  for (const SourceFile& file : context.files) add(file.path, file.content);
  files->pushOverlay(memory);
  files->setCurrentWorkingDirectory(
      context.directory.empty() ? "/" : context.directory);
  return files;
}

// Errors and what belongs to them; warnings are the build's business.
class ErrorPrinter : public clang::TextDiagnosticPrinter {
 public:
  using TextDiagnosticPrinter::TextDiagnosticPrinter;

  void HandleDiagnostic(clang::DiagnosticsEngine::Level level,
                        const clang::Diagnostic& diagnostic) override {
    if (level != clang::DiagnosticsEngine::Note) {
      wanted_ = level >= clang::DiagnosticsEngine::Error;
    }
    if (wanted_) TextDiagnosticPrinter::HandleDiagnostic(level, diagnostic);
  }

 private:
  bool wanted_ = false;
};

class MacroRecorder : public clang::PPCallbacks {
 public:
  MacroRecorder(const clang::SourceManager& sources,
                std::vector<MacroUse>& macros)
      : sources_(sources), macros_(macros) {}

  void MacroExpands(const clang::Token& token,
                    const clang::MacroDefinition& definition,
                    clang::SourceRange range,
                    const clang::MacroArgs*) override {
    const clang::MacroInfo* macro = definition.getMacroInfo();
    if (macro == nullptr || macro->isBuiltinMacro()) return;
    const clang::SourceLocation place =
        sources_.getExpansionLoc(range.getBegin());
    if (sources_.isInSystemHeader(place) ||
        sources_.isInSystemHeader(macro->getDefinitionLoc()) ||
        sources_.isWrittenInBuiltinFile(macro->getDefinitionLoc()) ||
        sources_.isWrittenInCommandLineFile(macro->getDefinitionLoc())) {
      return;
    }
    macros_.push_back(
        {token.getIdentifierInfo()->getName().str(), place, macro});
  }

 private:
  const clang::SourceManager& sources_;
  std::vector<MacroUse>& macros_;
};

using Use = std::function<absl::Status(const Parsed&)>;

class Consumer : public clang::ASTConsumer {
 public:
  Consumer(const std::vector<MacroUse>& macros, const Use& use,
           absl::Status& status)
      : macros_(macros), use_(use), status_(status) {}

  void HandleTranslationUnit(clang::ASTContext& ast) override {
    if (ast.getDiagnostics().hasErrorOccurred()) return;
    status_ = use_({ast, macros_});
  }

 private:
  const std::vector<MacroUse>& macros_;
  const Use& use_;
  absl::Status& status_;
};

class Action : public clang::ASTFrontendAction {
 public:
  Action(const Use& use, absl::Status& status) : use_(use), status_(status) {}

  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(
      clang::CompilerInstance& compiler, llvm::StringRef) override {
    compiler.getFrontendOpts().DisableFree = false;
    // Counts of warnings are of no interest to anyone.
    compiler.setVerboseOutputStream(std::make_unique<llvm::raw_null_ostream>());
    compiler.getPreprocessor().addPPCallbacks(
        std::make_unique<MacroRecorder>(compiler.getSourceManager(), macros_));
    return std::make_unique<Consumer>(macros_, use_, status_);
  }

 private:
  const Use& use_;
  absl::Status& status_;
  std::vector<MacroUse> macros_;
};

}  // namespace

std::string AbsolutePath(const std::string& path,
                         const std::string& directory) {
  llvm::SmallString<256> absolute(path);
  if (!llvm::sys::path::is_absolute(absolute)) {
    absolute = directory.empty() ? "/" : directory;
    llvm::sys::path::append(absolute, path);
  }
  llvm::sys::path::remove_dots(absolute, /*remove_dot_dot=*/true);
  return absolute.str().str();
}

absl::Status ParseUnit(const SourceContext& context,
                       const FileContents& overlay,
                       const AnalyzeOptions& options, const Use& use) {
  absl::Status status = absl::InternalError("the front end did not finish");
  // Shared with the compiler instance.
  const llvm::IntrusiveRefCntPtr<clang::FileManager> files(
      new clang::FileManager(clang::FileSystemOptions(),
                             Files(context, overlay)));
  std::string text;
  llvm::raw_string_ostream stream(text);
  clang::DiagnosticOptions diagnostics;
  ErrorPrinter printer(stream, diagnostics);
  clang::tooling::ToolInvocation invocation(
      Arguments(context, options), std::make_unique<Action>(use, status),
      files.get());
  invocation.setDiagnosticConsumer(&printer);
  invocation.setDiagnosticOptions(&diagnostics);
  if (!invocation.run()) {
    if (text.size() > kMaxDiagnosticBytes) text.resize(kMaxDiagnosticBytes);
    return absl::InvalidArgumentError(
        absl::StrCat("source: ", context.main_file,
                     " does not compile for the device\n", text));
  }
  return status;
}

}  // namespace reprise::evolution
