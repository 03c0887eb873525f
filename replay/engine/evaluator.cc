#include "replay/engine/evaluator.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/engine/compile_input.h"
#include "replay/engine/count_launch.h"
#include "replay/engine/launch_geometry.h"
#include "replay/engine/wall_clock_check.h"
#include "replay/unit/digest.h"

namespace reprise {
namespace {

// Spread seen between unmodified replays is taken this many times over as the
// tolerance.
constexpr double kLearnedToleranceFactor = 4;
constexpr absl::Duration kFirstReplayLimit = absl::Minutes(5);
constexpr size_t kPrintedShown = 200;  // bytes in a message
// Another kind of device may differ this much from the recording one before its
// own result becomes the reference.
constexpr double kOtherDeviceAbsolute = 1e-5;
constexpr double kOtherDeviceRelative = 1e-3;

uint64_t UnpredictableSeed() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

double MillisecondsSince(absl::Time start) {
  return absl::ToDoubleMilliseconds(absl::Now() - start);
}

const v1::CompiledKernelInfo* FindKernel(const v1::CompileReply& code,
                                         const std::string& symbol) {
  for (const v1::CompiledKernelInfo& kernel : code.kernels()) {
    if (kernel.symbol() == symbol) return &kernel;
  }
  return nullptr;
}

bool IsFloat(v1::ElementType type) {
  return type == v1::ELEMENT_TYPE_F16 || type == v1::ELEMENT_TYPE_BF16 ||
         type == v1::ELEMENT_TYPE_F32 || type == v1::ELEMENT_TYPE_F64;
}

bool BitsDiffer(const std::vector<v1::RangeErrors>& ranges) {
  return std::any_of(
      ranges.begin(), ranges.end(), [](const v1::RangeErrors& range) {
        return range.wrong_elements() > 0 || range.max_absolute() > 0;
      });
}

// Adds what `ranges` show to the spread seen so far, by address.
// FAILED_PRECONDITION where a range that is no floating-point one differs: no
// tolerance can be learned for it.
absl::Status NoteSpread(const std::vector<v1::RangeErrors>& ranges,
                        std::map<uint64_t, double>* spread) {
  for (const v1::RangeErrors& range : ranges) {
    if (range.wrong_elements() == 0 && range.max_absolute() == 0) continue;
    if (!IsFloat(range.element_type()) || range.outside_write_set() ||
        !std::isfinite(range.max_absolute())) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the unmodified kernel does not reproduce the recorded result in ",
          range.name(), ": got ", range.got(), ", expected ", range.expected(),
          "; no variant of it could be verified"));
    }
    double& seen = (*spread)[range.address()];
    seen = std::max(seen, range.max_absolute());
  }
  return absl::OkStatus();
}

// A baseline that misses the epilogue by more than it varies by itself is
// another program than the recorded one.
absl::Status ExplainedBySpread(const std::map<uint64_t, double>& from_epilogue,
                               const std::map<uint64_t, double>& spread) {
  for (const auto& [address, distance] : from_epilogue) {
    auto found = spread.find(address);
    const double seen = found == spread.end() ? 0 : found->second;
    if (distance <= kLearnedToleranceFactor * seen) continue;
    return absl::FailedPreconditionError(absl::StrFormat(
        "the unmodified kernel misses the recorded result at %#x by %g, but "
        "varies only by %g from replay to replay; state "
        "a tolerance if that is meant",
        address, distance, seen));
  }
  return absl::OkStatus();
}

// The unit with a tolerance on every range that shows spread and declares none.
UnitReader WithLearnedTolerances(const UnitReader& unit,
                                 const std::map<uint64_t, double>& spread) {
  v1::Unit manifest = unit.manifest();
  for (v1::MemoryRange& range : *manifest.mutable_memory()) {
    auto found = spread.find(range.address());
    if (found != spread.end() && !range.has_tolerance()) {
      range.mutable_tolerance()->set_absolute(kLearnedToleranceFactor *
                                              found->second);
    }
  }
  return unit.WithManifest(std::move(manifest));
}

// Blocks print in no order.
std::string SortedLines(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  std::sort(lines.begin(), lines.end());
  return absl::StrJoin(lines, "\n");
}

bool RecordedOnOtherKindOfDevice(const v1::Unit& unit,
                                 const DeviceFacts& facts) {
  return (unit.provenance().device() == "cpu") != (facts.kind == "cpu");
}

