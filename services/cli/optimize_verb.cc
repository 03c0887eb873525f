// reprise optimize: the main job on one machine.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "evolution/measures.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "services/cli/context.h"
#include "services/cli/optimize_job.h"
#include "services/common/terminal.h"
#include "services/coordinator/result_files.h"
#include "services/coordinator/rewrite_sources.h"

namespace reprise {
namespace {

constexpr absl::Duration kShortestCompileLimit = absl::Seconds(5);

std::string ProgressText(const CampaignProgress& progress) {
  uint64_t ok = 0;
  for (const auto& [kind, count] : progress.outcomes)
    ok += kind == "OK" ? count : 0;
  std::string text = absl::StrFormat(
      "%-8s %4.1f/%.4g s  %3d trials (%d ok)  %d sources  best %.2fx",
      progress.phase, absl::ToDoubleSeconds(progress.elapsed),
      absl::ToDoubleSeconds(progress.budget), progress.trials, ok,
      progress.source_variants, progress.best_ratio);
  if (!progress.best_description.empty())
    absl::StrAppend(&text, "  ", progress.best_description);
  return text;
}

// Makes a directory that was not there: <output>/<unit>, <output>/<unit>.2, ...
// Two processes never get the same.
absl::StatusOr<std::string> FreshDirectory(const std::string& output,
                                           const std::string& unit) {
  RETURN_IF_ERROR(MakeDirectories(output));
  std::string directory = absl::StrCat(output, "/", unit);
  std::error_code error;
  for (int i = 2; !std::filesystem::create_directory(directory, error); ++i) {
    if (error && !std::filesystem::exists(directory)) {
      return ErrnoToStatus(error.value(),
                           absl::StrCat("cannot create directory ", directory));
    }
    directory = absl::StrCat(output, "/", unit, ".", i);
  }
  return directory;
}

// A directory of a campaign that came to no trial.
void RemoveIfBare(const std::string& directory) {
  std::error_code ignored;
  const std::string trials = directory + "/trials.jsonl";
  if (std::filesystem::file_size(trials, ignored) == 0)
    std::filesystem::remove(trials, ignored);
  std::filesystem::remove(directory, ignored);  // only where it is empty
}

std::string Quoted(const std::string& text) {
  return text.find_first_of(" '\"$\\") == std::string::npos
             ? text
             : absl::StrCat("'", text, "'");
}

// Appends to `results` as soon as there is one.
absl::Status OptimizeOne(const UnitReader& unit, Device& device,
                         CompilePool& pool, CampaignOptions options,
                         const std::string& directory, CliContext* context,
                         std::vector<v1::Result>* results) {
  Terminal terminal;
  terminal.Line(absl::StrFormat("%s on %s (%s); results go to %s",
                                terminal.Bold(unit.id()), device.facts().kind,
                                device.facts().name, directory));
  std::ofstream trials(absl::StrCat(directory, "/trials.jsonl"));
  CampaignObserver observer;
  SetWorthFinishing(nullptr);
  observer.progress = [&](const CampaignProgress& progress) {
    SetWorthFinishing(progress.trials > 0 ? "finishing what was found"
                                          : nullptr);
    terminal.Live(ProgressText(progress));
  };
  observer.trial = [&](const TrialRecord& trial) {
    trials << TrialJson(trial) << std::endl;
    if (trial.improved) {
      terminal.Line(
          absl::StrFormat("  %s after %d trials: %s",
                          terminal.Green(absl::StrFormat(
                              "%.2fx", trial.outcome.speedup().ratio())),
                          trial.number, trial.description));
    }
  };
  LocalCampaign campaign(unit, device, pool, options, observer);
  ASSIGN_OR_RETURN(v1::Result result, campaign.Run());
  std::string store;
  for (const Setting& setting : context->settings.all()) {
    if (setting.name == "store" && setting.source != "default")
      store = absl::StrCat(" --store ", Quoted(setting.value));
  }
  if (result.better()) {
    result.set_reproduce(absl::StrCat(
        "reprise replay ", unit.id(), " --result ", Quoted(directory), store,
        context->l2 == "warm" ? " --l2 warm" : ""));
  }
  results->push_back(result);
  RETURN_IF_ERROR(WriteResult(directory, result));
  if (!trials)
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot write ", directory, "/trials.jsonl"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OptimizeResults> RunOptimizeJob(const OptimizeJob& job,
                                               CliContext* context) {
  CampaignOptions options;
  ASSIGN_OR_RETURN(const absl::Duration budget, ParseDuration(job.budget));
  options.budget =
      budget / static_cast<int64_t>(std::max<size_t>(job.units.size(), 1));
  options.max_trials = job.trials;
  options.seed = job.seed;
  if (!job.keep_source)
    options.sources = RewriteSources(context->settings.Get("cuda_home"));
  if (job.frontend == "both") {
    options.frontends = {"clang", "nvrtc"};
  } else if (!job.frontend.empty()) {
    options.frontends = {job.frontend};
  }
  options.islands.islands = job.islands;
  options.cells = job.cells;
  ASSIGN_OR_RETURN(options.islands.archive.cells,
                   evolution::ParseCells(job.cells, job.seed));
  options.stop = InterruptFlag();
  if (!job.tolerance.empty()) {
    ASSIGN_OR_RETURN(options.tolerance, ParseTolerance(job.tolerance));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<UnitStore> store,
                   context->OpenStore(/*create=*/false));
  std::vector<UnitReader> units;
  for (const std::string& id : job.units) {
    ASSIGN_OR_RETURN(UnitReader unit, store->Open(id));
    units.push_back(std::move(unit));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, context->MakeDevice());
  // One variant that compilers choke on shall not take the budget.
  ASSIGN_OR_RETURN(
      const std::unique_ptr<CompilePool> pool,
      context->MakePool(std::max(options.budget / 4, kShortestCompileLimit)));
  if (device->facts().kind == "cpu") {
    std::fprintf(stderr,
                 "reprise: no GPU is used: kernels run on the cpu device, and "
                 "timings are this processor's\n");
  }
  OptimizeResults done;
  for (const UnitReader& unit : units) {
    const size_t before = done.results.size();
    ASSIGN_OR_RETURN(const std::string directory,
                     FreshDirectory(job.output, unit.id()));
    const absl::Status status = OptimizeOne(unit, *device, *pool, options,
                                            directory, context, &done.results);
    if (done.results.size() == before) RemoveIfBare(directory);
    // Nothing had been found that would be worth an error.
    if (options.stop->load() && done.results.size() == before) break;
    if (!status.ok()) {
      std::fprintf(stderr, "reprise: %s: %s\n", unit.id().c_str(),
                   std::string(status.message()).c_str());
      done.status.Update(status);
    }
    if (options.stop->load()) break;
  }
  return done;
}

namespace {

absl::Status RunOptimize(const OptimizeJob& job, CliContext* context) {
  ASSIGN_OR_RETURN(const OptimizeResults done, RunOptimizeJob(job, context));
  const std::vector<v1::Result>& results = done.results;
  bool better = false;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const v1::Result& result : results) {
    better = better || result.better();
    list.push_back(ResultJson(result));
    if (!context->json)
      std::printf("%s%s", &result == &results[0] ? "" : "\n",
                  ResultText(result).c_str());
  }
  if (context->json && !list.empty()) {
    PrintJson(list.size() == 1
                  ? list[0]
                  : nlohmann::ordered_json{{"schema", "reprise.results/1"},
                                           {"results", list}});
  }
  if (!better) context->exit_code = kExitNothingBetter;
  if (!done.status.ok()) context->exit_code = kExitFailed;
  if (InterruptFlag()->load()) context->exit_code = kExitInterrupted;
  return absl::OkStatus();
}

}  // namespace

void AddOptimizeVerb(CLI::App* app, CliContext* context) {
  CLI::App* verb = app->add_subcommand(
      "optimize", "search for a faster kernel that computes the same");
  auto job = std::make_shared<OptimizeJob>();
  verb->add_option("units", job->units,
                   "ids, or beginnings of them that only one unit has")
      ->required();
  verb->add_option("--budget", job->budget,
                   "time for the whole search, e.g. 20s, 10m, 2h; Ctrl-C ends "
                   "it sooner and keeps what was found")
      ->capture_default_str();
  verb->add_option("--trials", job->trials,
                   "stop after this many trials per unit; 0: when the budget "
                   "is spent")
      ->capture_default_str();
  verb->add_option("--seed", job->seed, "of every random choice")
      ->capture_default_str();
  verb->add_option("--tolerance", job->tolerance,
                   "how far floating-point results may be off where nothing is "
                   "declared: 1e-6, or abs=1e-8,rel=1e-5; "
                   "without it, bits must be equal wherever the unmodified "
                   "kernel is deterministic");
  verb->add_option("--frontend", job->frontend,
                   "compiler of variants: clang, nvrtc (NVIDIA's, whose passes "
                   "cannot be tuned), or both; both on a GPU, clang on the cpu "
                   "device where it is not given")
      ->check(CLI::IsMember({"clang", "nvrtc", "both"}));
  verb->add_flag("--keep-source", job->keep_source,
                 "do not edit the kernel: try other pipelines, code generation "
                 "and launches only");
  verb->add_option("--islands", job->islands,
                   "archives of sources that evolve apart and exchange their "
                   "best now and then; more than one is for long searches")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  verb->add_option("--cells", job->cells,
                   "what sources are kept apart by, the best of each cell: "
                   "kinds (of change), grid:MEASURE,..., or "
                   "cvt:NUMBER:MEASURE,...; measures: tokens, registers, "
                   "occupancy, shared_bytes, intensity, ir_distance")
      ->capture_default_str();
  verb->add_option("--output", job->output, "directory for results")
      ->capture_default_str();
  AddL2Option(verb, context);
  AddCommonOptions(verb, context, /*reports=*/true);
  verb->callback([job, context] {
    if (absl::Status status = RunOptimize(*job, context); !status.ok())
      context->Fail(status);
  });
}

}  // namespace reprise
