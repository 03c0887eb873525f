// How many CUDA devices there are, asked by a child that prints the number.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <cerrno>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/device/cuda/cuda_device.h"
#include "replay/device/cuda/driver.h"

extern char** environ;

namespace reprise {
namespace {

std::string ReadAll(int fd) {
  std::string text;
  char buffer[256];
  ssize_t got;
  while ((got = read(fd, buffer, sizeof(buffer))) > 0 ||
         (got < 0 && errno == EINTR)) {
    if (got > 0) text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

// What the program prints on standard output; it must end with exit code 0.
absl::StatusOr<std::string> OutputOf(const std::string& executable,
                                     std::vector<std::string> arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return ErrnoToStatus(errno, "cannot make a pipe");
  auto close_read = absl::MakeCleanup([&] { close(ends[0]); });
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> argv = {const_cast<char*>(executable.c_str())};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, executable.c_str(), &actions, nullptr,
                                argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0)
    return ErrnoToStatus(error, absl::StrCat("cannot start ", executable));
  const std::string text = ReadAll(ends[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::FailedPreconditionError(
        "the CUDA driver is there but does not start; see the message above");
  }
  return text;
}

}  // namespace

absl::StatusOr<int> CudaDeviceCount(const CudaDeviceOptions& options) {
  // Loading the library starts nothing; without it no child is needed.
  RETURN_IF_ERROR(cuda::Driver::Load().status());
  std::vector<std::string> arguments = options.executor_arguments;
  arguments.push_back("--count=1");
  ASSIGN_OR_RETURN(const std::string text,
                   OutputOf(options.executor_executable.empty()
                                ? "/proc/self/exe"
                                : options.executor_executable,
                            arguments));
  int count = 0;
  if (!absl::SimpleAtoi(text, &count)) {
    return absl::InternalError(
        absl::StrCat("got '", text, "', expected the number of CUDA devices"));
  }
  return count;
}

}  // namespace reprise