// Of the pairs from `begin` on, up to `end`.
RatioEstimate EstimateOf(const v1::Outcome& outcome, int begin, int end) {
  const std::vector<double> a(outcome.baseline_ns().begin() + begin,
                              outcome.baseline_ns().begin() + end);
  const std::vector<double> b(outcome.variant_ns().begin() + begin,
                              outcome.variant_ns().begin() + end);
  return EstimateRatio(a, b);
}

void SetSpeedup(StopReason reason, v1::Outcome* outcome) {
  const RatioEstimate estimate =
      EstimateOf(*outcome, 0, outcome->baseline_ns_size());
  v1::Speedup* speedup = outcome->mutable_speedup();
  speedup->set_ratio(estimate.ratio);
  speedup->set_ci95_low(estimate.low);
  speedup->set_ci95_high(estimate.high);
  speedup->set_pairs(static_cast<uint32_t>(estimate.pairs));
  speedup->set_stopped_by(StopReasonName(reason));
}

// Says where the ratio of one more round lies. Rounds end in front of these
// samples.
void SetAnew(const std::vector<int>& round_ends, v1::Outcome* outcome) {
  std::vector<double> log_ratios;
  int begin = 0;
  for (const int end : round_ends) {
    if (end > begin)
      log_ratios.push_back(std::log(EstimateOf(*outcome, begin, end).ratio));
    begin = end;
  }
  const std::optional<Interval95> one_more = PredictOneMore(log_ratios);
  if (!one_more.has_value()) return;
  outcome->mutable_speedup()->set_anew_low(std::exp(one_more->low));
  outcome->mutable_speedup()->set_anew_high(std::exp(one_more->high));
}

}  // namespace

struct Evaluator::Built {
  v1::CompileReply code;
  v1::LaunchConfig launch;
  std::unique_ptr<LoadedKernel> kernel;
  bool same_as_baseline = false;
};

Evaluator::Evaluator(const UnitReader& unit, Device& device, CompilePool& pool,
                     EvaluatorOptions options)
    : unit_(unit),
      device_(device),
      pool_(pool),
      options_(std::move(options)),
      clock_watch_(device.facts().clocks_unknown) {}

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::Create(
    const UnitReader& unit, Device& device, CompilePool& pool,
    EvaluatorOptions options) {
  auto evaluator = std::unique_ptr<Evaluator>(
      new Evaluator(unit, device, pool, std::move(options)));
  RETURN_IF_ERROR(evaluator->Initialize());
  return evaluator;
}

absl::Status Evaluator::Initialize() {
  baseline_.launch = unit_.manifest().launch();
  // Now, while the unit does not take the memory that measuring them needs.
  if (options_.remix) Ceilings();
  ASSIGN_OR_RETURN(resident_, device_.Load(unit_));
  RETURN_IF_ERROR(ChooseBaseline());
  RETURN_IF_ERROR(LearnBaseline());
  baseline_.clocks = clock_watch_.report();
  return options_.remix ? CheckFrontends() : absl::OkStatus();
}

// The application's own code where it runs, else the recorded IR.
absl::Status Evaluator::ChooseBaseline() {
  if (options_.compare_equal_code) return UseRecordedIr();
  absl::StatusOr<std::unique_ptr<LoadedKernel>> application =
      resident_->LoadApplicationKernel();
  if (application.ok()) {
    baseline_.kind = v1::BASELINE_KIND_APPLICATION_CODE;
    baseline_kernel_ = *std::move(application);
    if (options_.remix) {
      ASSIGN_OR_RETURN(input_, LoadCompileInput(unit_, device_));
    }
    return absl::OkStatus();
  }
  if (!absl::IsUnimplemented(application.status())) return application.status();
  LOG_DEBUG("the baseline is the recorded IR: {}",
            std::string(application.status().message()));
  return UseRecordedIr();
}

absl::Status Evaluator::UseRecordedIr() {
  baseline_.kind = v1::BASELINE_KIND_RECORDED_IR_DEFAULT_O3;
  RETURN_IF_ERROR(BuildRecordedIr());
  return LoadBaseline();
}

absl::Status Evaluator::BuildRecordedIr() {
  ASSIGN_OR_RETURN(input_, LoadCompileInput(unit_, device_));
  ASSIGN_OR_RETURN(baseline_.code, Rebuild("clang"));
  baseline_.frontends.push_back("clang");
  return absl::OkStatus();
}

void Evaluator::ExpectSourceVariants() {
  if (input_ != nullptr) pool_.Prepare(input_, device_.compile_target());
}

