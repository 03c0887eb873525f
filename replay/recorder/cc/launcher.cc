#include "replay/recorder/cc/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "replay/base/status_macros.h"
#include "replay/compiler/command_line.h"
#include "replay/recorder/cc/bookkeeping.h"
#include "replay/recorder/cc/build_registry.h"

extern char** environ;

namespace reprise {
namespace {

constexpr int kCannotRun = 127;
constexpr unsigned kMostBookkeepingSeconds = 120;
constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

void Warn(const absl::Status& status) {
  std::fprintf(stderr,
               "reprise cc: warning: cannot keep what the recorder needs: %s "
               "(the build is not affected)\n",
               std::string(status.message()).c_str());
}

int CannotRun(const char* compiler, int error) {
  std::fprintf(stderr, "reprise cc: cannot run %s: %s\n", compiler,
               std::strerror(error));
  return kCannotRun;
}

// Launchers that may stand before the compiler; they leave its words alone.
bool IsLauncher(const std::string& word) {
  const std::string name = std::filesystem::path(word).filename().string();
  return name == "ccache" || name == "sccache" || name == "distcc";
}

// The command that is really run, as ParseCompilerCommand wants it.
std::vector<std::string> CompilerWords(int argc, char** argv) {
  int first = 0;
  while (first + 1 < argc && IsLauncher(argv[first])) ++first;
  return {argv + first, argv + argc};
}

// The child that is being waited for, for the signal handler.
volatile sig_atomic_t compiler_pid = 0;

void Forward(int signal_number) {
  if (compiler_pid > 0) kill(static_cast<pid_t>(compiler_pid), signal_number);
}

// Forwards what asks this process to end, so that compiler and launcher end
// together; a terminal's Ctrl-C reaches both and the second one is harmless.
void ForwardSignals() {
  for (const int number : kForwarded) {
    struct sigaction action{};
    sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;  // nohup
    action = {};
    action.sa_handler = &Forward;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
  }
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Ends as the compiler did.
int EndLike(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const int number = WTERMSIG(status);
  signal(number, SIG_DFL);
  raise(number);
  return 128 + number;
}

// Waits for the compiler; false where it failed, and said why.
bool Succeeded(int pipe_end) {
  char succeeded = 0;
  ssize_t got = 0;
  do {
    got = read(pipe_end, &succeeded, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1;
}

absl::Status Keep(const CompilerCommand& command,
                  const std::vector<std::string>& words,
                  const CommandContext& context, int compiler_succeeded) {
  const bool compiles = HasCudaSource(command);
  if (!compiles && (!Succeeded(compiler_succeeded) ||
                    !HasDeviceCode(std::filesystem::path(context.directory) /
                                   command.output)))
    return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const std::unique_ptr<BuildRegistry> registry,
      BuildRegistry::Open(BuildRegistry::DefaultDirectory(), true));
  Bookkeeping bookkeeping(command, words, context.directory, context.cuda_home,
                          registry.get());
  RETURN_IF_ERROR(bookkeeping.KeepSources());
  if (compiles && !Succeeded(compiler_succeeded)) return absl::OkStatus();
  return bookkeeping.KeepResults();
}

// A child that keeps things beside the compiler. Whatever happens to it (Clang
// is in it) cannot hurt the build. -1: no process to be had.
pid_t StartBookkeeper(const CompilerCommand& command,
                      const std::vector<std::string>& words,
                      const CommandContext& context, int* succeeded) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  const pid_t pid = fork();
  if (pid != 0) {
    close(ends[0]);
    *succeeded = ends[1];
    return pid;
  }
  close(ends[1]);
  signal(SIGALRM, SIG_DFL);
  alarm(kMostBookkeepingSeconds);
  const absl::Status status = Keep(command, words, context, ends[0]);
  if (!status.ok()) Warn(status);
  _exit(0);
}

void FinishBookkeeper(pid_t pid, int succeeded, bool compiled) {
  if (pid < 0) {
    Warn(absl::ResourceExhaustedError("no process could be started"));
    return;
  }
  if (!compiled) {  // nothing to keep; files it was writing stay invisible
    kill(pid, SIGKILL);
    close(succeeded);
    WaitFor(pid);
    return;
  }
  signal(SIGPIPE, SIG_IGN);
  [[maybe_unused]] const ssize_t told = write(succeeded, "1", 1);
  close(succeeded);
  const int status = WaitFor(pid);
  if (WIFSIGNALED(status)) {
    Warn(absl::InternalError(WTERMSIG(status) == SIGALRM
                                 ? std::string("it took too long")
                                 : std::string("its process died by signal ") +
                                       std::to_string(WTERMSIG(status))));
  }
}

int RunAndKeep(char** argv, const CompilerCommand& command,
               const std::vector<std::string>& words,
               const CommandContext& context) {
  std::fflush(nullptr);
  int succeeded = -1;
  const pid_t bookkeeper = StartBookkeeper(command, words, context, &succeeded);
  pid_t compiler = 0;
  const int error =
      posix_spawnp(&compiler, argv[0], nullptr, nullptr, argv, environ);
  if (error != 0) {
    FinishBookkeeper(bookkeeper, succeeded, false);
    return CannotRun(argv[0], error);
  }
  compiler_pid = compiler;
  ForwardSignals();
  const int status = WaitFor(compiler);
  compiler_pid = 0;
  const bool compiled = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  FinishBookkeeper(bookkeeper, succeeded, compiled);
  return EndLike(status);
}

}  // namespace

int CompilerLauncherMain(int argc, char** argv) {
  if (argc < 1) {
    std::fprintf(stderr,
                 "reprise cc: no compiler given; usage: reprise cc COMPILER "
                 "ARGUMENTS...\n");
    return 2;
  }
  const std::vector<std::string> words = CompilerWords(argc, argv);
  const CommandContext context = CommandContext::FromEnvironment();
  const absl::StatusOr<CompilerCommand> command =
      ParseCompilerCommand(words, context);
  if (command.ok() && IsWorthKeeping(*command))
    return RunAndKeep(argv, *command, words, context);
  execvp(argv[0], argv);
  return CannotRun(argv[0], errno);
}

}  // namespace reprise
