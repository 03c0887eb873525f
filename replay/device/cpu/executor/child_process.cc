#include "replay/device/cpu/executor/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "replay/base/file_util.h"
#include "replay/base/process.h"
#include "replay/base/status_macros.h"

extern char** environ;

namespace reprise::cpu {
namespace {

// Above every number that a child's descriptor gets, so that none overwrites
// the source of another.
constexpr int kFirstSource = 210;

// A copy of `fd` out of the way, closed with `copies`.
absl::StatusOr<int> Duplicate(int fd, std::vector<int>& copies) {
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, kFirstSource);
  if (copy < 0) return ErrnoToStatus(errno, "cannot duplicate a descriptor");
  copies.push_back(copy);
  return copy;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const Options& options) {
  int life[2];
  if (pipe2(life, O_CLOEXEC) != 0) {
    return ErrnoToStatus(errno, "cannot make a pipe");
  }
  std::unique_ptr<ChildProcess> child(new ChildProcess);
  child->life_fd_ = life[1];
  std::vector<int> copies = {life[0]};
  auto close_copies = absl::MakeCleanup([&] {
    for (const int fd : copies) close(fd);
  });

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  auto destroy = absl::MakeCleanup([&] {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  });
  const std::pair<int, int> wanted[] = {{options.memory_fd, kMemoryFd},
                                        {options.fault_fd, kFaultFd},
                                        {life[0], kLifeFd}};
  for (const auto& [source, target] : wanted) {
    if (source < 0) continue;
    ASSIGN_OR_RETURN(const int copy, Duplicate(source, copies));
    posix_spawn_file_actions_adddup2(&actions, copy, target);
  }
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);

  ASSIGN_OR_RETURN(std::vector<std::string> words,
                   ProgramCommand(options.executable));
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int error = posix_spawn(&child->pid_, argv[0], &actions, &attributes,
                                argv.data(), environ);
  if (error != 0) {
    child->pid_ = -1;
    return ErrnoToStatus(error, absl::StrCat("cannot start ", words[0]));
  }
  ASSIGN_OR_RETURN(child->watch_fd_, WatchChild(child->pid_));
  return child;
}

ChildProcess::~ChildProcess() {
  Reap(true);
  if (watch_fd_ >= 0) close(watch_fd_);
  if (life_fd_ >= 0) close(life_fd_);
}

int ChildProcess::Reap(bool kill_first) {
  if (pid_ < 0) return 0;
  if (kill_first) kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

std::string DescribeWaitStatus(int status) {
  if (WIFSIGNALED(status)) {
    return absl::StrCat("signal ", WTERMSIG(status), " (",
                        strsignal(WTERMSIG(status)), ")");
  }
  return absl::StrCat("exit code ", WEXITSTATUS(status));
}

}  // namespace reprise::cpu
