#include "services/coordinator/local_campaign.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "bayesopt/trial_space.h"
#include "evolution/unified_diff.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/engine/compile_input.h"
#include "replay/engine/launch_geometry.h"
#include "replay/engine/perturb.h"
#include "services/coordinator/tuning_terms.h"

namespace reprise {
namespace {

// Shares of the budget: search, then confirmation of the best.
constexpr double kSearchShare = 0.65;
constexpr size_t kConfirmed = 4;
// Of the best, so many are measured again in search of kConfirmed.
constexpr size_t kMeasuredAgain = 8;
// Somebody waits: the time for each confirmation.
constexpr absl::Duration kHurriedConfirmation = absl::Seconds(1);
constexpr size_t kTunedSources = 4;
// A simpler winner may be this much slower.
constexpr double kAsFast = 0.99;

double Milliseconds(double nanoseconds) { return nanoseconds / 1e6; }

std::string OutcomeName(v1::OutcomeKind kind) {
  return v1::OutcomeKind_Name(kind).substr(std::string("OUTCOME_KIND_").size());
}

// "Unroll the loop at a.cu:3 by 4; pipeline=default<O2>"; what says nothing is
// left out.
std::string JoinDescriptions(std::string source, const std::string& build) {
  while (!source.empty() && source.back() == '.') source.pop_back();
  if (source.empty()) return build;
  return build == "as built" ? source : absl::StrCat(source, "; ", build);
}

// Several candidates are measured again and the best is taken, so each has to
// be faster by more than the reported interval says. A gain below a hundredth
// is not told from what loading the same code elsewhere does.
constexpr double kDecisionConfidence = 0.999;
constexpr double kLeastRatio = 1.01;
bool SurelyFaster(const v1::Outcome& outcome) {
  if (outcome.kind() != v1::OUTCOME_KIND_OK) return false;
  const std::vector<double> a(outcome.baseline_ns().begin(),
                              outcome.baseline_ns().end());
  const std::vector<double> b(outcome.variant_ns().begin(),
                              outcome.variant_ns().end());
  const RatioEstimate estimate = EstimateRatio(a, b, kDecisionConfidence);
  return estimate.low > 1 && estimate.ratio >= kLeastRatio;
}

void Keep(const char* phase, const std::string& description,
          const v1::Outcome& outcome, v1::Result* result) {
  v1::Remeasurement* measured = result->add_remeasurements();
  measured->set_phase(phase);
  measured->set_description(description);
  *measured->mutable_outcome() = outcome;
}

// What verification allows in a range, as UnitMemory::Verify does.
v1::Tolerance AllowedIn(const v1::RangeErrors& errors, const v1::Unit& unit,
                        const v1::Tolerance& default_tolerance) {
  const bool floating = errors.element_type() >= v1::ELEMENT_TYPE_F16 &&
                        errors.element_type() <= v1::ELEMENT_TYPE_F64;
  if (!floating) return v1::Tolerance();
  for (const v1::MemoryRange& range : unit.memory()) {
    if (range.address() == errors.address() && range.has_tolerance())
      return range.tolerance();
  }
  return default_tolerance;
}

}  // namespace

struct LocalCampaign::Source {
  evolution::Proposal proposal;
  std::unique_ptr<bayesopt::Optimizer> tuner;
  double best_log_ratio = -INFINITY;
  uint64_t trials = 0;
};

struct LocalCampaign::Candidate {
  v1::Variant variant;
  std::string description;
  evolution::Proposal proposal;  // the source; id 0: as recorded
  double log_low = 0;
};

struct LocalCampaign::Job {
  v1::Variant variant;
  std::string description;
  Source* source = nullptr;
  uint64_t trial = 0;  // of the source's tuner; 0: none
};

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

v1::Variant LocalCampaign::WithSources(
    const evolution::FileContents& files) const {
  v1::Variant variant;
  variant.set_frontend(frontend_);
  for (const auto& [path, content] : files) {
    v1::SourceOverlay* overlay = variant.add_sources();
    overlay->set_path(path);
    overlay->set_content(content);
  }
  return variant;
}

// The recorded source by every front end; new sources are compiled by the one
// whose code is faster.
void LocalCampaign::PickFrontend() {
  const std::vector<std::string>& frontends = evaluator_->baseline().frontends;
  if (frontends.size() < 2) return;
  double best = 0;
  std::string faster;
  for (const std::string& frontend : frontends) {
    if (OutOfBudget()) return;
    frontend_ = frontend == "clang" ? "" : frontend;
    const v1::Outcome outcome = EvaluateJob(
        {WithSources({}), "compiled by " + frontend, sources_[0].get(), 0});
    if (outcome.kind() == v1::OUTCOME_KIND_OK &&
        outcome.speedup().ratio() > best) {
      best = outcome.speedup().ratio();
      faster = frontend_;
    }
  }
  frontend_ = faster;
}

void LocalCampaign::CompileAhead(const std::vector<Job>& jobs) {
  std::vector<std::future<void>> running;
  for (const Job& job : jobs) {
    // Results stay in the pool's cache; errors come up again when the job is
    // evaluated.
    running.push_back(std::async(std::launch::async, [this, &job] {
      (void)evaluator_->Compile(job.variant).status();
    }));
  }
  for (std::future<void>& compile : running) compile.wait();
}

v1::Outcome LocalCampaign::EvaluateJob(const Job& job) {
  v1::Outcome outcome = evaluator_->Evaluate(job.variant);
  ++progress_.trials;
  ++progress_.outcomes[OutcomeName(outcome.kind())];
  Remember(job, outcome);
  return outcome;
}

void LocalCampaign::Remember(const Job& job, const v1::Outcome& outcome) {
  TrialRecord record;
  record.number = progress_.trials;
  record.variant = job.variant;
  record.description = job.description;
  if (outcome.kind() == v1::OUTCOME_KIND_OK) {
    const double log_ratio = std::log(outcome.speedup().ratio());
    candidates_.push_back(
        {job.variant, job.description,
         job.source == nullptr ? evolution::Proposal() : job.source->proposal,
         std::log(std::max(outcome.speedup().ci95_low(), 1e-9))});
    if (job.source != nullptr)
      job.source->best_log_ratio =
          std::max(job.source->best_log_ratio, log_ratio);
    if (outcome.speedup().ratio() > progress_.best_ratio &&
        outcome.speedup().ci95_low() > 1) {
      progress_.best_ratio = outcome.speedup().ratio();
      progress_.best_description = job.description;
      record.improved = true;
    }
  }
  record.outcome = outcome;
  if (observer_.trial) observer_.trial(record);
  Report("search");
}

// The source whose best build is fastest, but every source that is in the
// running gets its share of trials.
LocalCampaign::Source* LocalCampaign::PickSource() {
  std::vector<Source*> ranked;
  for (const auto& source : sources_) ranked.push_back(source.get());
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Source* a, const Source* b) {
                     return a->best_log_ratio > b->best_log_ratio;
                   });
  ranked.resize(std::min(ranked.size(), kTunedSources));
  uint64_t total = 1;
  for (const Source* source : ranked) total += source->trials;
  Source* best = nullptr;
  double best_score = -INFINITY;
  for (Source* source : ranked) {
    const double score =
        source->best_log_ratio +
        0.2 * std::sqrt(std::log(static_cast<double>(total)) /
                        (1.0 + static_cast<double>(source->trials)));
    if (score > best_score) {
      best = source;
      best_score = score;
    }
  }
  return best;
}

