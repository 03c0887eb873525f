#include "replay/compiler/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"

namespace reprise {

bool IsToolchainHeader(const std::string& path) {
  for (const char* place :
       {"/usr/include/", "/usr/lib/gcc/", "/lib/clang/", "/include/c++/",
        "/nvvm/libdevice/", "/include/crt/", "/include/cccl/"}) {
    if (absl::StrContains(path, place)) return true;
  }
  // A toolkit's include directory, wherever it is installed.
  const size_t include = path.rfind("/include/");
  if (include == std::string::npos) return false;
  const std::string toolkit = path.substr(0, include);
  std::error_code error;
  return absl::StrContains(toolkit, "cuda") &&
         std::filesystem::exists(toolkit + "/include/cuda_runtime.h", error);
}

absl::StatusOr<SourceTree> SourceTree::Create(
    const std::string& root, const v1::CompileTranslationUnit& unit) {
  SourceTree tree(root, unit);
  for (const v1::CompileFile& file : unit.files()) {
    if (IsToolchainHeader(file.path())) continue;
    const std::string path = tree.Clean(file.path());
    tree.originals_[path] = &file.content();
    RETURN_IF_ERROR(tree.Write(path, file.content()));
  }
  return tree;
}

absl::Status SourceTree::Apply(
    const google::protobuf::RepeatedPtrField<v1::SourceOverlay>& overlays) {
  std::set<std::string> now;
  for (const v1::SourceOverlay& overlay : overlays) {
    const std::string path = Clean(overlay.path());
    RETURN_IF_ERROR(Write(path, overlay.content()));
    now.insert(path);
  }
  for (const std::string& path : changed_) {
    if (now.count(path) > 0) continue;
    if (const auto original = originals_.find(path);
        original != originals_.end()) {
      RETURN_IF_ERROR(Write(path, *original->second));
    } else {
      std::error_code error;
      std::filesystem::remove(root_ + path, error);
    }
  }
  changed_.assign(now.begin(), now.end());
  return absl::OkStatus();
}

std::string SourceTree::PathOf(const std::string& path) const {
  const std::string clean = Clean(path);
  std::error_code error;
  const std::string placed = root_ + clean;
  return std::filesystem::exists(placed, error) ? placed : clean;
}

std::vector<std::string> SourceTree::DirectoriesOf(
    const std::string& directory) const {
  const std::string clean = Clean(directory);
  return {root_ + clean, clean};
}

std::string SourceTree::Clean(const std::string& path) const {
  std::filesystem::path whole(path);
  if (!whole.is_absolute())
    whole = std::filesystem::path(unit_->directory()) / whole;
  return whole.lexically_normal().string();
}

absl::Status SourceTree::Write(const std::string& path,
                               const std::string& content) const {
  const std::string placed = root_ + path;
  RETURN_IF_ERROR(MakeDirectories(placed.substr(0, placed.rfind('/'))));
  // Only this process reads it: no need for a file that survives a power cut.
  std::ofstream file(placed, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  return file.good() ? absl::OkStatus()
                     : absl::UnavailableError("cannot write " + placed);
}

}  // namespace reprise
