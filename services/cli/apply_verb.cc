// reprise apply: the unmodified application with a tuned kernel in it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/kernel_symbols.h"
#include "replay/engine/paired_statistics.h"
#include "services/cli/context.h"
#include "services/cli/session_options.h"
#include "services/coordinator/result_files.h"

namespace reprise {
namespace {

// Pairs of runs more in which the launches of a GPU are timed.
constexpr int kKernelPairs = 3;

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

// Something measured without and with the tuned kernel, in turns.
struct Comparison {
  std::vector<double> without, with;

  RatioEstimate Ratio() const { return EstimateRatio(without, with); }
  bool HasInterval() const { return std::isfinite(Ratio().high); }
  std::string Text() const {
    const RatioEstimate ratio = Ratio();
    std::string text = absl::StrFormat("%.3fx", ratio.ratio);
    if (HasInterval()) {
      absl::StrAppendFormat(&text, ", 95%% interval %.3f to %.3f", ratio.low,
                            ratio.high);
    }
    return absl::StrCat(text, ", ", ratio.pairs,
                        ratio.pairs == 1 ? " pair" : " interleaved pairs");
  }
  void AddTo(const std::string& name, nlohmann::ordered_json* json) const {
    const RatioEstimate ratio = Ratio();
    (*json)[name + "_ratio"] = ratio.ratio;
    if (HasInterval()) (*json)[name + "_ratio_ci95"] = {ratio.low, ratio.high};
  }
};

// What pairs of runs without and with the tuned kernel showed.
struct ComparedRuns {
  Comparison seconds;    // of the program
  Comparison kernel_ms;  // of all launches of the kernel
  SubstitutionCount launches;
  bool same_output = true;
  bool same_exit = true;
};

// Pairs of runs without (0) and with (1) the tuned kernel; which one goes first
// changes from pair to pair.
absl::Status RunPairs(const RecordOptions& session,
                      const std::vector<std::string>& command, int pairs,
                      const std::function<void(const TimedRun (&)[2])>& note) {
  for (int pair = 0; pair < pairs; ++pair) {
    TimedRun runs[2];
    for (int turn = 0; turn < 2; ++turn) {
      const int which = (turn + pair) % 2;
      RecordOptions run = session;
      if (which == 0) run.substitutions.clear();
      ASSIGN_OR_RETURN(runs[which], RunCaptured(run, command));
    }
    note(runs);
  }
  return absl::OkStatus();
}

absl::StatusOr<ComparedRuns> CompareRuns(const ApplyOptions& options,
                                         const v1::Result& result,
                                         RecordOptions session) {
  ComparedRuns compared;
  const auto note_kernel = [&](const TimedRun(&runs)[2]) {
    compared.kernel_ms.without.push_back(
        KernelMilliseconds(runs[0].result, result.kernel_symbol()));
    compared.kernel_ms.with.push_back(
        KernelMilliseconds(runs[1].result, result.kernel_symbol()));
  };
  RETURN_IF_ERROR(RunPairs(
      session, options.command, options.pairs, [&](const TimedRun(&runs)[2]) {
        compared.seconds.without.push_back(runs[0].seconds);
        compared.seconds.with.push_back(runs[1].seconds);
        compared.launches = Launches(runs[1].result);
        compared.same_output &= runs[0].output == runs[1].output;
        compared.same_exit &= runs[0].result.application_exit_code ==
                              runs[1].result.application_exit_code;
        if (!session.open_gpu) note_kernel(runs);
      }));
  // On a GPU launches are not timed while programs are.
  if (session.open_gpu) {
    session.profile = true;
    RETURN_IF_ERROR(RunPairs(session, options.command,
                             std::min(options.pairs, kKernelPairs),
                             note_kernel));
  }
  return compared;
}

nlohmann::ordered_json ComparisonJson(const v1::Result& result,
                                      const ComparedRuns& compared) {
  const v1::Speedup& replayed = result.outcome().speedup();
  const RatioInterval expected = ExpectedInProgram(result);
  nlohmann::ordered_json json = {
      {"schema", "reprise.apply/2"},
      {"kernel", result.kernel_symbol()},
      {"launches_applied", compared.launches.applied},
      {"launches_declined", compared.launches.declined},
      {"declined", compared.launches.reasons},
      {"seconds_without", compared.seconds.without},
      {"seconds_with", compared.seconds.with},
      {"kernel_ms_without", compared.kernel_ms.without},
      {"kernel_ms_with", compared.kernel_ms.with},
      {"replay_ratio", replayed.ratio()},
      {"replay_ratio_ci95", {replayed.ci95_low(), replayed.ci95_high()}},
      {"expected_ratio", {expected.low, expected.high}},
      {"same_output", compared.same_output},
      {"same_exit_code", compared.same_exit}};
  compared.seconds.AddTo("program", &json);
  if (UpperMedian(compared.kernel_ms.with) > 0)
    compared.kernel_ms.AddTo("kernel", &json);
  return json;
}

void PrintComparison(const v1::Result& result, const ComparedRuns& compared) {
  const v1::Speedup& replayed = result.outcome().speedup();
  std::printf("program    %.3f s without, %.3f s with the tuned kernel: %s\n",
              UpperMedian(compared.seconds.without),
              UpperMedian(compared.seconds.with),
              compared.seconds.Text().c_str());
  if (UpperMedian(compared.kernel_ms.with) > 0) {
    std::printf("kernel     %.4g ms without, %.4g ms with, all launches: %s\n",
                UpperMedian(compared.kernel_ms.without),
                UpperMedian(compared.kernel_ms.with),
                compared.kernel_ms.Text().c_str());
  }
  const RatioInterval expected = ExpectedInProgram(result);
  std::printf("replayed   %.3fx; %.3f to %.3f expected in the program\n",
              replayed.ratio(), expected.low, expected.high);
  std::printf("launches   %s\n",
              LaunchesText(result, compared.launches).c_str());
  std::printf("output     %s, exit code %s\n",
              compared.same_output ? "the same" : "DIFFERS",
              compared.same_exit ? "the same" : "DIFFERS");
}

absl::Status Compare(const ApplyOptions& options, const v1::Result& result,
                     const RecordOptions& session, CliContext* context) {
  ASSIGN_OR_RETURN(const ComparedRuns compared,
                   CompareRuns(options, result, session));
  if (!compared.same_exit || compared.launches.applied == 0)
    context->exit_code = kExitFailed;
  if (context->json) {
    PrintJson(ComparisonJson(result, compared));
  } else {
    PrintComparison(result, compared);
  }
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
