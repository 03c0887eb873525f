#include "replay/base/file_util.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "replay/base/fault_point.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      return ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ErrnoToStatus(int error_number, std::string_view what) {
  const std::string message =
      absl::StrCat(std::string(what), ": ", std::strerror(error_number));
  switch (error_number) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(absl::StrCat(
          message, " (disk full: free space or choose another place)"));
    case ENOMEM:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::UnknownError(message);
  }
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  absl::Cleanup closer = [fd] { close(fd); };
  std::string bytes;
  struct stat info;
  if (fstat(fd, &info) == 0 && info.st_size > 0)
    bytes.reserve(static_cast<size_t>(info.st_size));
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(got));
  }
}

absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view bytes, int mode) {
  static std::atomic<uint64_t> counter{0};
  std::string temporary;
  int fd = -1;
  // A killed process that had the same id may have left a file of that name.
  do {
    temporary =
        absl::StrCat(path, ".tmp.", getpid(), ".", counter.fetch_add(1));
    fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
              static_cast<mode_t>(mode));
  } while (fd < 0 && errno == EEXIST);
  if (fd < 0)
    return ErrnoToStatus(errno, absl::StrCat("cannot create ", temporary));
  absl::Status status =
      PassFaultPoint("write") == Fault::kDiskFull
          ? ErrnoToStatus(ENOSPC, absl::StrCat("cannot write ", temporary))
          : WriteAll(fd, bytes, temporary);
  if (close(fd) != 0 && status.ok())
    status = ErrnoToStatus(errno, absl::StrCat("cannot write ", temporary));
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoToStatus(
        errno, absl::StrCat("cannot rename ", temporary, " to ", path));
  }
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

absl::Status CheckOwnersAlone(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (info.st_uid != geteuid()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " belongs to user ", info.st_uid, ", not to ",
                     geteuid(), "; choose another place"));
  }
  if ((info.st_mode & 077) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, " is open to others than its owner; close it: chmod go= ", path));
}

absl::Status MakePrivateDirectory(const std::string& path) {
  if (std::filesystem::exists(path)) return CheckOwnersAlone(path);
  return MakeDirectories(path, 0700);
}

absl::Status MakeDirectories(const std::string& path, int mode) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    return ErrnoToStatus(error.value(),
                         absl::StrCat("cannot create directory ", path));
  if (mode != 0777 && chmod(path.c_str(), static_cast<mode_t>(mode)) != 0) {
    return ErrnoToStatus(errno,
                         absl::StrCat("cannot set permissions of ", path));
  }
  return absl::OkStatus();
}

namespace {

// A process locks what it makes within this time.
constexpr time_t kLockedAfterSeconds = 60;

// Whether a directory is this user's and was left behind.
bool IsAbandoned(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
      info.st_uid != geteuid() ||
      time(nullptr) - info.st_mtime < kLockedAfterSeconds)
    return false;
  const int fd =
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  const bool free = flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return free;
}

// What processes that were killed left of this prefix.
void RemoveAbandoned(const std::string& base, const std::string& prefix) {
  constexpr size_t kSuffix = 7;  // ".XXXXXX"
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(base, ignored), end;
       !ignored && entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename();
    if (name.size() != prefix.size() + kSuffix ||
        !absl::StartsWith(name, prefix + "."))
      continue;
    std::error_code failed;
    if (IsAbandoned(entry->path()))
      std::filesystem::remove_all(entry->path(), failed);
  }
}

}  // namespace

absl::StatusOr<TemporaryDirectory> TemporaryDirectory::Create(
    std::string_view prefix) {
  const char* variable = std::getenv("TMPDIR");
  const std::string base =
      variable != nullptr && *variable != '\0' ? variable : "/tmp";
  RemoveAbandoned(base, std::string(prefix));
  std::string path = absl::StrCat(base, "/", std::string(prefix), ".XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return ErrnoToStatus(
        errno, absl::StrCat("cannot create temporary directory ", path));
  }
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Where files cannot be locked nothing is found to be abandoned either.
  if (fd >= 0) flock(fd, LOCK_SH | LOCK_NB);
  return TemporaryDirectory(path, fd);
}

TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : path_(std::exchange(other.path_, "")),
      lock_fd_(std::exchange(other.lock_fd_, -1)) {}

TemporaryDirectory& TemporaryDirectory::operator=(
    TemporaryDirectory&& other) noexcept {
  if (this != &other) {
    Remove();
    path_ = std::exchange(other.path_, "");
    lock_fd_ = std::exchange(other.lock_fd_, -1);
  }
  return *this;
}

TemporaryDirectory::~TemporaryDirectory() { Remove(); }

void TemporaryDirectory::Remove() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_fd_ >= 0) close(lock_fd_);
}

}  // namespace reprise