absl::StatusOr<v1::CompileReply> Evaluator::Rebuild(
    const std::string& frontend) {
  ASSIGN_OR_RETURN(v1::CompileReply code,
                   pool_.Compile(input_, UnmodifiedVariant(frontend),
                                 device_.compile_target()));
  if (code.kind() == v1::OUTCOME_KIND_OK) return code;
  return absl::FailedPreconditionError(absl::StrCat(
      "the unmodified kernel ", unit_.manifest().kernel().symbol(),
      " does not build for ", device_.facts().kind, ": ", code.diagnostics()));
}

// Variants are built like this one.
absl::Status Evaluator::CheckRebuilt(const v1::CompileReply& code,
                                     const std::string& frontend) {
  const std::string what =
      frontend == "clang"
          ? "the recorded IR, rebuilt,"
          : "the recorded source, rebuilt by NVIDIA's compiler,";
  ASSIGN_OR_RETURN(
      const std::unique_ptr<LoadedKernel> kernel,
      resident_->LoadKernel(code, unit_.manifest().kernel().symbol()));
  Verdict verdict;
  ASSIGN_OR_RETURN(const LaunchReport report,
                   RunOnce(*kernel, baseline_.launch, Timeout(), &verdict));
  if (report.kind != v1::OUTCOME_KIND_OK) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, " does not run: ", v1::OutcomeKind_Name(report.kind), ": ",
        report.diagnostics, "; the unit replays, but cannot be remixed"));
  }
  if (verdict.equal) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      what, " does not compute what the application's own code does: ",
      DescribeVerdict(verdict.ranges),
      "; the unit replays, but cannot be remixed unless a tolerance allows "
      "that difference"));
}

absl::Status Evaluator::CheckFrontends() {
  std::vector<std::string> wanted = options_.frontends;
  const bool first_only = wanted.empty();
  if (first_only) wanted = {"clang", "nvrtc"};
  for (const std::string& frontend : wanted) {
    if (first_only && !baseline_.frontends.empty()) break;
    RETURN_IF_ERROR(CheckWanted());
    // The baseline itself, where the application's code does not run.
    if (!baseline_.frontends.empty() && baseline_.frontends[0] == frontend)
      continue;
    absl::StatusOr<v1::CompileReply> code = Rebuild(frontend);
    const absl::Status status =
        code.ok() ? CheckRebuilt(*code, frontend) : code.status();
    if (status.ok()) {
      if (baseline_.frontends.empty()) baseline_.code = *std::move(code);
      baseline_.frontends.push_back(frontend);
      continue;
    }
    if (!absl::IsFailedPrecondition(status) && !absl::IsNotFound(status))
      return status;
    absl::StrAppend(&baseline_.refused_frontends,
                    baseline_.refused_frontends.empty() ? "" : "\n", frontend,
                    ": ", status.message());
  }
  // Clang may have built the baseline without being asked for.
  std::erase_if(baseline_.frontends, [&](const std::string& frontend) {
    return std::find(wanted.begin(), wanted.end(), frontend) == wanted.end();
  });
  if (!baseline_.frontends.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(baseline_.refused_frontends);
}

absl::Status Evaluator::CheckWanted() const {
  if (options_.give_up == nullptr || !*options_.give_up)
    return absl::OkStatus();
  return absl::UnavailableError("it was given up while it was loaded");
}

absl::StatusOr<LaunchReport> Evaluator::ReplayBaseline(Verdict* verdict) {
  const absl::Duration timeout =
      baseline_.median_time > absl::ZeroDuration()
          ? Timeout()
          : std::max(options_.minimum_timeout, kFirstReplayLimit);
  ASSIGN_OR_RETURN(
      LaunchReport report,
      RunOnce(*baseline_kernel_, baseline_.launch, timeout, verdict));
  if (report.kind != v1::OUTCOME_KIND_OK) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the unmodified kernel does not replay: ",
        v1::OutcomeKind_Name(report.kind), ": ", report.diagnostics));
  }
  return report;
}

absl::Status Evaluator::CompareWithEpilogue() {
  const bool foreign =
      RecordedOnOtherKindOfDevice(unit_.manifest(), device_.facts());
  if (foreign && !options_.tolerance.has_value()) {
    baseline_.tolerance.set_absolute(kOtherDeviceAbsolute);
    baseline_.tolerance.set_relative(kOtherDeviceRelative);
  }
  Verdict verdict;
  ASSIGN_OR_RETURN(LaunchReport report, ReplayBaseline(&verdict));
  baseline_.median_time = report.device_time;
  baseline_.matches_epilogue = !BitsDiffer(verdict.ranges);
  baseline_.ranges = verdict.ranges;
  baseline_equal_ = verdict.equal;
  if (!verdict.equal && (foreign || options_.tolerance.has_value())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the unmodified kernel misses the recorded result by more than ",
        "the tolerance: ", DescribeVerdict(verdict.ranges)));
  }
  if (!foreign) return absl::OkStatus();
  if (!options_.tolerance.has_value()) baseline_.tolerance.Clear();
  return resident_->AdoptReference();
}