bool LocalCampaign::TuneRound() {
  Source* source = PickSource();
  if (source->tuner == nullptr) {
    auto tuner = NewTuner(source->proposal.id);
    if (!tuner.ok()) return false;
    source->tuner = *std::move(tuner);
  }
  const v1::Variant base = WithSources(source->proposal.files);
  std::vector<Job> jobs;
  for (const bayesopt::Trial& trial : source->tuner->Ask(options_.batch)) {
    absl::StatusOr<v1::Variant> variant = mapper_->ToVariant(
        source->tuner->space().ToAssignment(trial.configuration), base);
    if (!variant.ok()) continue;
    std::string description = JoinDescriptions(source->proposal.description,
                                               mapper_->Describe(*variant));
    jobs.push_back(
        {*std::move(variant), std::move(description), source, trial.id});
  }
  CompileAhead(jobs);
  for (const Job& job : jobs) {
    if (OutOfBudget()) break;
    absl::StatusOr<v1::CompileReply> code = evaluator_->Compile(job.variant);
    if (code.ok() && code->kind() == v1::OUTCOME_KIND_OK) {
      const std::string key =
          absl::StrCat(code->code_sha256(),
                       DescribeLaunch(evaluator_->LaunchOf(job.variant)));
      auto claim = source->tuner->ClaimKey(job.trial, key);
      if (claim.ok() && !claim->first) {
        ++progress_.outcomes["SAME_CODE"];
        continue;
      }
    }
    const v1::Outcome outcome = EvaluateJob(job);
    ++source->trials;
    const std::vector<double> samples = outcome.kind() == v1::OUTCOME_KIND_OK
                                            ? CostSamples(outcome)
                                            : std::vector<double>();
    if (absl::Status told =
            source->tuner->Tell(job.trial, outcome.kind(), samples);
        !told.ok()) {
      LOG_WARNING("the tuner refused an outcome: {}",
                  std::string(told.message()));
    }
  }
  return !jobs.empty();
}

