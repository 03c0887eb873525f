// reprise replay: does a unit still compute what was recorded, and how fast?
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replay/base/status_macros.h"
#include "replay/engine/clock_watch.h"
#include "replay/engine/evaluator.h"
#include "services/cli/context.h"
#include "services/coordinator/counters_report.h"
#include "services/coordinator/result_files.h"
#include "services/coordinator/timing_report.h"

namespace reprise {
namespace {

struct ReplayOptions {
  std::string unit;
  std::string result;
  std::string pipeline;
  std::string frontend;
  std::string tolerance;
  int iterations = 10;
  bool counters = false;
};

// What --counters asks for.
struct Counted {
  v1::Counters baseline;
  std::optional<v1::Counters> variant;
  BoundsReport bounds;
};

absl::StatusOr<Counted> Count(Evaluator& evaluator,
                              const std::optional<v1::Variant>& variant,
                              v1::L2Policy l2) {
  Counted counted;
  ASSIGN_OR_RETURN(const LaunchWork work, WorkOf(evaluator.unit()));
  counted.baseline = evaluator.CountBaseline();
  if (variant.has_value()) counted.variant = evaluator.Count(*variant);
  std::optional<double> cold_ns;
  if (l2 != v1::L2_POLICY_WARM)
    cold_ns = absl::ToDoubleNanoseconds(evaluator.baseline().median_time);
  counted.bounds =
      BoundsOf(work, counted.baseline, evaluator.Ceilings(), cold_ns);
  return counted;
}

void AddCounted(const Counted& counted, nlohmann::ordered_json* json) {
  (*json)["counters"] = {{"baseline", CountersJson(counted.baseline)}};
  if (counted.variant.has_value())
    (*json)["counters"]["variant"] = CountersJson(*counted.variant);
  json->update(BoundsJson(counted.bounds));
}

std::string VerdictWord(const BaselineReport& baseline) {
  if (baseline.matches_epilogue) return "bit-exact";
  return "within tolerance";
}

nlohmann::ordered_json BaselineJson(const UnitReader& unit,
                                    const BaselineReport& baseline,
                                    const DeviceFacts& device) {
  nlohmann::ordered_json json = {
      {"schema", "reprise.replay/1"},
      {"unit", unit.id()},
      {"device", device.kind},
      {"device_name", device.name},
      {"baseline_ms", absl::ToDoubleMilliseconds(baseline.median_time)},
      {"matches_epilogue", baseline.matches_epilogue},
      {"deterministic", baseline.deterministic},
      {"verdict", VerdictWord(baseline)},
      {"l2", L2Text(device.l2)},
      {"clocks", ClocksJson(baseline.clocks)}};
  return json;
}

void AddOutcome(const v1::Outcome& outcome, nlohmann::ordered_json* json) {
  (*json)["outcome"] = OutcomeName(outcome.kind());
  (*json)["diagnostics"] = outcome.diagnostics();
  (*json)["compile_ms"] = outcome.stages().compile_ms();
  if (outcome.baseline_ns_size() > 0) (*json)["timing"] = TimingJson(outcome);
  if (outcome.kind() != v1::OUTCOME_KIND_OK) return;
  AddSpeedup(outcome.speedup(), json);
}

void PrintText(const UnitReader& unit, const BaselineReport& baseline,
               const DeviceFacts& device,
               const std::optional<v1::Outcome>& outcome) {
  std::printf("unit       %s\n", unit.id().c_str());
  std::printf("device     %s (%s)\n", device.kind.c_str(), device.name.c_str());
  std::printf("baseline   %.4g ms, %s, %s\n",
              absl::ToDoubleMilliseconds(baseline.median_time),
              VerdictWord(baseline).c_str(),
              baseline.deterministic ? "deterministic"
                                     : "varies from replay to replay");
  if (!outcome.has_value() || outcome->baseline_ns_size() == 0) {
    std::printf("timing     %s; %s\n", L2Text(device.l2).c_str(),
                ClocksText(baseline.clocks).c_str());
  } else {
    std::printf("timing     %s\n", TimingText(*outcome).c_str());
  }
  if (!outcome.has_value()) return;
  if (outcome->kind() != v1::OUTCOME_KIND_OK) {
    std::printf("variant    %s: %s\n", OutcomeName(outcome->kind()).c_str(),
                outcome->diagnostics().c_str());
    return;
  }
  const v1::Speedup& speedup = outcome->speedup();
  std::printf(
      "variant    %.3fx, 95%% interval %.3f to %.3f, %u interleaved pairs, "
      "verified in every launch (%s)\n",
      speedup.ratio(), speedup.ci95_low(), speedup.ci95_high(), speedup.pairs(),
      speedup.stopped_by().c_str());
}

// A winner rewrites the sources of its kernel; on another one it would do
// nothing.
absl::Status CheckKernel(const v1::Result& result, const UnitReader& unit) {
  const v1::Kernel& kernel = unit.manifest().kernel();
  if (result.kernel_symbol() == kernel.symbol()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "got a result for ", result.kernel_display_name(), ", but the unit ",
      unit.id(), " is of ", kernel.display_name(), "; the result is of unit ",
      result.unit_id()));
}

absl::Status RunReplay(const ReplayOptions& options, CliContext* context) {
  EvaluatorOptions evaluator_options;
  evaluator_options.learning_replays = options.iterations;
  if (!options.tolerance.empty()) {
    ASSIGN_OR_RETURN(evaluator_options.tolerance,
                     ParseTolerance(options.tolerance));
  }
  ASSIGN_OR_RETURN(const UnitReader unit, context->OpenUnit(options.unit));
  std::optional<v1::Variant> variant;
  if (!options.result.empty()) {
    ASSIGN_OR_RETURN(const v1::Result result, ReadResult(options.result));
    RETURN_IF_ERROR(CheckKernel(result, unit));
    variant = result.variant();
  }
  if (!options.pipeline.empty()) {
    if (!variant.has_value()) variant.emplace();
    variant->set_pipeline(options.pipeline);
  }
  if (!options.frontend.empty()) {
    if (!variant.has_value()) variant.emplace();
    variant->set_frontend(options.frontend == "clang" ? "" : options.frontend);
  }
  if (variant.has_value())
    evaluator_options.frontends = {
        variant->frontend().empty() ? "clang" : variant->frontend()};
  evaluator_options.remix = variant.has_value();
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, context->MakeDevice());
  ASSIGN_OR_RETURN(const std::unique_ptr<CompilePool> pool,
                   context->MakePool());
  ASSIGN_OR_RETURN(const std::unique_ptr<Evaluator> evaluator,
                   Evaluator::Create(unit, *device, *pool, evaluator_options));
  std::optional<v1::Outcome> outcome;
  if (variant.has_value()) {
    StoppingRule rule;
    rule.minimum_pairs = options.iterations;
    rule.maximum_pairs = std::max(options.iterations, rule.maximum_pairs);
    outcome = evaluator->EvaluateWith(*variant, rule, absl::Seconds(30));
    if (outcome->kind() != v1::OUTCOME_KIND_OK)
      context->exit_code = kExitFailed;
  }
  std::optional<Counted> counted;
  if (options.counters) {
    // A variant that does not run right has nothing worth counting.
    const bool good =
        outcome.has_value() && outcome->kind() == v1::OUTCOME_KIND_OK;
    ASSIGN_OR_RETURN(counted, Count(*evaluator, good ? variant : std::nullopt,
                                    device->facts().l2));
  }
  if (context->json) {
    nlohmann::ordered_json json =
        BaselineJson(unit, evaluator->baseline(), device->facts());
    if (outcome.has_value()) AddOutcome(*outcome, &json);
    if (counted.has_value()) AddCounted(*counted, &json);
    PrintJson(json);
  } else {
    PrintText(unit, evaluator->baseline(), device->facts(), outcome);
    if (counted.has_value()) {
      std::fputs(CountersTable(counted->baseline, counted->variant).c_str(),
                 stdout);
      std::fputs(BoundsText(counted->bounds).c_str(), stdout);
    }
  }
  return absl::OkStatus();
}

}  // namespace

