#include "replay/compiler/frontend.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clang/CodeGen/CodeGenAction.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/MultiplexConsumer.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "clang/Lex/PPCallbacks.h"
#include "clang/Lex/Preprocessor.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/clang_driver.h"
#include "replay/compiler/kernel_metadata.h"
#include "replay/compiler/prefix_pch.h"
#include "replay/compiler/source_files.h"

namespace reprise {
namespace {

// Runs after IR was made, while declarations are still there.
class KernelDescriber : public clang::ASTConsumer {
 public:
  KernelDescriber(const clang::CodeGenAction& action,
                  std::vector<v1::CompiledKernelInfo>& kernels)
      : action_(action), kernels_(kernels) {}

  void HandleTranslationUnit(clang::ASTContext& context) override {
    if (!context.getDiagnostics().hasErrorOccurred())
      kernels_ = DescribeKernels(context, *action_.getCodeGenerator());
  }

  // Asked only where FrontendOpts.SkipFunctionBodies is set.
  bool shouldSkipFunctionBody(clang::Decl* decl) override {
    return IsHostOnly(*decl);
  }

 private:
  const clang::CodeGenAction& action_;
  std::vector<v1::CompiledKernelInfo>& kernels_;
};

class UnitAction : public clang::EmitLLVMOnlyAction {
 public:
  explicit UnitAction(llvm::LLVMContext& context)
      : EmitLLVMOnlyAction(&context) {}

  std::vector<v1::CompiledKernelInfo> TakeKernels() {
    return std::move(kernels_);
  }
  using CallbacksMaker = std::function<std::unique_ptr<clang::PPCallbacks>(
      const clang::SourceManager&)>;
  // Called when the preprocessor is there.
  void AddCallbacks(CallbacksMaker maker) { maker_ = std::move(maker); }

 protected:
  bool BeginSourceFileAction(clang::CompilerInstance& instance) override {
    if (maker_) {
      instance.getPreprocessor().addPPCallbacks(
          maker_(instance.getSourceManager()));
    }
    return EmitLLVMOnlyAction::BeginSourceFileAction(instance);
  }

  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(
      clang::CompilerInstance& instance, llvm::StringRef file) override {
    std::vector<std::unique_ptr<clang::ASTConsumer>> consumers;
    consumers.push_back(EmitLLVMOnlyAction::CreateASTConsumer(instance, file));
    if (consumers.back() == nullptr) return nullptr;
    consumers.push_back(std::make_unique<KernelDescriber>(*this, kernels_));
    return std::make_unique<clang::MultiplexConsumer>(std::move(consumers));
  }

 private:
  CallbacksMaker maker_;
  std::vector<v1::CompiledKernelInfo> kernels_;
};

// Notes what is read beside the closure and the toolchain.
class ForeignFileFinder : public clang::PPCallbacks {
 public:
  using KnownFile = std::function<bool(const std::string& clean_path)>;
  ForeignFileFinder(const clang::SourceManager& sources, KnownFile is_known,
                    std::string directory, std::vector<std::string>& found)
      : sources_(sources),
        is_known_(std::move(is_known)),
        directory_(std::move(directory)),
        found_(found) {}

  void InclusionDirective(clang::SourceLocation place, const clang::Token&,
                          llvm::StringRef, bool, clang::CharSourceRange,
                          clang::OptionalFileEntryRef file, llvm::StringRef,
                          llvm::StringRef, const clang::Module*, bool,
                          clang::SrcMgr::CharacteristicKind) override {
    Check(place, file);
  }
  void EmbedDirective(clang::SourceLocation place, llvm::StringRef, bool,
                      clang::OptionalFileEntryRef file,
                      const clang::LexEmbedParametersResult&) override {
    Check(place, file);
  }
  void HasInclude(clang::SourceLocation place, llvm::StringRef, bool,
                  clang::OptionalFileEntryRef file,
                  clang::SrcMgr::CharacteristicKind) override {
    Check(place, file);
  }
  void HasEmbed(clang::SourceLocation place, llvm::StringRef, bool,
                clang::OptionalFileEntryRef file) override {
    Check(place, file);
  }

 private:
  void Check(clang::SourceLocation place, clang::OptionalFileEntryRef file) {
    if (!file) return;
    const std::string path = CleanPath(file->getName().str(), directory_);
    if (is_known_(path)) return;
    const clang::SourceLocation spelling = sources_.getSpellingLoc(place);
    found_.push_back(absl::StrCat(
        sources_.getFilename(spelling).str(), ":",
        sources_.getSpellingLineNumber(spelling), ": the variant reads ", path,
        ", which is no file of the unit or of the toolchain"));
  }

  const clang::SourceManager& sources_;
  const KnownFile is_known_;
  const std::string directory_;
  std::vector<std::string>& found_;
};

using InvocationPtr = std::shared_ptr<clang::CompilerInvocation>;

InvocationPtr WithoutHostBodies(const clang::CompilerInvocation& invocation) {
  auto copy = std::make_shared<clang::CompilerInvocation>(invocation);
  copy->getFrontendOpts().SkipFunctionBodies = true;
  return copy;
}

// One way to compile the unit, with its precompiled headers.
struct Mode {
  Mode(InvocationPtr given, const v1::CompileTranslationUnit& unit,
       const std::string& main_text, const FileSystemPtr& files)
      : invocation(std::move(given)),
        prefixes(*invocation, unit.main_file(), main_text, unit.directory(),
                 files) {}
  const InvocationPtr invocation;
  PrefixCache prefixes;
};

class FrontendImpl : public Frontend {
 public:
  FrontendImpl(const v1::CompileTranslationUnit& unit,
               std::vector<std::string> kernels, Toolchain tools,
               InvocationPtr invocation, FileSystemPtr files,
               std::string main_text)
      : unit_(unit),
        tools_(std::move(tools)),
        kernels_(std::move(kernels)),
        files_(std::move(files)),
        main_text_(std::move(main_text)),
        everything_(invocation, unit, main_text_, files_),
        device_only_(WithoutHostBodies(*invocation), unit, main_text_, files_),
        // Names of static symbols depend on what the host uses under rdc.
        try_device_only_(!kernels_.empty() &&
                         !invocation->getLangOpts().GPURelocatableDeviceCode) {
    for (const v1::CompileFile& file : unit.files())
      paths_.insert(CleanPath(file.path(), unit.directory()));
  }

