#include "services/coordinator/local_campaign.h"

#include <algorithm>

#include "bayesopt/trial_space.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/engine/compile_input.h"
#include "services/coordinator/local_campaign_internal.h"
#include "services/coordinator/tuning_terms.h"

namespace reprise {
namespace {

// Share of the budget: the rest is for confirming the best.
constexpr double kSearchShare = 0.65;

}  // namespace

LocalCampaign::LocalCampaign(const UnitReader& unit, Device& device,
                             CompilePool& pool, CampaignOptions options,
                             CampaignObserver observer)
    : unit_(unit),
      device_(device),
      pool_(pool),
      options_(std::move(options)),
      observer_(std::move(observer)) {}

LocalCampaign::~LocalCampaign() = default;

bool LocalCampaign::Stopped() const {
  return options_.stop != nullptr && options_.stop->load();
}

bool LocalCampaign::OutOfBudget() const {
  if (Stopped()) return true;
  if (options_.max_trials != 0 && progress_.trials >= options_.max_trials)
    return true;
  return absl::Now() - start_ > options_.budget * kSearchShare;
}

void LocalCampaign::Report(const std::string& phase) {
  progress_.phase = phase;
  progress_.elapsed = absl::Now() - start_;
  progress_.budget = options_.budget;
  if (observer_.progress) observer_.progress(progress_);
}

absl::StatusOr<std::unique_ptr<bayesopt::Optimizer>> LocalCampaign::NewTuner(
    uint64_t salt) {
  bayesopt::Optimizer::Options options;
  options.seed = options_.seed * 1000003 + salt;
  options.seeds = bayesopt::SeedConfigurations(*space_);
  // The recorded source as it is built is the baseline, and known.
  options.start_with_default = salt != 0;
  return bayesopt::Optimizer::Create(space_, std::move(options));
}

absl::Status LocalCampaign::PrepareEmitter() {
  if (options_.sources == nullptr) return absl::OkStatus();
  evolution::Islands::Options islands = options_.islands;
  islands.seed = options_.seed;
  ASSIGN_OR_RETURN(islands_, evolution::Islands::Create(std::move(islands)));
  SourceOptions options;
  options.allow_inexact = AllowsInexact(evaluator_->unit().manifest(),
                                        evaluator_->baseline().tolerance);
  options.seed = options_.seed;
  ASSIGN_OR_RETURN(ProposedSources proposed,
                   options_.sources(unit_, *input_, options));
  emitter_ = std::move(proposed.emitter);
  evolvable_ = std::move(proposed.evolvable);
  return absl::OkStatus();
}

absl::Status LocalCampaign::Prepare() {
  EvaluatorOptions options;
  options.tolerance = options_.tolerance;
  options.compare_equal_code = options_.compare_equal_code;
  options.frontends = options_.frontends;
  if (options.frontends.empty() && device_.facts().kind != "cpu")
    options.frontends = {"clang", "nvrtc"};
  options.stopping = SearchStopping();
  options.time_per_variant = std::clamp(
      options_.budget / 40, absl::Milliseconds(150), absl::Seconds(3));
  ASSIGN_OR_RETURN(evaluator_,
                   Evaluator::Create(unit_, device_, pool_, options));
  // On the cpu device kernels would share the processor with the compilers.
  if (device_.facts().kind != "cpu") evaluator_->ExpectSourceVariants();
  ASSIGN_OR_RETURN(input_, LoadCompileInput(unit_));
  const BaselineReport& baseline = evaluator_->baseline();
  progress_.baseline_ms = absl::ToDoubleMilliseconds(baseline.median_time);
  const bayesopt::TrialSpaceOptions space =
      SpaceOptionsOf(evaluator_->unit().manifest(), baseline, device_.facts());
  if (!space.has_clang) {
    frontend_ = "nvrtc";
    LOG_WARNING(
        "passes cannot be tuned for {}, since only NVIDIA's compiler "
        "builds it: {}",
        unit_.id(), baseline.refused_frontends);
  } else if (!baseline.refused_frontends.empty()) {
    LOG_INFO("{}: not used: {}", unit_.id(), baseline.refused_frontends);
  }
  ASSIGN_OR_RETURN(space_, bayesopt::BuildTrialSpace(space));
  mapper_ =
      std::make_unique<bayesopt::ParameterMapper>(unit_.manifest().launch());
  if (!Stopped()) RETURN_IF_ERROR(PrepareEmitter());
  auto recorded_source = std::make_unique<Source>();
  ASSIGN_OR_RETURN(recorded_source->tuner, NewTuner(0));
  recorded_source->best_log_ratio = 0;
  sources_.push_back(std::move(recorded_source));
  return absl::OkStatus();
}

absl::StatusOr<v1::Result> LocalCampaign::Run() {
  start_ = absl::Now();
  Report("baseline");
  const absl::Time first = start_;
  RETURN_IF_ERROR(Prepare());
  start_ = absl::Now();  // the budget is the search's
  Search();
  const BaselineReport& baseline = evaluator_->baseline();
  v1::Result result;
  result.set_format_version(1);
  result.set_unit_id(unit_.id());
  result.set_kernel_symbol(unit_.manifest().kernel().symbol());
  result.set_kernel_display_name(unit_.manifest().kernel().display_name());
  result.set_device(device_.facts().kind);
  result.set_device_name(device_.facts().name);
  result.set_baseline(baseline.kind);
  *result.mutable_recorded_launch() = baseline.launch;
  *result.mutable_tuned_launch() = baseline.launch;
  *result.mutable_code() = baseline.code;
  *result.mutable_tolerance() = baseline.tolerance;
  result.set_deterministic(baseline.deterministic);
  result.set_matches_epilogue(baseline.matches_epilogue);
  result.set_seed(options_.seed);
  result.set_verified(true);  // the baseline itself was
  result.set_interrupted(Stopped());
  result.set_l2(device_.facts().l2);
  *result.mutable_baseline_clocks() = baseline.clocks;
  result.set_decision_confidence(kDecisionConfidence);
  result.set_least_ratio(kLeastRatio);
  RETURN_IF_ERROR(Confirm(&result));
  const std::vector<double> baseline_ns(result.outcome().baseline_ns().begin(),
                                        result.outcome().baseline_ns().end());
  result.set_baseline_ms(baseline_ns.empty()
                             ? absl::ToDoubleMilliseconds(baseline.median_time)
                             : UpperMedian(baseline_ns) / 1e6);
  result.set_best_ms(result.better() ? result.baseline_ms() /
                                           result.outcome().speedup().ratio()
                                     : result.baseline_ms());
  if (islands_ != nullptr) FillArchive(result.mutable_archive());
  result.set_trials(progress_.trials);
  result.set_source_variants(progress_.source_variants);
  for (const auto& [kind, count] : progress_.outcomes)
    (*result.mutable_outcomes())[kind] = count;
  result.set_seconds(absl::ToDoubleSeconds(absl::Now() - first));
  return result;
}

}  // namespace reprise
