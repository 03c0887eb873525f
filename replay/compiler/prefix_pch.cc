#include "replay/compiler/prefix_pch.h"

#include <algorithm>
#include <utility>

#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "clang/Basic/DiagnosticOptions.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendActions.h"
#include "clang/Lex/Lexer.h"
#include "clang/Lex/PPCallbacks.h"
#include "clang/Lex/PreprocessorOptions.h"
#include "clang/Sema/Sema.h"
#include "clang/Serialization/ObjectFilePCHContainerReader.h"

namespace reprise {
namespace {

// Notes through which #include of the main file each file comes in first.
class IncludeRecorder : public clang::PPCallbacks {
 public:
  IncludeRecorder(const clang::SourceManager& sources,
                  const std::string& directory,
                  llvm::StringMap<size_t>& includes)
      : sources_(sources), directory_(directory), includes_(includes) {}

  void FileChanged(clang::SourceLocation location, FileChangeReason reason,
                   clang::SrcMgr::CharacteristicKind, clang::FileID) override {
    if (reason != EnterFile) return;
    clang::FileID file = sources_.getFileID(location);
    if (file == sources_.getMainFileID()) return;
    const clang::OptionalFileEntryRef entry =
        sources_.getFileEntryRefForID(file);
    if (!entry) return;
    size_t offset = PrefixPch::kBeforeMainFile;
    for (clang::SourceLocation from = sources_.getIncludeLoc(file);
         from.isValid(); from = sources_.getIncludeLoc(file)) {
      file = sources_.getFileID(from);
      if (file == sources_.getMainFileID()) {
        offset = sources_.getFileOffset(from);
        break;
      }
    }
    includes_.try_emplace(CleanPath(entry->getName().str(), directory_),
                          offset);
  }

 private:
  const clang::SourceManager& sources_;
  const std::string directory_;
  llvm::StringMap<size_t>& includes_;
};

class RecordingCallbacks : public clang::PreambleCallbacks {
 public:
  explicit RecordingCallbacks(std::string directory)
      : directory_(std::move(directory)) {}

  void BeforeExecute(clang::CompilerInstance& instance) override {
    instance_ = &instance;
  }
  std::unique_ptr<clang::PPCallbacks> createPPCallbacks() override {
    return std::make_unique<IncludeRecorder>(instance_->getSourceManager(),
                                             directory_, includes_);
  }
  // A compile that uses the prefix would read every function of these lists
  // back in, which is most of its time, to look for errors in functions that
  // the unmodified unit was compiled from already, and for warnings that are
  // off.
  void HandleTopLevelDecl(clang::DeclGroupRef) override {
    clang::Sema& sema = instance_->getSema();
    sema.DeclsToCheckForDeferredDiags.clear();
    sema.UnusedFileScopedDecls = {};
  }
  bool shouldSkipFunctionBody(clang::Decl* decl) override {
    return IsHostOnly(*decl);
  }
  llvm::StringMap<size_t> TakeIncludes() { return std::move(includes_); }

 private:
  const std::string directory_;
  clang::CompilerInstance* instance_ = nullptr;
  llvm::StringMap<size_t> includes_;
};

size_t CommonPrefix(const std::string& a, const std::string& b) {
  const size_t size = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + size, b.begin()).first - a.begin());
}

}  // namespace

bool IsHostOnly(clang::Decl& decl) {
  const clang::FunctionDecl* function = decl.getAsFunction();
  return function != nullptr && !function->hasAttr<clang::CUDADeviceAttr>() &&
         !function->hasAttr<clang::CUDAGlobalAttr>();
}