  FrontendResult Compile(const Overlays& overlays, bool fast,
                         llvm::LLVMContext& context) override {
    if (fast && try_device_only_) {
      FrontendResult result = CompileIn(device_only_, overlays, fast, context);
      if (result.module != nullptr && HasKernels(*result.module)) return result;
      // Sources without errors: these kernels need the host's code, always.
      if (result.module != nullptr) try_device_only_ = false;
    }
    return CompileIn(everything_, overlays, fast, context);
  }

  bool Reads(const Overlays& overlays) const override {
    if (paths_.empty()) return !overlays.empty();
    for (const v1::SourceOverlay& overlay : overlays) {
      if (paths_.contains(CleanPath(overlay.path(), unit_.directory())))
        return true;
    }
    return false;
  }

 private:
  bool HasKernels(const llvm::Module& module) const {
    for (const std::string& kernel : kernels_) {
      const llvm::Function* function = module.getFunction(kernel);
      if (function == nullptr || function->isDeclaration()) return false;
    }
    return true;
  }

  FrontendResult CompileIn(Mode& mode, const Overlays& overlays, bool use_pch,
                           llvm::LLVMContext& context) {
    auto invocation =
        std::make_shared<clang::CompilerInvocation>(*mode.invocation);
    FileSystemPtr files = AddOverlays(files_, unit_.directory(), overlays);
    FrontendResult result;
    const PrefixPch* prefix = use_pch ? mode.prefixes.Find(overlays) : nullptr;
    const std::unique_ptr<llvm::MemoryBuffer> main_text =
        llvm::MemoryBuffer::getMemBuffer(MainText(overlays));
    if (prefix != nullptr) {
      prefix->Use(*invocation, files, main_text.get());
      result.used_pch = true;
    }
    Run(std::move(invocation), std::move(files), !overlays.empty(), context,
        result);
    return result;
  }

  const std::string& MainText(const Overlays& overlays) const {
    const std::string main = CleanPath(unit_.main_file(), unit_.directory());
    for (const v1::SourceOverlay& overlay : overlays) {
      if (CleanPath(overlay.path(), unit_.directory()) == main)
        return overlay.content();
    }
    return main_text_;
  }

  void Run(InvocationPtr invocation, FileSystemPtr files, bool edited,
           llvm::LLVMContext& context, FrontendResult& result) const {
    llvm::raw_string_ostream stream(result.diagnostics);
    clang::CompilerInstance instance(std::move(invocation));
    clang::TextDiagnosticPrinter printer(stream, instance.getDiagnosticOpts());
    instance.setVirtualFileSystem(std::move(files));
    instance.createDiagnostics(&printer, /*ShouldOwnClient=*/false);
    instance.setVerboseOutputStream(llvm::nulls());
    UnitAction action(context);
    // Without a closure nobody knows which files are the unit's.
    if (edited && !paths_.empty()) {
      action.AddCallbacks([&](const clang::SourceManager& sources) {
        return std::make_unique<ForeignFileFinder>(
            sources,
            [&](const std::string& path) {
              return paths_.contains(path) || IsSystemFile(path, unit_, tools_);
            },
            unit_.directory(), result.foreign_files);
      });
    }
    const bool done = instance.ExecuteAction(action);
    if (!done || instance.getDiagnostics().hasErrorOccurred()) return;
    result.module = action.takeModule();
    if (result.module != nullptr)
      AttachKernelMetadata(action.TakeKernels(), *result.module);
  }

  const v1::CompileTranslationUnit& unit_;
  const Toolchain tools_;
  const std::vector<std::string> kernels_;
  const FileSystemPtr files_;
  const std::string main_text_;
  Mode everything_;
  Mode device_only_;
  bool try_device_only_;
  llvm::StringSet<> paths_;  // of the closure, clean
};

}  // namespace

absl::StatusOr<std::unique_ptr<Frontend>> Frontend::Create(
    const v1::CompileTranslationUnit& unit, const std::string& architecture,
    std::vector<std::string> kernels, const Toolchain& tools) {
  ASSIGN_OR_RETURN(
      std::shared_ptr<clang::CompilerInvocation> invocation,
      CreateDeviceInvocation(unit, architecture, tools,
                             MakeUnitFileSystem(unit, tools, true)));
  FileSystemPtr files = MakeUnitFileSystem(unit, tools, false);
  auto main = files->getBufferForFile(unit.main_file());
  if (!main) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cannot read ", unit.main_file(), ": ", main.getError().message()));
  }
  return std::make_unique<FrontendImpl>(unit, std::move(kernels), tools,
                                        std::move(invocation), std::move(files),
                                        (*main)->getBuffer().str());
}

}  // namespace reprise