void AddReplayVerb(CLI::App* app, CliContext* context) {
  CLI::App* verb = app->add_subcommand(
      "replay", "run a unit again and compare with what was recorded");
  auto options = std::make_shared<ReplayOptions>();
  verb->add_option("unit", options->unit,
                   "id, or a beginning of it that only one unit has")
      ->required();
  verb->add_option(
      "--result", options->result,
      "also replay the winner of this result directory, interleaved");
  verb->add_option(
      "--pipeline", options->pipeline,
      "also replay the kernel through this LLVM pipeline, interleaved");
  verb->add_option("--frontend", options->frontend,
                   "also replay the kernel as this compiler builds it, "
                   "interleaved: clang, or nvrtc (NVIDIA's, whose passes "
                   "cannot be tuned)")
      ->check(CLI::IsMember({"clang", "nvrtc"}));
  verb->add_option("--iterations", options->iterations, "replays, or pairs")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  verb->add_option("--tolerance", options->tolerance,
                   "for floating-point results: 1e-6, or abs=1e-8,rel=1e-5");
  AddL2Option(verb, context);
  verb->add_flag("--counters", options->counters,
                 "also count what the GPU does in a launch, in launches of "
                 "their own, and say how near it comes to what the device can "
                 "do (docs/counters.md)");
  AddCommonOptions(verb, context, /*reports=*/true);
  verb->callback([options, context] {
    if (absl::Status status = RunReplay(*options, context); !status.ok())
      context->Fail(status);
  });
}

}  // namespace reprise
