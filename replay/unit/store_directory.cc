#include "replay/unit/store_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "replay/base/check.h"
#include "replay/base/file_util.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/unit/unit_store.h"

namespace reprise {
namespace {

constexpr char kMarkerPrefix[] = "reprise unit store, format version ";

std::string RandomName() {
  char bytes[12];
  size_t have = 0;
  while (have < sizeof(bytes)) {
    const ssize_t got = getrandom(bytes + have, sizeof(bytes) - have, 0);
    CHECK(got > 0 || errno == EINTR);
    if (got > 0) have += static_cast<size_t>(got);
  }
  return HexEncode(std::string_view(bytes, sizeof(bytes)));
}

bool LocksUnsupported(int error_number) {
  return error_number == ENOSYS || error_number == ENOLCK ||
         error_number == EOPNOTSUPP || error_number == EINVAL;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListDirectory(
    const std::string& path) {
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  std::vector<std::string> names;
  while (!error && entry != std::filesystem::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  if (error) {
    return ErrnoToStatus(error.value(),
                         absl::StrCat("cannot list directory ", path));
  }
  std::sort(names.begin(), names.end());
  return names;
}

StoreLock::StoreLock(StoreLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

StoreLock::~StoreLock() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<StoreDirectory> StoreDirectory::Open(
    const std::string& root, bool create,
    std::shared_ptr<FileSystem> file_system) {
  if (root.empty()) {
    return absl::InvalidArgumentError(
        "got an empty path for the unit store, expected a directory");
  }
  if (file_system == nullptr) file_system = std::make_shared<FileSystem>();
  StoreDirectory store(root, std::move(file_system));
  absl::Status status = store.CheckMarker();
  if (absl::IsNotFound(status) && create) {
    RETURN_IF_ERROR(MakeDirectories(root));
    status = store.CreateMarker();
  }
  if (!status.ok()) return status;
  return store;
}

absl::Status StoreDirectory::CheckMarker() const {
  const std::string path = absl::StrCat(root_, "/", kStoreMarker);
  absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) {
    std::error_code ignored;
    if (!std::filesystem::exists(root_, ignored)) {
      return absl::NotFoundError(
          absl::StrCat("no unit store at ", root_, ": no such directory"));
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> names,
                     ListDirectory(root_));
    if (names.empty()) {
      return absl::NotFoundError(
          absl::StrCat("no unit store at ", root_, ": the directory is empty"));
    }
    // A store that is being made has nothing but its marker, under a temporary
    // name. Anything else is somebody's directory.
    for (const std::string& name : names) {
      if (absl::StartsWith(name, kStoreMarker)) continue;
      if (access(path.c_str(), F_OK) == 0) return CheckMarker();
      return absl::InvalidArgumentError(absl::StrCat(
          root_, " is not a unit store: it has \"", name, "\" but no file \"",
          kStoreMarker, "\"; name a store, or a new or empty directory"));
    }
    return absl::NotFoundError(absl::StrCat("no unit store at ", root_));
  }
  if (!text.ok()) return text.status();
  absl::string_view rest = *text;
  uint32_t version = 0;
  if (!absl::ConsumePrefix(&rest, kMarkerPrefix) ||
      !absl::ConsumeSuffix(&rest, "\n") || !absl::SimpleAtoi(rest, &version) ||
      version == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " does not mark a unit store: expected one line \"",
                     kMarkerPrefix, kUnitFormatVersion, "\""));
  }
  if (version > kUnitFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        root_, " has format version ", version, ", expected at most ",
        kUnitFormatVersion, ": a newer Reprise made it; update this one"));
  }
  return absl::OkStatus();
}

// Of several processes that create one store the last marker stays. A lock on
// an earlier one protects nothing, and need not: there are no old chunks yet.
absl::Status StoreDirectory::CreateMarker() const {
  const std::string path = absl::StrCat(root_, "/", kStoreMarker);
  const std::string temporary = absl::StrCat(path, ".", RandomName());
  const std::string text =
      absl::StrCat(kMarkerPrefix, kUnitFormatVersion, "\n");
  const std::string_view parts[] = {text};
  absl::Status status = file_system_->WriteNewFile(temporary, parts);
  if (status.ok()) status = file_system_->Rename(temporary, path);
  if (!status.ok()) file_system_->Remove(temporary).IgnoreError();
  return status;
}

std::string StoreDirectory::ChunkPath(std::string_view sha256) const {
  const std::string hex = HexEncode(sha256);
  return absl::StrCat(root_, "/chunks/", hex.substr(0, 2), "/", hex.substr(2));
}

std::string StoreDirectory::UnitPath(std::string_view id) const {
  return absl::StrCat(root_, "/units/", std::string(id));
}

std::string StoreDirectory::ManifestPath(std::string_view id) const {
  return absl::StrCat(UnitPath(id), "/manifest");
}

absl::Status StoreDirectory::MakeParent(const std::string& path) const {
  CHECK(absl::StartsWith(path, root_ + "/"));
  for (size_t slash = path.find('/', root_.size() + 1);
       slash != std::string::npos; slash = path.find('/', slash + 1)) {
    RETURN_IF_ERROR(file_system_->MakeDirectory(path.substr(0, slash)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> StoreDirectory::NewTemporaryPath() const {
  const std::string path = absl::StrCat(TemporariesPath(), "/", RandomName());
  if (access(TemporariesPath().c_str(), F_OK) != 0)
    RETURN_IF_ERROR(MakeParent(path));
  return path;
}

absl::Status StoreDirectory::WriteFile(
    const std::string& path, std::span<const std::string_view> parts) const {
  ASSIGN_OR_RETURN(const std::string temporary, NewTemporaryPath());
  absl::Status status = file_system_->WriteNewFile(temporary, parts);
  if (status.ok()) {
    status = file_system_->Rename(temporary, path);
    if (absl::IsNotFound(status)) {
      status = MakeParent(path);
      if (status.ok()) status = file_system_->Rename(temporary, path);
    }
  }
  if (!status.ok()) file_system_->Remove(temporary).IgnoreError();
  return status;
}

absl::StatusOr<StoreLock> StoreDirectory::Lock(bool exclusive) const {
  const std::string path = absl::StrCat(root_, "/", kStoreMarker);
  // NFS wants a writable descriptor for an exclusive lock.
  const int fd =
      open(path.c_str(), (exclusive ? O_RDWR : O_RDONLY) | O_CLOEXEC);
  if (fd < 0) return ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  StoreLock lock(fd);
  while (flock(fd, exclusive ? LOCK_EX : LOCK_SH) != 0) {
    if (LocksUnsupported(errno)) break;
    if (errno != EINTR)
      return ErrnoToStatus(errno, absl::StrCat("cannot lock ", path));
  }
  return lock;
}

}  // namespace reprise