bool LocalCampaign::EmitRound() {
  if (emitter_ == nullptr) return false;
  absl::StatusOr<std::vector<evolution::Proposal>> proposals =
      emitter_->Ask(archive_, options_.batch);
  if (!proposals.ok() || proposals->empty()) return false;
  std::vector<Job> jobs;
  for (evolution::Proposal& proposal : *proposals) {
    proposal.id = next_proposal_++;
    auto source = std::make_unique<Source>();
    source->proposal = proposal;
    jobs.push_back({WithSources(proposal.files),
                    JoinDescriptions(proposal.description, "as built"),
                    source.get(), 0});
    sources_.push_back(std::move(source));
    ++progress_.source_variants;
  }
  CompileAhead(jobs);
  for (const Job& job : jobs) {
    if (OutOfBudget()) break;
    const v1::Outcome outcome = EvaluateJob(job);
    evolution::Evaluation evaluation;
    evaluation.kind = outcome.kind();
    evaluation.diagnostics = outcome.diagnostics();
    if (outcome.kind() == v1::OUTCOME_KIND_OK) {
      evaluation.objective = std::log(outcome.speedup().ratio());
      evaluation.objective_low =
          std::log(std::max(outcome.speedup().ci95_low(), 1e-9));
      // Its cells are kinds of change, which need no measures.
      archive_.Add(job.source->proposal, evaluation.objective)
          .status()
          .IgnoreError();
    }
    emitter_->Tell(job.source->proposal, evaluation);
  }
  return true;
}

void LocalCampaign::Search() {
  PickFrontend();
  bool tuning = options_.tune, emitting = true;
  while (!OutOfBudget() && (tuning || emitting)) {
    emitting = EmitRound();
    if (tuning && !OutOfBudget()) tuning = TuneRound();
  }
}