absl::Status Evaluator::ReplayForSpread(std::map<uint64_t, double>* spread) {
  std::vector<absl::Duration> times;
  for (int replay = 0; replay < std::max(options_.learning_replays, 1);
       ++replay) {
    RETURN_IF_ERROR(CheckWanted());
    Verdict verdict;
    ASSIGN_OR_RETURN(LaunchReport report, ReplayBaseline(&verdict));
    times.push_back(report.device_time);
    const std::string printed = SortedLines(report.printf_output);
    if (replay == 0) {
      baseline_.printed = printed;
    } else if (baseline_.printed != printed) {
      baseline_.printed.reset();
    }
    if (BitsDiffer(verdict.ranges)) baseline_.deterministic = false;
    RETURN_IF_ERROR(NoteSpread(verdict.ranges, spread));
  }
  std::nth_element(times.begin(),
                   times.begin() + static_cast<long>(times.size() / 2),
                   times.end());
  baseline_.median_time = times[times.size() / 2];
  return absl::OkStatus();
}

absl::Status Evaluator::LearnBaseline() {
  if (options_.tolerance.has_value()) baseline_.tolerance = *options_.tolerance;
  RETURN_IF_ERROR(CompareWithEpilogue());
  const bool foreign =
      RecordedOnOtherKindOfDevice(unit_.manifest(), device_.facts());
  const bool adopted = foreign || !baseline_.matches_epilogue;
  std::map<uint64_t, double> from_epilogue, spread;
  if (!foreign) RETURN_IF_ERROR(NoteSpread(baseline_.ranges, &from_epilogue));
  // Spread is that between replays, so where the epilogue differs the first
  // replay stands in for it.
  if (!foreign && adopted) RETURN_IF_ERROR(resident_->AdoptReference());
  baseline_.deterministic = true;
  RETURN_IF_ERROR(ReplayForSpread(&spread));
  const bool covered = baseline_equal_ || options_.tolerance.has_value();
  if (!covered) RETURN_IF_ERROR(ExplainedBySpread(from_epilogue, spread));
  if (!spread.empty() && !options_.tolerance.has_value())
    unit_ = WithLearnedTolerances(unit_, spread);
  if (spread.empty() && (foreign || !adopted)) return absl::OkStatus();
  RETURN_IF_ERROR(Reload());
  if (!foreign) return absl::OkStatus();
  Verdict unused;
  RETURN_IF_ERROR(ReplayBaseline(&unused).status());
  return resident_->AdoptReference();
}

absl::Status Evaluator::LoadBaseline() {
  const bool application = baseline_.kind == v1::BASELINE_KIND_APPLICATION_CODE;
  ASSIGN_OR_RETURN(
      baseline_kernel_,
      application ? resident_->LoadApplicationKernel()
                  : resident_->LoadKernel(baseline_.code,
                                          unit_.manifest().kernel().symbol()));
  return absl::OkStatus();
}

absl::Status Evaluator::Reload() {
  baseline_kernel_.reset();
  resident_.reset();
  ASSIGN_OR_RETURN(resident_, device_.Load(unit_));
  return LoadBaseline();
}

absl::Duration Evaluator::Timeout() const {
  return std::max(options_.minimum_timeout,
                  baseline_.median_time * options_.timeout_factor);
}

absl::StatusOr<v1::CompileReply> Evaluator::Compile(
    const v1::Variant& variant) {
  if (input_ == nullptr) {
    v1::CompileReply refusal;
    refusal.set_kind(v1::OUTCOME_KIND_COMPILE_ERROR);
    refusal.set_diagnostics(
        "this unit was opened to replay the application's own code only: "
        "nothing can be built from it");
    return refusal;
  }
  const std::string frontend =
      variant.frontend().empty() ? "clang" : variant.frontend();
  if (std::find(baseline_.frontends.begin(), baseline_.frontends.end(),
                frontend) == baseline_.frontends.end()) {
    v1::CompileReply refusal;
    refusal.set_kind(v1::OUTCOME_KIND_COMPILE_ERROR);
    refusal.set_diagnostics(absl::StrCat(
        "front end ", frontend, " may not remix this unit here (",
        baseline_.refused_frontends.empty() ? "it was not asked for"
                                            : baseline_.refused_frontends,
        "); there is: ", absl::StrJoin(baseline_.frontends, ", ")));
    return refusal;
  }
  return pool_.Compile(input_, variant, device_.compile_target());
}

