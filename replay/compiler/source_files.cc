#include "replay/compiler/source_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "replay/compiler/source_tree.h"
#include "replay/compiler/unit_options.h"

namespace reprise {
namespace {

using llvm::ErrorOr;
using llvm::Twine;

bool IsBelow(const std::string& path, const std::string& directory) {
  return path.compare(0, directory.size(), directory) == 0 &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

// The disk, with a working directory that need not exist, a set of directories
// outside of which nothing is seen, and one directory that stands in for
// another.
class DiskView : public llvm::vfs::ProxyFileSystem {
 public:
  DiskView(std::string directory, std::vector<std::string> visible,
           std::string from, std::string to)
      : ProxyFileSystem(llvm::vfs::createPhysicalFileSystem().release()),
        directory_(std::move(directory)),
        visible_(std::move(visible)),
        from_(std::move(from)),
        to_(std::move(to)) {}

  ErrorOr<llvm::vfs::Status> status(const Twine& path) override {
    const std::string absolute = Resolve(path);
    if (absolute.empty())
      return std::make_error_code(std::errc::no_such_file_or_directory);
    auto result = getUnderlyingFS().status(absolute);
    if (!result) return result;
    return llvm::vfs::Status::copyWithNewName(*result, path);
  }

  bool exists(const Twine& path) override {
    const std::string absolute = Resolve(path);
    return !absolute.empty() && getUnderlyingFS().exists(absolute);
  }

  ErrorOr<std::unique_ptr<llvm::vfs::File>> openFileForRead(
      const Twine& path) override {
    const std::string absolute = Resolve(path);
    if (absolute.empty())
      return std::make_error_code(std::errc::no_such_file_or_directory);
    return llvm::vfs::File::getWithPath(
        getUnderlyingFS().openFileForRead(absolute), path);
  }

  llvm::vfs::directory_iterator dir_begin(const Twine& path,
                                          std::error_code& error) override {
    const std::string absolute = Resolve(path);
    if (absolute.empty()) {
      error = std::make_error_code(std::errc::no_such_file_or_directory);
      return {};
    }
    return getUnderlyingFS().dir_begin(absolute, error);
  }

  ErrorOr<std::string> getCurrentWorkingDirectory() const override {
    return directory_;
  }

  std::error_code setCurrentWorkingDirectory(const Twine& path) override {
    directory_ = CleanPath(path.str(), directory_);
    return {};
  }

  std::error_code getRealPath(const Twine& path,
                              llvm::SmallVectorImpl<char>& output) override {
    const std::string absolute = Resolve(path);
    if (absolute.empty())
      return std::make_error_code(std::errc::no_such_file_or_directory);
    return getUnderlyingFS().getRealPath(absolute, output);
  }

 private:
  // The path on disk, or empty for one that is not to be seen.
  std::string Resolve(const Twine& path) const {
    llvm::SmallString<256> absolute;
    path.toVector(absolute);
    if (!llvm::sys::path::is_absolute(absolute)) {
      absolute = directory_;
      llvm::sys::path::append(absolute, path);
    }
    const std::string result(absolute.str());
    const std::string clean = CleanPath(result, directory_);
    if (!from_.empty() && IsBelow(clean, from_) &&
        !getUnderlyingFS().exists(result))
      return to_ + clean.substr(from_.size());
    if (visible_.empty()) return result;
    for (const std::string& directory : visible_) {
      if (IsBelow(clean, directory)) return result;
    }
    return "";
  }

  std::string directory_;
  const std::vector<std::string> visible_;
  const std::string from_;
  const std::string to_;
};

llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> NewMemory(
    const std::string& directory) {
  auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  memory->setCurrentWorkingDirectory(directory);
  return memory;
}

void AddBorrowed(llvm::vfs::InMemoryFileSystem& memory, const std::string& path,
                 const std::string& content) {
  memory.addFile(path, 0,
                 llvm::MemoryBuffer::getMemBuffer(content, path,
                                                  /*Null terminator*/ true));
}

// What Clang's driver looks for before it believes in a GCC and in a CUDA
// toolkit, and what no compiler opens as a header.
void AddDriverLandmarks(const v1::CompileTranslationUnit& unit,
                        const Toolchain& tools,
                        llvm::vfs::InMemoryFileSystem& memory) {
  const auto add_empty = [&](const std::string& path) {
    if (!memory.exists(path))
      memory.addFile(path, 0, llvm::MemoryBuffer::getMemBuffer("", path));
  };
  std::string last;
  for (const v1::CompileFile& file : unit.files()) {
    // As the driver composes it: <gcc>/../../../../include/c++/12/vector.
    const size_t up = file.path().find("/../../../../include/");
    if (up == std::string::npos || file.path().compare(0, up, last) == 0)
      continue;
    last = file.path().substr(0, up);
    add_empty(last + "/crtbegin.o");
  }
  const std::string cuda = ParseUnitOptions(unit).cuda_path;
  if (cuda.empty()) return;
  add_empty(cuda + "/bin/nvcc");
  const std::string libdevice = cuda + "/nvvm/libdevice/libdevice.10.bc";
  if (memory.exists(libdevice) || tools.libdevice.empty()) return;
  if (auto buffer = llvm::MemoryBuffer::getFile(tools.libdevice))
    memory.addFile(libdevice, 0, std::move(*buffer));
}

}  // namespace

std::string CleanPath(const std::string& path, const std::string& directory) {
  llvm::SmallString<256> clean;
  if (!llvm::sys::path::is_absolute(path)) clean = directory;
  llvm::sys::path::append(clean, path);
  llvm::sys::path::remove_dots(clean, /*remove_dot_dot=*/true);
  return std::string(clean.str());
}

FileSystemPtr MakeUnitFileSystem(const v1::CompileTranslationUnit& unit,
                                 const Toolchain& tools, bool hermetic) {
  const std::string cuda = ParseUnitOptions(unit).cuda_path;
  std::vector<std::string> visible;
  if (hermetic && !unit.files().empty()) {
    visible = {CleanPath(tools.clang_resources, "/"),
               CleanPath(tools.cuda_home, "/")};
    if (!cuda.empty()) visible.push_back(CleanPath(cuda, "/"));
  }
  const bool elsewhere = !cuda.empty() && cuda != tools.cuda_home;
  auto disk = llvm::makeIntrusiveRefCnt<DiskView>(
      unit.directory(), std::move(visible),
      elsewhere ? CleanPath(cuda, "/") : "", tools.cuda_home);
  if (unit.files().empty()) return disk;
  auto memory = NewMemory(unit.directory());
  for (const v1::CompileFile& file : unit.files())
    AddBorrowed(*memory, file.path(), file.content());
  AddDriverLandmarks(unit, tools, *memory);
  auto all = llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(disk);
  all->pushOverlay(memory);
  return all;
}

FileSystemPtr AddOverlays(
    FileSystemPtr base, const std::string& directory,
    const google::protobuf::RepeatedPtrField<v1::SourceOverlay>& overlays) {
  if (overlays.empty()) return base;
  auto memory = NewMemory(directory);
  for (const v1::SourceOverlay& overlay : overlays)
    AddBorrowed(*memory, overlay.path(), overlay.content());
  auto all =
      llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(std::move(base));
  all->pushOverlay(memory);
  return all;
}

bool IsSystemFile(const std::string& path,
                  const v1::CompileTranslationUnit& unit,
                  const Toolchain& tools) {
  if (IsToolchainHeader(path)) return true;
  std::vector<std::string> places = {"/usr/include", "/usr/local/include",
                                     "/usr/lib"};
  for (const std::string& cuda :
       {ParseUnitOptions(unit).cuda_path, tools.cuda_home}) {
    if (cuda.empty()) continue;
    places.push_back(CleanPath(cuda + "/include", "/"));
    places.push_back(CleanPath(cuda + "/nvvm", "/"));
  }
  if (!tools.clang_resources.empty())
    places.push_back(CleanPath(tools.clang_resources, "/"));
  return std::any_of(
      places.begin(), places.end(),
      [&](const std::string& place) { return IsBelow(path, place); });
}

}  // namespace reprise
