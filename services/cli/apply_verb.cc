// reprise apply: the unmodified application with a tuned kernel in it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "services/cli/context.h"
#include "services/cli/session_options.h"
#include "services/coordinator/result_files.h"

namespace reprise {
namespace {

struct ApplyOptions {
  std::string result;
  int pairs = 0;
  std::vector<std::string> command;
};

struct TimedRun {
  RecordResult result;
  double seconds = 0;
  std::string output;  // what the application wrote to standard output
};

Substitution SubstitutionOf(const v1::Result& result) {
  Substitution substitution;
  substitution.kernel = result.kernel_symbol();
  substitution.guard = result.recorded_launch();
  substitution.code = result.code();
  substitution.launch = result.tuned_launch();
  return substitution;
}

// Runs with standard output going to a file, which is read back.
absl::StatusOr<TimedRun> RunCaptured(const RecordOptions& options,
                                     const std::vector<std::string>& command) {
  ASSIGN_OR_RETURN(const TemporaryDirectory scratch,
                   TemporaryDirectory::Create("reprise-apply"));
  const std::string path = scratch.path() + "/output";
  std::fflush(stdout);
  const int saved = dup(STDOUT_FILENO);
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (saved < 0 || file < 0)
    return ErrnoToStatus(errno, "cannot capture the application's output");
  dup2(file, STDOUT_FILENO);
  absl::Cleanup restore = [saved, file] {
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(file);
  };
  TimedRun run;
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(run.result, RunRecorded(options, command));
  run.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  ASSIGN_OR_RETURN(run.output, ReadFile(path));
  return run;
}

uint64_t Applied(const RecordResult& result, uint64_t* declined) {
  uint64_t applied = 0;
  for (const SubstitutionCount& count : result.substitutions) {
    applied += count.applied;
    *declined += count.declined;
  }
  return applied;
}

// What a run with the tuned kernel came to.
std::string LaunchesText(const v1::Result& result, uint64_t applied,
                         uint64_t declined) {
  const std::string& kernel = result.kernel_display_name().empty()
                                  ? result.kernel_symbol()
                                  : result.kernel_display_name();
  if (applied == 0 && declined == 0)
    return absl::StrCat("the application launched no ", kernel,
                        ": nothing was tuned");
  std::string text = absl::StrCat(applied, " launch", applied == 1 ? "" : "es",
                                  " of ", kernel, " ran the tuned kernel");
  if (declined > 0)
    absl::StrAppend(&text, ", ", declined,
                    " had another grid, block or shared memory than the "
                    "recorded launch and did not");
  return text;
}

double KernelMilliseconds(const RecordResult& result,
                          const std::string& symbol) {
  for (const KernelSeen& kernel : result.kernels) {
    if (kernel.symbol == symbol) return kernel.total_ms;
  }
  return 0;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// Pairs of runs without and with the tuned kernel, in turns.
absl::Status Compare(const ApplyOptions& options, const v1::Result& result,
                     RecordOptions session, CliContext* context) {
  std::vector<double> without, with, kernel_without, kernel_with;
  uint64_t applied = 0, declined = 0;
  bool same_output = true, same_exit = true;
  for (int pair = 0; pair < options.pairs; ++pair) {
    TimedRun runs[2];
    for (int turn = 0; turn < 2; ++turn) {
      const int which = (turn + pair) % 2;  // 0: without, 1: with
      session.substitutions.clear();
      if (which == 1) session.substitutions.push_back(SubstitutionOf(result));
      ASSIGN_OR_RETURN(runs[which], RunCaptured(session, options.command));
    }
    without.push_back(runs[0].seconds);
    with.push_back(runs[1].seconds);
    kernel_without.push_back(
        KernelMilliseconds(runs[0].result, result.kernel_symbol()));
    kernel_with.push_back(
        KernelMilliseconds(runs[1].result, result.kernel_symbol()));
    declined = 0;
    applied = Applied(runs[1].result, &declined);
    same_output = same_output && runs[0].output == runs[1].output;
    same_exit = same_exit && runs[0].result.application_exit_code ==
                                 runs[1].result.application_exit_code;
  }
  if (!same_exit || applied == 0) context->exit_code = kExitFailed;
  if (context->json) {
    PrintJson({{"schema", "reprise.apply/1"},
               {"kernel", result.kernel_symbol()},
               {"launches_applied", applied},
               {"launches_declined", declined},
               {"seconds_without", Median(without)},
               {"seconds_with", Median(with)},
               {"kernel_ms_without", Median(kernel_without)},
               {"kernel_ms_with", Median(kernel_with)},
               {"same_output", same_output},
               {"same_exit_code", same_exit}});
    return absl::OkStatus();
  }
  std::printf(
      "program    %.3f s without, %.3f s with the tuned kernel (medians of %d "
      "interleaved runs each)\n",
      Median(without), Median(with), options.pairs);
  std::printf(
      "kernel     %.4g ms without, %.4g ms with, all launches together\n",
      Median(kernel_without), Median(kernel_with));
  std::printf("launches   %s\n",
              LaunchesText(result, applied, declined).c_str());
  std::printf("output     %s, exit code %s\n",
              same_output ? "the same" : "DIFFERS",
              same_exit ? "the same" : "DIFFERS");
  return absl::OkStatus();
}

absl::Status RunApply(const ApplyOptions& options, CliContext* context) {
  ASSIGN_OR_RETURN(const v1::Result result, ReadResult(options.result));
  if (!result.better()) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.result,
                     " holds nothing better than the application's own kernel: "
                     "there is nothing to apply"));
  }
  if (result.device() != "cpu") {
    return absl::UnimplementedError(absl::StrCat(
        options.result, " was tuned on ", result.device(),
        "; tuned kernels cannot be put into applications on a GPU yet. Apply "
        "its patch (",
        options.result, "/winner.patch) and build the application again"));
  }
  ASSIGN_OR_RETURN(RecordOptions session, SessionOptions(*context));
  if (options.pairs > 0)
    return Compare(options, result, std::move(session), context);
  session.substitutions.push_back(SubstitutionOf(result));
  ASSIGN_OR_RETURN(const RecordResult run,
                   RunRecorded(session, options.command));
  uint64_t declined = 0;
  const uint64_t applied = Applied(run, &declined);
  std::fprintf(stderr, "reprise: %s\n",
               LaunchesText(result, applied, declined).c_str());
  context->exit_code = run.application_exit_code;
  return absl::OkStatus();
}

}  // namespace

void AddApplyVerb(CLI::App* app, CliContext* context) {
  CLI::App* verb = app->add_subcommand(
      "apply", "run the unmodified application with a winner in it");
  auto options = std::make_shared<ApplyOptions>();
  verb->add_option("result", options->result,
                   "result directory of 'reprise optimize'")
      ->required();
  verb->add_option("--compare", options->pairs,
                   "run the application this many times without and with it, "
                   "in turns, and report times and whether "
                   "its output is the same")
      ->check(CLI::Range(1, 1000));
  verb->add_option("command", options->command,
                   "the application and its arguments, after --")
      ->required();
  AddCommonOptions(verb, context, /*reports=*/true);
  verb->callback([options, context] {
    if (absl::Status status = RunApply(*options, context); !status.ok())
      context->Fail(status);
  });
}

}  // namespace reprise