v1::LaunchConfig Evaluator::LaunchOf(const v1::Variant& variant) const {
  return VariantLaunch(unit_.manifest().launch(), variant.launch());
}

absl::StatusOr<LaunchReport> Evaluator::RunOnce(LoadedKernel& kernel,
                                                const v1::LaunchConfig& launch,
                                                absl::Duration timeout,
                                                Verdict* verdict) {
  RETURN_IF_ERROR(resident_->Restore());
  const uint64_t seed = UnpredictableSeed();
  RETURN_IF_ERROR(resident_->Poison(seed));
  LaunchOptions options;
  options.launch = launch;
  options.timeout = timeout;
  options.poison_seed = seed;
  options.verify_tolerance = baseline_.tolerance;
  options.l2 = l2_;
  options.sample_clocks = true;
  ASSIGN_OR_RETURN(LaunchReport report, resident_->Launch(kernel, options));
  clock_watch_.Note(report.clocks);
  if (report.kind != v1::OUTCOME_KIND_OK) return report;
  ASSIGN_OR_RETURN(*verdict, resident_->Verify(baseline_.tolerance));
  return report;
}

bool Evaluator::Build(const v1::Variant& variant,
                      const v1::CompileReply* at_hand, Built* built,
                      v1::Outcome* outcome) {
  const absl::Time start = absl::Now();
  absl::StatusOr<v1::CompileReply> code =
      at_hand != nullptr ? *at_hand : Compile(variant);
  outcome->mutable_stages()->set_compile_ms(MillisecondsSince(start));
  if (!code.ok()) {
    outcome->set_kind(v1::OUTCOME_KIND_INFRASTRUCTURE);
    outcome->set_diagnostics(std::string(code.status().message()));
    return false;
  }
  built->code = *std::move(code);
  outcome->set_machine_code_sha256(built->code.code_sha256());
  *outcome->mutable_code() = built->code.facts();
  const std::string& symbol = unit_.manifest().kernel().symbol();
  const v1::CompiledKernelInfo* kernel = FindKernel(built->code, symbol);
  if (built->code.kind() != v1::OUTCOME_KIND_OK || kernel == nullptr) {
    outcome->set_kind(built->code.kind() == v1::OUTCOME_KIND_OK
                          ? v1::OUTCOME_KIND_COMPILE_ERROR
                          : built->code.kind());
    outcome->set_diagnostics(
        kernel == nullptr && built->code.diagnostics().empty()
            ? absl::StrCat("the variant no longer defines kernel ", symbol)
            : built->code.diagnostics());
    return false;
  }
  built->launch = LaunchOf(variant);
  if (absl::Status status =
          CheckLaunch(built->launch, device_.facts(), *kernel);
      !status.ok()) {
    outcome->set_kind(v1::OUTCOME_KIND_INVALID_LAUNCH);
    outcome->set_diagnostics(std::string(status.message()));
    return false;
  }
  built->same_as_baseline =
      !options_.compare_equal_code &&
      baseline_.kind == v1::BASELINE_KIND_RECORDED_IR_DEFAULT_O3 &&
      built->code.code_sha256() == baseline_.code.code_sha256() &&
      SameLaunch(built->launch, baseline_.launch);
  const absl::Time load_start = absl::Now();
  absl::StatusOr<std::unique_ptr<LoadedKernel>> loaded =
      resident_->LoadKernel(built->code, symbol);
  outcome->mutable_stages()->set_load_ms(MillisecondsSince(load_start));
  if (!loaded.ok()) {
    outcome->set_kind(v1::OUTCOME_KIND_INFRASTRUCTURE);
    outcome->set_diagnostics(std::string(loaded.status().message()));
    return false;
  }
  built->kernel = *std::move(loaded);
  return true;
}

