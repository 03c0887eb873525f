#include "replay/recorder/session/app_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/signalfd.h>
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

namespace reprise {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// This process's environment with changes, as execve wants it.
std::vector<std::string> Environment(
    const std::map<std::string, std::string>& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('='))))
      entries.push_back(text);
  }
  for (const auto& [name, value] : changes)
    entries.push_back(absl::StrCat(name, "=", value));
  return entries;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings)
    pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<pid_t> Spawn(
    const std::vector<std::string>& argv,
    const std::map<std::string, std::string>& environment,
    const SignalsForApplication& signals, bool silent) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  absl::Cleanup forget = [&] { posix_spawn_file_actions_destroy(&files); };
  if (silent) {
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null",
                                     O_WRONLY, 0);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  absl::Cleanup destroy = [&] { posix_spawnattr_destroy(&attributes); };
  const sigset_t replaced = signals.ReplacedSignals();
  posix_spawnattr_setsigmask(&attributes, &signals.original_mask());
  posix_spawnattr_setsigdefault(&attributes, &replaced);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const std::vector<std::string> entries = Environment(environment);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, argv[0].c_str(), &files, &attributes,
                   Pointers(argv).data(), Pointers(entries).data());
  if (error != 0)
    return ErrnoToStatus(error, absl::StrCat("cannot run ", argv[0]));
  return pid;
}

// A terminal sends its signals to the application too.
bool IsFromTerminal(const signalfd_siginfo& info) {
  return info.ssi_code == SI_KERNEL;
}

// Passes signals on until the process ends.
absl::Status Attend(pid_t pid, int watch_fd, int signal_fd) {
  for (;;) {
    pollfd waits[] = {{watch_fd, POLLIN, 0}, {signal_fd, POLLIN, 0}};
    if (poll(waits, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return ErrnoToStatus(errno, "cannot wait for the application");
    }
    signalfd_siginfo info;
    if ((waits[1].revents & POLLIN) != 0 &&
        read(signal_fd, &info, sizeof(info)) == sizeof(info) &&
        !IsFromTerminal(info))
      kill(pid, static_cast<int>(info.ssi_signo));
    if (waits[0].revents != 0) return absl::OkStatus();
  }
}

}  // namespace

SignalsForApplication::SignalsForApplication() {
  sigemptyset(&signals_);
  for (const int number : kSignals) sigaddset(&signals_, number);
  pthread_sigmask(SIG_BLOCK, &signals_, &original_mask_);
  // A signal that is blocked waits even where it is ignored; children get the
  // ignoring, not the blocking.
  for (const int number : kSignals) {
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    sigaction(number, &ignore, &original_actions_[number]);
  }
}

SignalsForApplication::~SignalsForApplication() {
  // What came too late was for the application.
  const timespec now{};
  while (sigtimedwait(&signals_, nullptr, &now) > 0) {
  }
  for (const auto& [number, action] : original_actions_)
    sigaction(number, &action, nullptr);
  pthread_sigmask(SIG_SETMASK, &original_mask_, nullptr);
}

sigset_t SignalsForApplication::ReplacedSignals() const {
  sigset_t replaced;
  sigemptyset(&replaced);
  for (const auto& [number, action] : original_actions_)
    if (action.sa_handler != SIG_IGN) sigaddset(&replaced, number);
  return replaced;
}

absl::StatusOr<ApplicationEnd> RunApplication(
    const std::vector<std::string>& argv,
    const std::map<std::string, std::string>& environment,
    const SignalsForApplication& signals, bool silent) {
  const int signal_fd =
      signalfd(-1, &signals.signals(), SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_fd < 0) return ErrnoToStatus(errno, "cannot watch signals");
  absl::Cleanup close_signals = [&] { close(signal_fd); };
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(argv, environment, signals, silent));
  const absl::StatusOr<int> watch_fd = WatchChild(pid);
  absl::Status attended = watch_fd.status();
  if (watch_fd.ok()) {
    attended = Attend(pid, *watch_fd, signal_fd);
    close(*watch_fd);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  RETURN_IF_ERROR(attended);
  ApplicationEnd end;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
    end.exit_code = 128 + end.signal;
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  return end;
}

}  // namespace reprise
