#include "replay/recorder/cc/build_registry.h"

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "replay/base/file_util.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool IsDigest(std::string_view text) {
  return text.size() == 64 &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

absl::Status Damaged(const std::string& path) {
  return absl::DataLossError(
      absl::StrCat("damaged entry in the build registry: ", path,
                   "; delete it and compile the source again with reprise cc"));
}

}  // namespace

std::string BuildRegistry::DefaultDirectory() {
  std::string home = Environment("REPRISE_HOME");
  if (home.empty()) {
    std::string cache = Environment("XDG_CACHE_HOME");
    if (cache.empty()) cache = absl::StrCat(Environment("HOME"), "/.cache");
    home = absl::StrCat(cache, "/reprise");
  }
  return absl::StrCat(home, "/build");
}

BuildRegistry::BuildRegistry(std::string directory,
                             std::unique_ptr<ChunkStore> chunks)
    : directory_(std::move(directory)), chunks_(std::move(chunks)) {}

absl::StatusOr<std::unique_ptr<BuildRegistry>> BuildRegistry::Open(
    const std::string& directory, bool create) {
  std::error_code error;
  if (!create && !fs::is_directory(directory, error)) {
    return absl::NotFoundError(
        absl::StrCat("no build registry at ", directory,
                     "; build the application with reprise cc"));
  }
  if (create) {
    for (const char* part : {"units", "images", "links"})
      RETURN_IF_ERROR(MakeDirectories(absl::StrCat(directory, "/", part)));
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<ChunkStore> chunks,
      ChunkStore::Open({.directory = absl::StrCat(directory, "/store"),
                        .create = create,
                        .threads = 1}));
  return std::unique_ptr<BuildRegistry>(
      new BuildRegistry(directory, std::move(chunks)));
}

std::string BuildRegistry::Path(std::string_view kind,
                                std::string_view name) const {
  return absl::StrCat(directory_, "/", std::string(kind), "/",
                      std::string(name));
}

absl::StatusOr<std::string> BuildRegistry::AddUnit(
    const v1::TranslationUnit& unit) {
  const std::string bytes = unit.SerializeAsString();
  const std::string id = HexEncode(Sha256(bytes));
  const std::string path = Path("units", id);
  std::error_code error;
  if (!fs::exists(path, error))
    RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
  return id;
}

absl::Status BuildRegistry::AddImage(const std::string& image_digest,
                                     const UnitUse& use) {
  const std::string directory = Path("images", image_digest);
  RETURN_IF_ERROR(MakeDirectories(directory));
  return WriteFileAtomically(
      absl::StrCat(directory, "/", use.unit),
      absl::StrCat(use.architecture, " ", use.tag, "\n"));
}

absl::Status BuildRegistry::AddLink(const std::string& image_digest,
                                    const std::vector<LinkInput>& inputs) {
  std::string text;
  for (const LinkInput& input : inputs) {
    if (!input.image.empty()) {
      absl::StrAppend(&text, "image ", input.image, "\n");
    } else {
      absl::StrAppend(&text, "unit ", input.use.unit, " ",
                      input.use.architecture, " ", input.use.tag, "\n");
    }
  }
  return WriteFileAtomically(Path("links", image_digest), text);
}

absl::StatusOr<BuiltUnit> BuildRegistry::ReadUnit(UnitUse use) const {
  const std::string path = Path("units", use.unit);
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  BuiltUnit built{std::move(use), {}};
  if (HexEncode(Sha256(bytes)) != built.use.unit ||
      !built.unit.ParseFromString(bytes))
    return Damaged(path);
  return built;
}

absl::StatusOr<BuiltUnit> BuildRegistry::NewestUnit(
    const std::string& image_digest) const {
  const std::string directory = Path("images", image_digest);
  std::string newest;
  fs::file_time_type newest_time;
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!IsDigest(name)) continue;  // being written
    std::error_code ignored;
    const fs::file_time_type time = entry.last_write_time(ignored);
    if (newest.empty() || time > newest_time ||
        (time == newest_time && name < newest)) {
      newest = name;
      newest_time = time;
    }
  }
  if (newest.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no unit for image ", image_digest));
  }
  const std::string path = absl::StrCat(directory, "/", newest);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const std::vector<std::string> words =
      absl::StrSplit(absl::StripSuffix(text, "\n"), ' ');
  if (words.size() != 2 || words[0].empty()) return Damaged(path);
  return ReadUnit({newest, words[0], words[1]});
}

absl::StatusOr<std::vector<BuiltUnit>> BuildRegistry::FindUnits(
    const std::string& image_digest) const {
  std::vector<BuiltUnit> units;
  absl::StatusOr<BuiltUnit> direct = NewestUnit(image_digest);
  if (direct.ok()) {
    units.push_back(*std::move(direct));
    return units;
  }
  if (!absl::IsNotFound(direct.status())) return direct.status();

  const std::string path = Path("links", image_digest);
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return units;
  RETURN_IF_ERROR(text.status());
  for (const absl::string_view line :
       absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    absl::StatusOr<BuiltUnit> input = Damaged(path);
    if (words.size() == 2 && words[0] == "image" && IsDigest(words[1])) {
      input = NewestUnit(words[1]);
      if (absl::IsNotFound(input.status())) continue;
    } else if (words.size() == 4 && words[0] == "unit" && IsDigest(words[1])) {
      input = ReadUnit({words[1], words[2], words[3]});
    }
    RETURN_IF_ERROR(input.status());
    units.push_back(*std::move(input));
  }
  return units;
}

}  // namespace reprise