bool Evaluator::RunAndJudge(LoadedKernel& kernel,
                            const v1::LaunchConfig& launch,
                            v1::Outcome* outcome, LaunchTime* time) {
  Verdict verdict;
  absl::StatusOr<LaunchReport> report =
      RunOnce(kernel, launch, Timeout(), &verdict);
  if (!report.ok()) {
    outcome->set_kind(v1::OUTCOME_KIND_INFRASTRUCTURE);
    outcome->set_diagnostics(std::string(report.status().message()));
    return false;
  }
  if (report->kind != v1::OUTCOME_KIND_OK) {
    outcome->set_kind(report->kind);
    outcome->set_diagnostics(report->diagnostics);
    return false;
  }
  *outcome->mutable_errors() = {verdict.ranges.begin(), verdict.ranges.end()};
  if (!verdict.equal) {
    outcome->set_kind(v1::OUTCOME_KIND_WRONG_RESULT);
    outcome->set_diagnostics(DescribeVerdict(verdict.ranges));
    return false;
  }
  if (baseline_.printed.has_value() &&
      SortedLines(report->printf_output) != *baseline_.printed) {
    outcome->set_kind(v1::OUTCOME_KIND_WRONG_RESULT);
    outcome->set_diagnostics(absl::StrCat(
        "it prints something else (device printf): got \"",
        absl::CHexEscape(report->printf_output.substr(0, kPrintedShown)),
        "\", expected what the unmodified kernel prints, in any order of "
        "lines"));
    return false;
  }
  time->device_ns = absl::ToDoubleNanoseconds(report->device_time);
  time->wall_ns = absl::ToDoubleNanoseconds(report->wall_time);
  return true;
}

// False where the outcome is settled. A pair that does not count leaves no
// samples.
bool Evaluator::SamplePair(Built& built, bool baseline_first,
                           v1::Outcome* outcome) {
  LaunchTime baseline, variant;
  for (int position = 0; position < 2; ++position) {
    const bool baseline_turn = (position == 0) == baseline_first;
    if (baseline_turn) {
      v1::Outcome of_baseline;
      if (!RunAndJudge(*baseline_kernel_, baseline_.launch, &of_baseline,
                       &baseline)) {
        outcome->set_kind(v1::OUTCOME_KIND_INFRASTRUCTURE);
        outcome->set_diagnostics(
            absl::StrCat("the baseline failed beside the variant: ",
                         of_baseline.diagnostics()));
        return false;
      }
    } else if (!RunAndJudge(*built.kernel, built.launch, outcome, &variant)) {
      return false;
    }
  }
  if (!KeepPair(baseline, variant, outcome)) return true;
  outcome->add_baseline_ns(baseline.device_ns);
  outcome->add_variant_ns(variant.device_ns);
  if (baseline.wall_ns <= 0 || variant.wall_ns <= 0) return true;
  outcome->mutable_timing()->add_baseline_wall_ns(baseline.wall_ns);
  outcome->mutable_timing()->add_variant_wall_ns(variant.wall_ns);
  return true;
}

// A pair that the clocks speak against is measured again, a bounded number of
// times.
bool Evaluator::KeepPair(const LaunchTime& baseline, const LaunchTime& variant,
                         v1::Outcome* outcome) {
  const std::string objection = clock_watch_.TakeObjection();
  if (objection.empty()) return true;
  v1::Timing* timing = outcome->mutable_timing();
  if (timing->discarded_pairs_size() >= options_.most_discarded_pairs) {
    timing->set_doubtful_pairs(timing->doubtful_pairs() + 1);
    timing->set_doubt(objection);
    return true;
  }
  v1::DiscardedPair* discarded = timing->add_discarded_pairs();
  discarded->set_baseline_ns(baseline.device_ns);
  discarded->set_variant_ns(variant.device_ns);
  discarded->set_reason(objection);
  return false;
}

// Adds to the outcome's samples.
void Evaluator::Sample(Built& built, const StoppingRule& stopping,
                       absl::Duration time_limit, v1::Outcome* outcome) {
  const absl::Time start = absl::Now();
  StopReason reason = StopReason::kContinue;
  WallClockCheck wall;
  std::vector<double> a, b;
  const int before = outcome->baseline_ns_size();
  while (reason == StopReason::kContinue) {
    const int pair = outcome->baseline_ns_size() - before;
    if (options_.give_up != nullptr && *options_.give_up) {
      outcome->set_kind(v1::OUTCOME_KIND_INFRASTRUCTURE);
      outcome->set_diagnostics("it was given up while it was measured");
      return;
    }
    // ABBA: odd pairs run the variant first.
    if (!SamplePair(built, pair % 2 == 0, outcome)) return;
    const bool late = absl::Now() - start > time_limit;
    if (outcome->baseline_ns_size() - before == pair) {  // discarded
      if (late && pair >= stopping.minimum_pairs) break;
      continue;
    }
    a.push_back(outcome->baseline_ns(before + pair));
    b.push_back(outcome->variant_ns(before + pair));
    wall = CheckWallClock(*outcome);
    if (wall.undecided) continue;
    reason = DecideStop(stopping, a, b);
    const bool measured_enough = pair + 1 >= stopping.minimum_pairs;
    if (reason == StopReason::kContinue && measured_enough && late) break;
    // Three pairs of less than half the speed need no statistics.
    if (pair == 2 && EstimateRatio(a, b).high < 0.5)
      reason = StopReason::kClearLoser;
  }
  v1::Timing* timing = outcome->mutable_timing();
  *timing->mutable_clocks() = clock_watch_.report();
  timing->set_wall_excess_ns(wall.excess_ns);
  timing->set_wall_excess_allowed_ns(wall.allowed_ns);
  outcome->mutable_stages()->set_time_ms(outcome->stages().time_ms() +
                                         MillisecondsSince(start));
  SetSpeedup(reason, outcome);
  outcome->set_kind(wall.escapes ? v1::OUTCOME_KIND_REJECTED
                                 : v1::OUTCOME_KIND_OK);
  if (wall.escapes) outcome->set_diagnostics(DescribeEscape(wall));
  RejectImpossible(outcome);
}

