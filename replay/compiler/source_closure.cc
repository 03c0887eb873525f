#include "replay/compiler/source_closure.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendActions.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "clang/Lex/PPCallbacks.h"
#include "clang/Lex/Preprocessor.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/clang_driver.h"
#include "replay/compiler/source_files.h"
#include "replay/compiler/unit_options.h"

namespace reprise {
namespace {

class ClosureRecorder : public clang::PPCallbacks {
 public:
  ClosureRecorder(const clang::SourceManager& sources, std::string directory,
                  std::vector<ClosureFile>& files)
      : sources_(sources), directory_(std::move(directory)), files_(files) {}

  void FileChanged(clang::SourceLocation location, FileChangeReason reason,
                   clang::SrcMgr::CharacteristicKind kind,
                   clang::FileID) override {
    if (reason != EnterFile) return;
    const clang::FileID file = sources_.getFileID(location);
    if (const auto entry = sources_.getFileEntryRefForID(file))
      Add(*entry, kind, sources_.getBufferData(file));
  }

  // A file that is only asked for changes what is compiled too.
  void HasInclude(clang::SourceLocation, llvm::StringRef, bool,
                  clang::OptionalFileEntryRef file,
                  clang::SrcMgr::CharacteristicKind kind) override {
    if (!file) return;
    auto buffer = sources_.getFileManager().getBufferForFile(*file);
    if (buffer) Add(*file, kind, (*buffer)->getBuffer());
  }

 private:
  void Add(clang::FileEntryRef entry, clang::SrcMgr::CharacteristicKind kind,
           llvm::StringRef content) {
    std::string path = entry.getName().str();
    if (path.empty() || path[0] != '/')
      path = absl::StrCat(directory_, "/", path);
    if (seen_.insert(path).second)
      files_.push_back(
          {std::move(path), content.str(), clang::SrcMgr::isSystem(kind)});
  }

  const clang::SourceManager& sources_;
  const std::string directory_;
  std::vector<ClosureFile>& files_;
  llvm::StringSet<> seen_;
};

class ClosureAction : public clang::PreprocessOnlyAction {
 public:
  ClosureAction(std::string directory, std::vector<ClosureFile>& files)
      : directory_(std::move(directory)), files_(files) {}

 protected:
  bool BeginSourceFileAction(clang::CompilerInstance& instance) override {
    instance.getPreprocessor().addPPCallbacks(std::make_unique<ClosureRecorder>(
        instance.getSourceManager(), directory_, files_));
    return PreprocessOnlyAction::BeginSourceFileAction(instance);
  }

 private:
  const std::string directory_;
  std::vector<ClosureFile>& files_;
};

// What the driver reads in the toolkit.
void AddToolkitFiles(const v1::CompileTranslationUnit& unit,
                     const Toolchain& tools, llvm::vfs::FileSystem& disk,
                     std::vector<ClosureFile>& files) {
  std::string cuda = ParseUnitOptions(unit).cuda_path;
  if (cuda.empty()) cuda = tools.cuda_home;
  for (const char* name :
       {"/include/cuda.h", "/nvvm/libdevice/libdevice.10.bc"}) {
    const std::string path = cuda + name;
    for (const ClosureFile& file : files) {
      if (file.path == path) return;
    }
    auto buffer = disk.getBufferForFile(path);
    if (buffer)
      files.push_back({path, (*buffer)->getBuffer().str(), /*system=*/true});
  }
}

}  // namespace

absl::StatusOr<std::vector<ClosureFile>> ComputeSourceClosure(
    const v1::CompileTranslationUnit& unit, const std::string& architecture,
    const Toolchain& tools) {
  FileSystemPtr disk = MakeUnitFileSystem(unit, tools, /*hermetic=*/false);
  ASSIGN_OR_RETURN(std::shared_ptr<clang::CompilerInvocation> invocation,
                   CreateDeviceInvocation(unit, architecture, tools, disk));
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  clang::CompilerInstance instance(std::move(invocation));
  clang::TextDiagnosticPrinter printer(stream, instance.getDiagnosticOpts());
  instance.setVirtualFileSystem(disk);
  instance.createDiagnostics(&printer, /*ShouldOwnClient=*/false);
  instance.setVerboseOutputStream(llvm::nulls());
  std::vector<ClosureFile> files;
  ClosureAction action(unit.directory(), files);
  if (!instance.ExecuteAction(action) ||
      instance.getDiagnostics().hasErrorOccurred())
    return absl::InvalidArgumentError(errors);
  AddToolkitFiles(unit, tools, *disk, files);
  return files;
}

}  // namespace reprise
