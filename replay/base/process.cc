#include "replay/base/process.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

constexpr char kSelf[] = "/proc/self/exe";

// The kernel starts a loader by itself only where it is the program.
bool IsStartedByLoader() { return getauxval(AT_BASE) == 0; }

// The file that is mapped at an address of this process, by /proc/self/maps:
// "55d0-55d9 r-xp 00000000 fe:01 123    /path".
absl::StatusOr<std::string> MappedFile(uint64_t address) {
  ASSIGN_OR_RETURN(const std::string maps, ReadFile("/proc/self/maps"));
  for (const absl::string_view line : absl::StrSplit(maps, '\n')) {
    const std::vector<absl::string_view> bounds =
        absl::StrSplit(line.substr(0, line.find(' ')), '-');
    uint64_t begin = 0;
    uint64_t end = 0;
    if (bounds.size() != 2 || !absl::SimpleHexAtoi(bounds[0], &begin) ||
        !absl::SimpleHexAtoi(bounds[1], &end) || address < begin ||
        address >= end)
      continue;
    const size_t path = line.find('/');
    if (path != absl::string_view::npos) return std::string(line.substr(path));
  }
  return absl::NotFoundError("this program's file is not in /proc/self/maps");
}

// The words of this process's command up to the program's file.
absl::StatusOr<std::vector<std::string>> LoaderCommand() {
  ASSIGN_OR_RETURN(const std::string file, SelfExecutable());
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile("/proc/self/cmdline"));
  const std::vector<std::string> given = absl::StrSplit(
      absl::StripSuffix(bytes, absl::string_view("\0", 1)), absl::ByChar('\0'));
  std::vector<std::string> words = {kSelf};
  for (size_t i = 1; i < given.size(); ++i) {
    std::error_code error;
    if (std::filesystem::canonical(given[i], error) == file) {
      words.push_back(file);
      return words;
    }
    words.push_back(given[i]);
  }
  return absl::NotFoundError(
      absl::StrCat("cannot start this program again: got the command '",
                   absl::StrJoin(given, " "), "', expected ", file, " in it"));
}

}  // namespace

absl::StatusOr<std::string> SelfExecutable() {
  if (IsStartedByLoader())
    return MappedFile(reinterpret_cast<uint64_t>(&SelfExecutable));
  std::string path(4096, '\0');
  const ssize_t size = readlink(kSelf, path.data(), path.size());
  if (size < 0) return ErrnoToStatus(errno, "cannot read /proc/self/exe");
  path.resize(static_cast<size_t>(size));
  return path;
}

absl::StatusOr<std::vector<std::string>> ProgramCommand(
    const std::string& executable) {
  if (!executable.empty()) return std::vector<std::string>{executable};
  if (IsStartedByLoader()) return LoaderCommand();
  return std::vector<std::string>{kSelf};
}

absl::StatusOr<int> WatchChild(pid_t child) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  if (fd >= 0) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
  }
  // Some containers forbid what they do not know.
  if (errno == ENOSYS || errno == EPERM)
    return process_internal::WatchChildByThread(child);
  return ErrnoToStatus(errno, "cannot watch a child process (pidfd_open)");
}

absl::StatusOr<int> process_internal::WatchChildByThread(pid_t child) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return ErrnoToStatus(errno, "cannot make a pipe");
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // The thread takes nobody's signals, and no SIGPIPE.
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([child, fd = ends[1]] {
    siginfo_t info;
    while (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) <
               0 &&
           errno == EINTR) {
    }
    // Ended, or waited for already.
    [[maybe_unused]] const ssize_t ignored = write(fd, "", 1);
    close(fd);
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return ends[0];
}

}  // namespace reprise