v1::Outcome Evaluator::Evaluate(const v1::Variant& variant) {
  return EvaluateWith(variant, options_.stopping, options_.time_per_variant);
}

v1::Outcome Evaluator::VerifyOnly(const v1::Variant& variant,
                                  const v1::CompileReply* code) {
  StoppingRule none;
  none.maximum_pairs = 0;
  return EvaluateWith(variant, none, absl::ZeroDuration(), code);
}

v1::Outcome Evaluator::NewOutcome(const v1::Variant& variant) const {
  v1::Outcome outcome;
  outcome.set_variant_digest(VariantDigest(variant));
  outcome.set_baseline(baseline_.kind);
  outcome.set_device(device_.facts().kind);
  outcome.set_device_name(device_.facts().name);
  outcome.mutable_timing()->set_l2(l2_.value_or(device_.facts().l2));
  return outcome;
}

v1::Outcome Evaluator::OutcomeOfBuild(
    const v1::Variant& variant,
    const absl::StatusOr<v1::CompileReply>& failed) const {
  v1::Outcome outcome = NewOutcome(variant);
  outcome.set_kind(failed.ok() ? failed->kind()
                               : v1::OUTCOME_KIND_INFRASTRUCTURE);
  outcome.set_diagnostics(failed.ok() ? failed->diagnostics()
                                      : std::string(failed.status().message()));
  return outcome;
}

bool Evaluator::BuildAndVerify(const v1::Variant& variant,
                               const v1::CompileReply* code, Built* built,
                               v1::Outcome* outcome) {
  if (!Build(variant, code, built, outcome)) return false;
  const absl::Time start = absl::Now();
  LaunchTime time;
  if (!RunAndJudge(*built->kernel, built->launch, outcome, &time)) return false;
  outcome->mutable_stages()->set_verify_ms(MillisecondsSince(start));
  outcome->set_kind(v1::OUTCOME_KIND_OK);
  return true;
}

v1::Outcome Evaluator::EvaluateWith(const v1::Variant& variant,
                                    const StoppingRule& stopping,
                                    absl::Duration time_limit,
                                    const v1::CompileReply* code) {
  v1::Outcome outcome = NewOutcome(variant);
  clock_watch_ = ClockWatch(device_.facts().clocks_unknown);
  Built built;
  if (!BuildAndVerify(variant, code, &built, &outcome)) return outcome;
  if (stopping.maximum_pairs == 0) return outcome;
  if (built.same_as_baseline) {
    outcome.mutable_speedup()->set_ratio(1);
    outcome.mutable_speedup()->set_ci95_low(1);
    outcome.mutable_speedup()->set_ci95_high(1);
    outcome.mutable_speedup()->set_stopped_by(
        "same machine code and launch as the baseline");
    return outcome;
  }
  Sample(built, stopping, time_limit, &outcome);
  return outcome;
}

