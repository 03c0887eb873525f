#include "replay/compiler/nvcc_child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"

extern char** environ;

namespace reprise {
namespace {

std::vector<std::string> Words(const NvccCommand& command,
                               const std::string& output) {
  std::vector<std::string> words = {
      command.nvcc, "-ptx", "-arch=" + command.architecture, "-w",
      // Allow more, and change nothing else.
      "--expt-relaxed-constexpr", "--extended-lambda"};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  for (const std::string& word : {std::string("-x"), std::string("cu"),
                                  command.source, std::string("-o"), output})
    words.push_back(word);
  return words;
}

std::vector<std::string> Environment(const std::string& scratch) {
  std::vector<std::string> variables = {"TMPDIR=" + scratch};
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!absl::StartsWith(*variable, "TMPDIR=")) variables.push_back(*variable);
  return variables;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Its exit status, as of waitpid.
absl::StatusOr<int> RunToEnd(std::vector<std::string> words,
                             std::vector<std::string> environment,
                             const std::string& log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  absl::Cleanup destroyer = [&] { posix_spawn_file_actions_destroy(&actions); };
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, words[0].c_str(), &actions, nullptr,
                  Pointers(words).data(), Pointers(environment).data());
  if (error != 0)
    return absl::UnavailableError(absl::StrCat(
        "cannot run ", words[0], ": ", ErrnoToStatus(error, "").message()));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoToStatus(errno, "cannot wait for nvcc");
  }
  return status;
}

}  // namespace

absl::StatusOr<std::string> RunNvccToPtx(const NvccCommand& command) {
  const std::string output = command.scratch + "/nvcc.ptx";
  const std::string log = command.scratch + "/nvcc.log";
  unlink(output.c_str());
  ASSIGN_OR_RETURN(
      const int status,
      RunToEnd(Words(command, output), Environment(command.scratch), log));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("nvcc: ", ReadFile(log).value_or("no output")));
  }
  return ReadFile(output);
}

}  // namespace reprise