absl::Status LocalCampaign::FillWinner(const Candidate& winner,
                                       const v1::Outcome& outcome,
                                       v1::Result* result) {
  result->set_better(true);
  result->set_verified(true);
  *result->mutable_variant() = winner.variant;
  *result->mutable_outcome() = outcome;
  if (!Stopped()) {
    *result->mutable_outcome()->mutable_counters() =
        evaluator_->Count(winner.variant);
  }
  for (const v1::RangeErrors& range : outcome.errors()) {
    *result->add_range_tolerances() = AllowedIn(
        range, evaluator_->unit().manifest(), evaluator_->baseline().tolerance);
  }
  *result->mutable_tuned_launch() = evaluator_->LaunchOf(winner.variant);
  ASSIGN_OR_RETURN(*result->mutable_code(),
                   evaluator_->Compile(winner.variant));
  evolution::FileContents files;
  for (const v1::SourceOverlay& overlay : winner.variant.sources())
    files[overlay.path()] = overlay.content();
  evolution::DiffOptions diff;
  std::vector<std::string> paths;
  for (const auto& [path, content] : files) paths.push_back(path);
  diff.root = evolution::CommonDirectory(paths);
  result->set_patch_root(diff.root);
  result->set_patch(evolution::UnifiedDiff(evolvable_, files, diff));
  result->add_changes(winner.description);
  return absl::OkStatus();
}

// Leaves out rewrites that the winner is as fast without: a patch should hold
// what matters and nothing else.
void LocalCampaign::Simplify(const StoppingRule& rule,
                             absl::Duration time_limit, Candidate* winner,
                             v1::Outcome* outcome, v1::Result* result) {
  if (emitter_ == nullptr || winner->proposal.id == 0 || Stopped()) return;
  const absl::Time start = absl::Now();
  for (bool simpler_found = true; simpler_found;) {
    simpler_found = false;
    absl::StatusOr<std::vector<evolution::Proposal>> simpler =
        emitter_->Simplify(winner->proposal);
    if (!simpler.ok()) return;
    for (evolution::Proposal& proposal : *simpler) {
      if (absl::Now() - start > time_limit || Stopped()) return;
      Report("simplify");
      Candidate candidate = *winner;
      candidate.proposal = std::move(proposal);
      candidate.proposal.id = winner->proposal.id;
      *candidate.variant.mutable_sources() =
          WithSources(candidate.proposal.files).sources();
      candidate.description = JoinDescriptions(
          candidate.proposal.description, mapper_->Describe(candidate.variant));
      v1::Outcome measured =
          evaluator_->EvaluateWith(candidate.variant, rule, time_limit / 8);
      Keep("simplify", candidate.description, measured, result);
      const bool as_fast =
          measured.speedup().ratio() >= kAsFast * outcome->speedup().ratio();
      if (!SurelyFaster(measured) || !as_fast) continue;
      *winner = std::move(candidate);
      *outcome = std::move(measured);
      simpler_found = true;
      break;
    }
  }
}

// The best of the search that stand up to a second look, the surest first.
std::vector<std::pair<v1::Outcome, LocalCampaign::Candidate>>
LocalCampaign::ConfirmBest(const StoppingRule& rule, v1::Result* result) {
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return a.log_low > b.log_low;
                   });
  const absl::Duration each =
      std::max(options_.budget / (4.0 * kConfirmed), absl::Seconds(1));
  std::vector<std::pair<v1::Outcome, Candidate>> confirmed;
  for (size_t i = 0; i < std::min(candidates_.size(), kMeasuredAgain); ++i) {
    const Candidate& candidate = candidates_[i];
    if (confirmed.size() >= kConfirmed || candidate.log_low <= 0) break;
    Report("confirm");
    v1::Outcome outcome = evaluator_->EvaluateWith(
        candidate.variant, rule,
        Stopped() ? std::min(each, kHurriedConfirmation) : each);
    Keep("confirm", candidate.description, outcome, result);
    if (!SurelyFaster(outcome)) continue;
    confirmed.emplace_back(std::move(outcome), candidate);
  }
  std::stable_sort(
      confirmed.begin(), confirmed.end(), [](const auto& a, const auto& b) {
        return a.first.speedup().ci95_low() > b.first.speedup().ci95_low();
      });
  return confirmed;
}