v1::Outcome Evaluator::Remeasure(const v1::Variant& variant,
                                 const FinalMeasurement& measurement) {
  StoppingRule fixed;
  fixed.minimum_pairs = std::min(5, measurement.pairs_per_round);
  fixed.maximum_pairs = measurement.pairs_per_round;
  fixed.relative_width = 0;
  fixed.loser_ratio = 0;
  l2_ = measurement.l2;
  const absl::Cleanup usual_l2 = [this] { l2_.reset(); };
  v1::Outcome outcome = NewOutcome(variant);
  clock_watch_ = ClockWatch(device_.facts().clocks_unknown);
  std::vector<int> round_ends;
  for (int round = 0; round < measurement.rounds; ++round) {
    if (absl::Status status = LoadBaseline(); !status.ok()) {
      outcome.set_kind(v1::OUTCOME_KIND_INFRASTRUCTURE);
      outcome.set_diagnostics(std::string(status.message()));
      return outcome;
    }
    Built built;
    if (!BuildAndVerify(variant, /*code=*/nullptr, &built, &outcome))
      return outcome;
    Sample(built, fixed, measurement.time_per_round, &outcome);
    if (outcome.kind() != v1::OUTCOME_KIND_OK) return outcome;
    round_ends.push_back(outcome.baseline_ns_size());
  }
  outcome.mutable_speedup()->set_stopped_by("fixed sample");
  SetAnew(round_ends, &outcome);
  return outcome;
}

const absl::StatusOr<v1::DeviceCeilings>& Evaluator::Ceilings() {
  if (!ceilings_.has_value()) ceilings_ = device_.MeasureCeilings();
  return *ceilings_;
}

const std::optional<WriteFloor>& Evaluator::Floor() {
  if (floor_sought_) return floor_;
  floor_sought_ = true;
  const absl::StatusOr<LaunchWork> work = WorkOf(unit_);
  if (!work.ok() || !Ceilings().ok()) {
    const absl::Status status = work.ok() ? Ceilings().status() : work.status();
    if (!absl::IsUnimplemented(status)) {
      LOG_WARNING(
          "no variant is held against what the device can write at most: {}",
          std::string(status.message()));
    }
    return floor_;
  }
  floor_ = WriteFloorOf(*work, *Ceilings());
  const double baseline_ns = absl::ToDoubleNanoseconds(baseline_.median_time);
  if (floor_.has_value() && IsFasterThanPossible(baseline_ns, *floor_)) {
    LOG_WARNING(
        "the unmodified kernel takes {:.4g} ms where the measured ceilings "
        "allow no less than {:.4g} ms, so no variant is judged by them",
        baseline_ns / 1e6, floor_->ns / 1e6);
    floor_.reset();
  }
  return floor_;
}

void Evaluator::RejectImpossible(v1::Outcome* outcome) {
  if (outcome->kind() != v1::OUTCOME_KIND_OK || outcome->variant_ns().empty())
    return;
  const double median =
      UpperMedian({outcome->variant_ns().begin(), outcome->variant_ns().end()});
  if (!Floor().has_value() || !IsFasterThanPossible(median, *Floor())) return;
  outcome->set_kind(v1::OUTCOME_KIND_REJECTED);
  outcome->set_diagnostics(DescribeTooFast(median, *Floor()));
}

v1::Counters Evaluator::CountBaseline() {
  const bool application = baseline_.kind == v1::BASELINE_KIND_APPLICATION_CODE;
  return CountLaunch(device_, unit_, application ? nullptr : &baseline_.code,
                     baseline_.launch, Timeout());
}

v1::Counters Evaluator::Count(const v1::Variant& variant) {
  const absl::StatusOr<v1::CompileReply> code = Compile(variant);
  if (!code.ok()) return NothingCounted(std::string(code.status().message()));
  if (code->kind() != v1::OUTCOME_KIND_OK)
    return NothingCounted(code->diagnostics());
  return CountLaunch(device_, unit_, &*code, LaunchOf(variant), Timeout());
}

std::string OutcomeName(v1::OutcomeKind kind) {
  constexpr size_t kPrefix = sizeof("OUTCOME_KIND_") - 1;
  return v1::OutcomeKind_Name(kind).substr(kPrefix);
}

v1::Variant UnmodifiedVariant(const std::string& frontend) {
  v1::Variant variant;
  if (frontend != "clang") variant.set_frontend(frontend);
  return variant;
}

std::string DescribeVerdict(const std::vector<v1::RangeErrors>& ranges) {
  for (const v1::RangeErrors& range : ranges) {
    if (range.wrong_elements() == 0 && !range.outside_write_set()) continue;
    return absl::StrFormat(
        "%s[%d]: got %s, expected %s; %d of %d elements differ%s, max absolute "
        "error %.3g, max relative "
        "error %.3g",
        range.name(), range.first_wrong_element(), range.got(),
        range.expected(), range.wrong_elements(), range.compared_elements(),
        range.outside_write_set() ? " outside what the recorded launch wrote"
                                  : "",
        range.max_absolute(), range.max_relative());
  }
  return "equal";
}

}  // namespace reprise
