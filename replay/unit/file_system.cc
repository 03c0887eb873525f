#include "replay/unit/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "replay/base/file_util.h"

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

absl::Status FileSystem::WriteNewFile(const std::string& path,
                                      std::span<const std::string_view> parts) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return ErrnoToStatus(errno, absl::StrCat("cannot create ", path));
  absl::Status status;
  for (std::string_view part : parts) {
    status = WriteAll(fd, part, path);
    if (!status.ok()) break;
  }
  // Network file systems report a full disk here.
  if (close(fd) != 0 && status.ok())
    status = ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  return status;
}

absl::Status FileSystem::Rename(const std::string& from,
                                const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return ErrnoToStatus(errno, absl::StrCat("cannot rename ", from, " to ", to));
}

absl::Status FileSystem::MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0777) == 0 || errno == EEXIST)
    return absl::OkStatus();
  return ErrnoToStatus(errno, absl::StrCat("cannot create directory ", path));
}

absl::Status FileSystem::Remove(const std::string& path) {
  if (remove(path.c_str()) == 0) return absl::OkStatus();
  return ErrnoToStatus(errno, absl::StrCat("cannot remove ", path));
}

}  // namespace reprise
