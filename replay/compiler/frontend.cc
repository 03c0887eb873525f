#include "replay/compiler/frontend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "clang/CodeGen/CodeGenAction.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/MultiplexConsumer.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
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

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(
      clang::CompilerInstance& instance, llvm::StringRef file) override {
    std::vector<std::unique_ptr<clang::ASTConsumer>> consumers;
    consumers.push_back(EmitLLVMOnlyAction::CreateASTConsumer(instance, file));
    if (consumers.back() == nullptr) return nullptr;
    consumers.push_back(std::make_unique<KernelDescriber>(*this, kernels_));
    return std::make_unique<clang::MultiplexConsumer>(std::move(consumers));
  }

 private:
  std::vector<v1::CompiledKernelInfo> kernels_;
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
               std::vector<std::string> kernels, InvocationPtr invocation,
               FileSystemPtr files, std::string main_text)
      : unit_(unit),
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
    Run(std::move(invocation), std::move(files), context, result);
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

  static void Run(InvocationPtr invocation, FileSystemPtr files,
                  llvm::LLVMContext& context, FrontendResult& result) {
    llvm::raw_string_ostream stream(result.diagnostics);
    clang::CompilerInstance instance(std::move(invocation));
    clang::TextDiagnosticPrinter printer(stream, instance.getDiagnosticOpts());
    instance.setVirtualFileSystem(std::move(files));
    instance.createDiagnostics(&printer, /*ShouldOwnClient=*/false);
    instance.setVerboseOutputStream(llvm::nulls());
    UnitAction action(context);
    const bool done = instance.ExecuteAction(action);
    if (!done || instance.getDiagnostics().hasErrorOccurred()) return;
    result.module = action.takeModule();
    if (result.module != nullptr)
      AttachKernelMetadata(action.TakeKernels(), *result.module);
  }

  const v1::CompileTranslationUnit& unit_;
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
  return std::make_unique<FrontendImpl>(unit, std::move(kernels),
                                        std::move(invocation), std::move(files),
                                        (*main)->getBuffer().str());
}

}  // namespace reprise
