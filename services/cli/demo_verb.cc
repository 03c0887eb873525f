// reprise demo: builds an example application, records it, optimizes its kernel
// and runs it with the winner.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "replay/base/file_util.h"
#include "replay/base/process.h"
#include "replay/base/status_macros.h"
#include "services/cli/context.h"
#include "services/cli/demo/potential_source.h"
#include "services/cli/optimize_job.h"
#include "services/cli/session_options.h"
#include "services/common/terminal.h"
#include "services/coordinator/result_files.h"

namespace reprise {
namespace {

struct DemoOptions {
  std::string budget = "30s";
  uint64_t seed = 1;
  std::string directory = "reprise-demo";
};

bool OnPath(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string directory;
  for (const char* at = path == nullptr ? "" : path;; ++at) {
    if (*at != ':' && *at != '\0') {
      directory += *at;
      continue;
    }
    if (access(absl::StrCat(directory, "/", program).c_str(), X_OK) == 0)
      return true;
    directory.clear();
    if (*at == '\0') return false;
  }
}

// Runs a command to its end with standard output sent to standard error.
absl::Status RunCommand(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return ErrnoToStatus(errno, "cannot start a process");
  if (child == 0) {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("this command failed: ", absl::StrJoin(command, " ")));
}

// Standard output carries the result alone, so what the application prints goes
// to standard error.
class StandardOutputAside {
 public:
  StandardOutputAside() : saved_(dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  ~StandardOutputAside() {
    std::fflush(stdout);
    dup2(saved_, STDOUT_FILENO);
    close(saved_);
  }

 private:
  int saved_;
};

absl::StatusOr<std::vector<std::string>> CompilerCommand(
    const std::string& cuda_home, const std::string& source,
    const std::string& program) {
  const std::string library = cuda_home + "/lib64";
  for (const char* clang : {"clang++-22", "clang++"}) {
    if (!OnPath(clang)) continue;
    return std::vector<std::string>{clang,
                                    "-O3",
                                    "--cuda-gpu-arch=sm_90",
                                    "--cuda-path=" + cuda_home,
                                    "-Wno-unknown-cuda-version",
                                    source,
                                    "-o",
                                    program,
                                    "-L" + library,
                                    "-Wl,-rpath," + library,
                                    "-lcudart"};
  }
  if (OnPath("nvcc")) {
    return std::vector<std::string>{
        "nvcc",    "-O3",    "-arch=sm_90",
        "-cudart", "shared", source,
        "-o",      program,  "-Xlinker=-rpath=" + library};
  }
  return absl::NotFoundError(
      "neither clang++-22 nor nvcc is on the PATH: the demo builds its example "
      "with one of them");
}

absl::StatusOr<std::string> RecordDemo(const std::string& program,
                                       CliContext* context) {
  ASSIGN_OR_RETURN(RecordOptions session, SessionOptions(*context));
  session.store_directory = context->settings.Get("store");
  session.kernel_regex = "PotentialKernel";
  RETURN_IF_ERROR(ChooseRecordingDevice(*context, &session));
  StandardOutputAside aside;
  ASSIGN_OR_RETURN(const RecordResult recorded,
                   RunRecorded(session, {program}));
  if (recorded.application_exit_code != 0) {
    return absl::InternalError(
        absl::StrCat("the example application failed with exit code ",
                     recorded.application_exit_code));
  }
  if (recorded.units.empty())
    return absl::InternalError(
        absl::StrCat("nothing was recorded: ", recorded.problem));
  return recorded.units.front();
}

absl::Status RunWinner(const v1::Result& result, const std::string& program,
                       CliContext* context) {
  ASSIGN_OR_RETURN(RecordOptions session, SessionOptions(*context));
  RETURN_IF_ERROR(ChooseSubstitution(*context, result, &session));
  StandardOutputAside aside;
  ASSIGN_OR_RETURN(const RecordResult run, RunRecorded(session, {program}));
  if (run.application_exit_code != 0) {
    return absl::InternalError(
        "the example application failed its own check with the tuned kernel in "
        "it");
  }
  if (run.substitutions.empty() || run.substitutions[0].applied == 0)
    return absl::InternalError(
        "no launch of the example took the tuned kernel");
  return absl::OkStatus();
}

absl::Status RunDemo(const DemoOptions& options, CliContext* context) {
  Terminal terminal;
  const std::string directory = std::filesystem::absolute(options.directory);
  RETURN_IF_ERROR(MakeDirectories(directory));
  const std::string source = directory + "/potential.cu",
                    program = directory + "/potential";
  RETURN_IF_ERROR(
      context->settings.Set("store", directory + "/units", "the demo"));
  RETURN_IF_ERROR(
      context->settings.Set("home", directory + "/home", "the demo"));
  setenv("REPRISE_HOME", (directory + "/home").c_str(), 1);
  terminal.Line(terminal.Bold("1. build") + "     " + source);
  RETURN_IF_ERROR(WriteFileAtomically(source, kPotentialSource));
  ASSIGN_OR_RETURN(std::vector<std::string> launcher, ProgramCommand(""));
  launcher.push_back("cc");
  ASSIGN_OR_RETURN(
      std::vector<std::string> compile,
      CompilerCommand(context->settings.Get("cuda_home"), source, program));
  compile.insert(compile.begin(), launcher.begin(), launcher.end());
  RETURN_IF_ERROR(RunCommand(compile));
  terminal.Line(terminal.Bold("2. record") + "    " + program);
  ASSIGN_OR_RETURN(const std::string unit, RecordDemo(program, context));
  terminal.Line(terminal.Bold("3. optimize") + "  " + unit);
  OptimizeJob job;
  job.units = {unit};
  job.budget = options.budget;
  job.seed = options.seed;
  job.output = directory + "/results";
  ASSIGN_OR_RETURN(const OptimizeResults done, RunOptimizeJob(job, context));
  RETURN_IF_ERROR(done.status);
  if (done.results.empty()) {
    context->exit_code = kExitInterrupted;
    return absl::OkStatus();
  }
  const v1::Result& result = done.results.front();
  if (result.better()) {
    terminal.Line(terminal.Bold("4. apply") +
                  "     the winner in the unmodified application");
    RETURN_IF_ERROR(RunWinner(result, program, context));
  }
  nlohmann::ordered_json json = ResultJson(result);
  json["schema"] = "reprise.demo/1";
  if (context->json) {
    PrintJson(json);
  } else {
    std::printf("%s", ResultText(result).c_str());
  }
  if (!result.better()) context->exit_code = kExitNothingBetter;
  if (InterruptFlag()->load()) context->exit_code = kExitInterrupted;
  return absl::OkStatus();
}

}  // namespace

void AddDemoVerb(CLI::App* app, CliContext* context) {
  CLI::App* verb = app->add_subcommand(
      "demo",
      "build an example, record it, optimize it, run it with the winner");
  auto options = std::make_shared<DemoOptions>();
  verb->add_option("--budget", options->budget, "time for the search")
      ->capture_default_str();
  verb->add_option("--seed", options->seed, "of every random choice")
      ->capture_default_str();
  verb->add_option("--directory", options->directory, "where to put everything")
      ->capture_default_str();
  AddCommonOptions(verb, context, /*reports=*/true);
  verb->callback([options, context] {
    if (absl::Status status = RunDemo(*options, context); !status.ok())
      context->Fail(status);
  });
}

}  // namespace reprise
