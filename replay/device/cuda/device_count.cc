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
#include "replay/base/process.h"
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
absl::StatusOr<std::string> OutputOf(std::vector<std::string> words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return ErrnoToStatus(errno, "cannot make a pipe");
  auto close_read = absl::MakeCleanup([&] { close(ends[0]); });
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0)
    return ErrnoToStatus(error, absl::StrCat("cannot start ", words[0]));
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
  ASSIGN_OR_RETURN(std::vector<std::string> words,
                   ProgramCommand(options.executor_executable));
  words.insert(words.end(), options.executor_arguments.begin(),
               options.executor_arguments.end());
  words.push_back("--count=1");
  ASSIGN_OR_RETURN(const std::string text, OutputOf(std::move(words)));
  int count = 0;
  if (!absl::SimpleAtoi(text, &count)) {
    return absl::InternalError(
        absl::StrCat("got '", text, "', expected the number of CUDA devices"));
  }
  return count;
}

}  // namespace reprise
