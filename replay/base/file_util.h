// Small files and directories with absl::Status errors that name the path and
// the system's reason. Thread-safe; nothing is cached.
#ifndef REPRISE_REPLAY_BASE_FILE_UTIL_H_
#define REPRISE_REPLAY_BASE_FILE_UTIL_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace reprise {

// errno as a Status: ENOENT is NOT_FOUND, ENOSPC is RESOURCE_EXHAUSTED ("disk
// full"), EACCES is PERMISSION_DENIED, others UNKNOWN. `what` reads like
// "cannot write /a/b".
absl::Status ErrnoToStatus(int error_number, std::string_view what);

absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes beside the target under a temporary name and renames over it, so that
// readers see all or nothing. The file's mode is `mode` less the umask.
absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view bytes, int mode = 0666);

absl::Status MakeDirectories(const std::string& path, int mode = 0777);

// FAILED_PRECONDITION: others than this user own what is at this path or may
// use it. OK where there is nothing.
absl::Status CheckOwnersAlone(const std::string& path);
// Makes a directory of mode 0700 where there is none; CheckOwnersAlone of one
// that is there.
absl::Status MakePrivateDirectory(const std::string& path);

// A new directory of mode 0700 under $TMPDIR (or /tmp), removed with all
// contents by the destructor. Those that killed processes of this user left
// under the same prefix go when another one is made: a directory is locked for
// as long as it is in use.
class TemporaryDirectory {
 public:
  static absl::StatusOr<TemporaryDirectory> Create(std::string_view prefix);
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  ~TemporaryDirectory();

  const std::string& path() const { return path_; }

 private:
  TemporaryDirectory(std::string path, int lock_fd)
      : path_(std::move(path)), lock_fd_(lock_fd) {}
  void Remove();
  std::string path_;  // empty: moved from
  int lock_fd_ = -1;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_BASE_FILE_UTIL_H_