// All samples so far took part in choosing the winner, which flatters it.
v1::Outcome LocalCampaign::MeasureFinally(const char* phase,
                                          const Candidate& winner,
                                          std::optional<v1::L2Policy> l2,
                                          v1::Result* result) {
  Report("final");
  FinalMeasurement measurement;
  const absl::Duration limit =
      Stopped() ? kHurriedConfirmation
                : std::max(options_.budget / 10, absl::Seconds(2));
  measurement.time_per_round = limit / measurement.rounds;
  measurement.l2 = l2;
  v1::Outcome outcome = evaluator_->Remeasure(winner.variant, measurement);
  Keep(phase, winner.description, outcome, result);
  return outcome;
}

// In a program the cache holds some of the kernel's data: neither all of what
// the kernel left there nor nothing of it.
bool LocalCampaign::MeasureOtherL2(const Candidate& winner,
                                   v1::Result* result) {
  const v1::L2Policy usual = device_.facts().l2;
  if (usual == v1::L2_POLICY_UNSPECIFIED) return true;
  result->clear_other_l2();  // of a winner that was dropped
  for (const v1::L2Policy other :
       {v1::L2_POLICY_COLD, v1::L2_POLICY_WARM, v1::L2_POLICY_DIRTY}) {
    if (other == usual) continue;
    const v1::Outcome outcome =
        MeasureFinally("other L2", winner, other, result);
    if (outcome.kind() == v1::OUTCOME_KIND_INFRASTRUCTURE) continue;
    if (outcome.kind() != v1::OUTCOME_KIND_OK) {
      LOG_WARNING("a winner was dropped: under {} it is {}: {}",
                  v1::L2Policy_Name(other), OutcomeName(outcome.kind()),
                  outcome.diagnostics());
      return false;
    }
    v1::PolicySpeedup* measured = result->add_other_l2();
    measured->set_l2(other);
    *measured->mutable_speedup() = outcome.speedup();
  }
  return true;
}

absl::Status LocalCampaign::Confirm(v1::Result* result) {
  StoppingRule careful;
  careful.minimum_pairs = 12;
  careful.maximum_pairs = 60;
  careful.relative_width = 0.01;
  for (auto& [confirmed, candidate] : ConfirmBest(careful, result)) {
    Simplify(careful, options_.budget / 8, &candidate, &confirmed, result);
    const v1::Outcome outcome =
        MeasureFinally("final", candidate, std::nullopt, result);
    if (!SurelyFaster(outcome)) continue;
    PerturbOptions perturb;
    perturb.seed = options_.seed;
    perturb.claimed_ratio = outcome.speedup().ratio();
    ASSIGN_OR_RETURN(const PerturbedVerdict verdict,
                     VerifyOnPerturbedInputs(evaluator_->unit(), device_, pool_,
                                             evaluator_->baseline(),
                                             candidate.variant, perturb));
    result->set_perturbed(!verdict.applicable ? "not applicable"
                          : verdict.verified  ? "verified"
                                              : verdict.diagnostics);
    if (verdict.applicable && !verdict.verified) {
      LOG_WARNING("a winner was dropped: {}", verdict.diagnostics);
      continue;
    }
    if (!MeasureOtherL2(candidate, result)) continue;
    return FillWinner(candidate, outcome, result);
  }
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
                             : Milliseconds(UpperMedian(baseline_ns)));
  result.set_best_ms(result.better() ? result.baseline_ms() /
                                           result.outcome().speedup().ratio()
                                     : result.baseline_ms());
  result.set_trials(progress_.trials);
  result.set_source_variants(progress_.source_variants);
  for (const auto& [kind, count] : progress_.outcomes)
    (*result.mutable_outcomes())[kind] = count;
  result.set_seconds(absl::ToDoubleSeconds(absl::Now() - first));
  return result;
}

}  // namespace reprise