std::unique_ptr<PrefixPch> PrefixPch::Build(
    const clang::CompilerInvocation& invocation, const std::string& main_text,
    size_t cut, const std::string& directory, FileSystemPtr files) {
  clang::DiagnosticOptions options = invocation.getDiagnosticOpts();
  const llvm::IntrusiveRefCntPtr<clang::DiagnosticsEngine> diagnostics =
      clang::CompilerInstance::createDiagnostics(
          *files, options, new clang::IgnoringDiagConsumer);
  const std::unique_ptr<llvm::MemoryBuffer> buffer =
      llvm::MemoryBuffer::getMemBuffer(main_text);
  RecordingCallbacks callbacks(directory);
  auto preamble = clang::PrecompiledPreamble::Build(
      invocation, buffer.get(),
      clang::PreambleBounds(static_cast<unsigned>(cut),
                            /*PreambleEndsAtStartOfLine=*/true),
      diagnostics, files, std::make_shared<clang::PCHContainerOperations>(),
      /*StoreInMemory=*/true, /*StoragePath=*/"", callbacks);
  if (!preamble || diagnostics->hasErrorOccurred()) return nullptr;
  return std::unique_ptr<PrefixPch>(
      new PrefixPch(cut, std::move(*preamble), callbacks.TakeIncludes()));
}

std::optional<size_t> PrefixPch::IncludedFrom(
    const std::string& clean_path) const {
  const auto found = includes_.find(clean_path);
  if (found == includes_.end()) return std::nullopt;
  return found->second;
}

void PrefixPch::Use(clang::CompilerInvocation& invocation, FileSystemPtr& files,
                    llvm::MemoryBuffer* main_text) const {
  preamble_.AddImplicitPreamble(invocation, files, main_text);
  invocation.getPreprocessorOpts().RetainRemappedFileBuffers = true;
}

PrefixCache::PrefixCache(const clang::CompilerInvocation& invocation,
                         const std::string& main_file,
                         const std::string& main_text,
                         const std::string& directory, FileSystemPtr files)
    : invocation_(invocation),
      main_file_(CleanPath(main_file, directory)),
      main_text_(main_text),
      directory_(directory),
      files_(std::move(files)),
      outline_(OutlineMainFile(main_text, invocation.getLangOpts())) {}

const PrefixPch* PrefixCache::Find(const Overlays& overlays) {
  size_t limit = main_text_.size();
  for (const v1::SourceOverlay& overlay : overlays) {
    if (CleanPath(overlay.path(), directory_) == main_file_)
      limit = std::min(limit, CommonPrefix(main_text_, overlay.content()));
  }
  size_t cut = limit >= outline_.first_device_code ? outline_.first_device_code
                                                   : outline_.CutBefore(limit);
  // Each round either returns or moves the cut towards the file's beginning.
  for (;;) {
    const PrefixPch* prefix = GetOrBuild(cut);
    if (prefix == nullptr) {
      if (cut == 0) return nullptr;
      cut = outline_.CutBefore(cut - 1);
      // A cut that macros made wrong: the one before may be as wrong, so take
      // what surely is one.
      const size_t directives =
          clang::Lexer::ComputePreamble(main_text_, invocation_.getLangOpts())
              .Size;
      cut = std::min(cut, outline_.CutBefore(directives));
      continue;
    }
    size_t earliest = cut;
    for (const v1::SourceOverlay& overlay : overlays) {
      const std::string path = CleanPath(overlay.path(), directory_);
      if (path == main_file_) continue;
      const std::optional<size_t> from = prefix->IncludedFrom(path);
      if (!from) continue;
      if (*from == PrefixPch::kBeforeMainFile) return nullptr;
      earliest = std::min(earliest, outline_.CutBefore(*from));
    }
    if (earliest == cut) return prefix;
    cut = earliest;
  }
}

const PrefixPch* PrefixCache::GetOrBuild(size_t cut) {
  for (auto it = kept_.begin(); it != kept_.end(); ++it) {
    if ((*it)->cut() != cut) continue;
    kept_.splice(kept_.begin(), kept_, it);
    return kept_.front().get();
  }
  if (failed_cuts_.count(cut) != 0) return nullptr;
  std::unique_ptr<PrefixPch> built =
      PrefixPch::Build(invocation_, main_text_, cut, directory_, files_);
  if (built == nullptr) {
    failed_cuts_.insert(cut);
    return nullptr;
  }
  kept_.push_front(std::move(built));
  if (kept_.size() > kMaxKept) kept_.pop_back();
  return kept_.front().get();
}

}  // namespace reprise
