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
#include "replay/compiler/kernel_symbols.h"
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

// Over all names that the kernel has in the application.
SubstitutionCount Launches(const RecordResult& result) {
  SubstitutionCount all;
  for (const SubstitutionCount& count : result.substitutions) {
    all.applied += count.applied;
    all.declined += count.declined;
    for (const auto& [why, launches] : count.reasons)
      all.reasons[why] += launches;
  }
  return all;
}

// What a run with the tuned kernel came to.
std::string LaunchesText(const v1::Result& result,
                         const SubstitutionCount& launches) {
  const std::string& kernel = result.kernel_display_name().empty()
                                  ? result.kernel_symbol()
                                  : result.kernel_display_name();
  const uint64_t all = launches.applied + launches.declined;
  if (all == 0)
    return absl::StrCat("the application launched no ", kernel,
                        ": nothing was tuned");
  std::string text =
      absl::StrCat("substituted ", launches.applied, " of ", all,
                   all == 1 ? " launch of " : " launches of ", kernel);
  for (const auto& [why, count] : launches.reasons)
    absl::StrAppend(&text, "; ", count, " declined: ", why);
  return text;
}

double KernelMilliseconds(const RecordResult& result,
                          const std::string& symbol) {
  const std::string normalized = NormalizedSymbol(symbol);
  double total = 0;
  for (const KernelSeen& kernel : result.kernels) {
    if (kernel.symbol == symbol ||
        NormalizedSymbol(kernel.symbol) == normalized)
      total += kernel.total_ms;
  }
  return total;
}

// On a GPU launches are not timed while programs are. One run more of each.
absl::Status TimeKernels(const ApplyOptions& options, const v1::Result& result,
                         RecordOptions session, std::vector<double>* without,
                         std::vector<double>* with) {
  session.profile = true;
  ASSIGN_OR_RETURN(const RecordResult tuned,
                   RunRecorded(session, options.command));
  session.substitutions.clear();
  ASSIGN_OR_RETURN(const RecordResult own,
                   RunRecorded(session, options.command));
  *with = {KernelMilliseconds(tuned, result.kernel_symbol())};
  *without = {KernelMilliseconds(own, result.kernel_symbol())};
  return absl::OkStatus();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// Pairs of runs without and with the tuned kernel, in turns.
absl::Status Compare(const ApplyOptions& options, const v1::Result& result,
                     const RecordOptions& session, CliContext* context) {
  std::vector<double> without, with, kernel_without, kernel_with;
  SubstitutionCount launches;
  bool same_output = true, same_exit = true;
  for (int pair = 0; pair < options.pairs; ++pair) {
    TimedRun runs[2];
    for (int turn = 0; turn < 2; ++turn) {
      const int which = (turn + pair) % 2;  // 0: without, 1: with
      RecordOptions run = session;
      if (which == 0) run.substitutions.clear();
      ASSIGN_OR_RETURN(runs[which], RunCaptured(run, options.command));
    }
    without.push_back(runs[0].seconds);
    with.push_back(runs[1].seconds);
    kernel_without.push_back(
        KernelMilliseconds(runs[0].result, result.kernel_symbol()));
    kernel_with.push_back(
        KernelMilliseconds(runs[1].result, result.kernel_symbol()));
    launches = Launches(runs[1].result);
    same_output = same_output && runs[0].output == runs[1].output;
    same_exit = same_exit && runs[0].result.application_exit_code ==
                                 runs[1].result.application_exit_code;
  }
  if (session.open_gpu) {
    RETURN_IF_ERROR(
        TimeKernels(options, result, session, &kernel_without, &kernel_with));
  }
  if (!same_exit || launches.applied == 0) context->exit_code = kExitFailed;
  if (context->json) {
    PrintJson({{"schema", "reprise.apply/1"},
               {"kernel", result.kernel_symbol()},
               {"launches_applied", launches.applied},
               {"launches_declined", launches.declined},
               {"declined", launches.reasons},
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
  std::printf("launches   %s\n", LaunchesText(result, launches).c_str());
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
  ASSIGN_OR_RETURN(RecordOptions session, SessionOptions(*context));
  RETURN_IF_ERROR(ChooseSubstitution(*context, result, &session));
  if (options.pairs > 0) return Compare(options, result, session, context);
  ASSIGN_OR_RETURN(const RecordResult run,
                   RunRecorded(session, options.command));
  std::fprintf(stderr, "reprise: %s\n",
               LaunchesText(result, Launches(run)).c_str());
  context->exit_code = run.application_exit_code;
  return absl::OkStatus();
}

}  // namespace

absl::Status ChooseSubstitution(const CliContext& context,
                                const v1::Result& result,
                                RecordOptions* options) {
  if (result.device() != "cpu") {
    RETURN_IF_ERROR(ChooseRecordingDevice(context, options));
    if (!options->open_gpu) {
      return absl::FailedPreconditionError(absl::StrCat(
          "this was tuned on ", result.device_name(),
          ", and the application would run on the cpu device; see --device"));
    }
    // Nothing is recorded: memory stays as the application has it.
    options->native_allocator = true;
  }
  Substitution substitution;
  substitution.kernel = result.kernel_symbol();
  substitution.guard = result.recorded_launch();
  substitution.code = result.code();
  substitution.launch = result.tuned_launch();
  options->substitutions.push_back(std::move(substitution));
  return absl::OkStatus();
}

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
