// Of a LocalCampaign: the search. Emitters propose sources, tuners builds and
// launches of the best of them; islands keep what is worth going on from.
#include <algorithm>
#include <cmath>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "evolution/measures.h"
#include "replay/base/log.h"
#include "replay/engine/launch_geometry.h"
#include "services/coordinator/local_campaign.h"
#include "services/coordinator/local_campaign_internal.h"
#include "services/coordinator/tuning_terms.h"

namespace reprise {
namespace {

constexpr size_t kTunedSources = 4;
// One of so many evaluations of sources may be of an elite, again.
constexpr uint64_t kNewPerRemeasured = 4;

double LogRatio(const v1::Outcome& outcome) {
  return std::log(outcome.speedup().ratio());
}

// Which of two kinds of rounds comes next: each gets time as it paid lately,
// but neither is given up.
class Turns {
 public:
  bool First() const {
    constexpr double kLeastShare = 0.2;
    const double rates = Rate(0) + Rate(1);
    const double share =
        rates <= 0 ? 0.5
                   : std::clamp(Rate(0) / rates, kLeastShare, 1 - kLeastShare);
    return spent_[0] <= share * (spent_[0] + spent_[1]);
  }
  // `gain`: by how much the log of the best ratio went up.
  void Note(bool first, double gain, absl::Duration took) {
    constexpr double kRemembered = 0.8;
    const int kind = first ? 0 : 1;
    const double seconds = absl::ToDoubleSeconds(took);
    gained_[kind] = kRemembered * gained_[kind] + gain;
    lately_[kind] = kRemembered * lately_[kind] + seconds;
    spent_[kind] += seconds;
  }

 private:
  double Rate(int kind) const {
    return lately_[kind] <= 0 ? 0 : gained_[kind] / lately_[kind];
  }

  double gained_[2] = {}, lately_[2] = {};  // the last rounds count most
  double spent_[2] = {};
};

}  // namespace

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
    const double log_ratio = LogRatio(outcome);
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

// The nearest relative whose builds are known: a parent, or else the recorded
// source.
const LocalCampaign::Source& LocalCampaign::TeacherOf(
    const Source& source) const {
  const Source* teacher = sources_.front().get();
  for (const uint64_t parent : source.proposal.parents) {
    for (const auto& known : sources_) {
      if (known->proposal.id == parent &&
          known->observed.size() > teacher->observed.size() / 2)
        teacher = known.get();
    }
  }
  return *teacher;
}

// Begins with what is known of a relative: its best build first.
bool LocalCampaign::StartTuning(Source& source) {
  auto tuner = NewTuner(source.proposal.id);
  if (!tuner.ok()) return false;
  source.tuner = *std::move(tuner);
  const std::vector<bayesopt::ImportedObservation>& known =
      TeacherOf(source).observed;
  if (known.empty()) return true;
  const auto best = std::min_element(
      known.begin(), known.end(),
      [](const auto& a, const auto& b) { return a.cost < b.cost; });
  for (const absl::Status& status :
       {source.tuner->Import(known),
        source.tuner->Inject(best->configuration)}) {
    if (!status.ok())
      LOG_DEBUG("a tuner learns nothing from its relative: {}",
                std::string(status.message()));
  }
  return true;
}

bool LocalCampaign::TuneRound() {
  Source* source = PickSource();
  if (source->tuner == nullptr && !StartTuning(*source)) return false;
  const v1::Variant base = WithSources(source->proposal.files);
  std::vector<Job> jobs;
  for (const bayesopt::Trial& trial : source->tuner->Ask(options_.batch)) {
    absl::StatusOr<v1::Variant> variant = mapper_->ToVariant(
        source->tuner->space().ToAssignment(trial.configuration), base);
    if (!variant.ok()) continue;
    std::string description = JoinDescriptions(source->proposal.description,
                                               mapper_->Describe(*variant));
    jobs.push_back({*std::move(variant), std::move(description), source,
                    trial.id, trial.configuration});
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
    if (!samples.empty()) {
      source->observed.push_back(
          {job.configuration, UpperMedian(samples), /*weight=*/1});
    }
    if (absl::Status told =
            source->tuner->Tell(job.trial, outcome.kind(), samples);
        !told.ok()) {
      LOG_WARNING("the tuner refused an outcome: {}",
                  std::string(told.message()));
    }
  }
  return !jobs.empty();
}

std::vector<LocalCampaign::Newcomer> LocalCampaign::AskForSources() {
  std::vector<Newcomer> newcomers;
  for (int i = 0; i < options_.batch; ++i) {
    const evolution::Islands::Ticket ticket = islands_->Next();
    absl::StatusOr<std::vector<evolution::Proposal>> proposals =
        emitter_->Ask(islands_->archive(ticket.island), 1);
    if (!proposals.ok() || proposals->empty()) {
      islands_->Drop(ticket);
      break;
    }
    auto source = std::make_unique<Source>();
    source->proposal = std::move(proposals->front());
    source->proposal.id = next_proposal_++;
    newcomers.push_back(
        {{WithSources(source->proposal.files),
          JoinDescriptions(source->proposal.description, "as built"),
          source.get(), 0},
         ticket});
    sources_.push_back(std::move(source));
    ++progress_.source_variants;
  }
  return newcomers;
}

absl::StatusOr<std::vector<double>> LocalCampaign::MeasuresOf(
    const evolution::Proposal& proposal, const v1::Outcome& outcome) const {
  const std::vector<evolution::Dimension>& dimensions =
      islands_->archive(0).cells().dimensions();
  evolution::MeasuredVariant variant;
  if (!dimensions.empty())
    variant.tokens = evolution::EvolvableTokens(evolvable_, proposal.files);
  variant.code = outcome.code();
  variant.recorded = evaluator_->baseline().code.facts();
  return evolution::MeasuresOf(dimensions, variant);
}

void LocalCampaign::Settle(const Newcomer& newcomer,
                           const v1::Outcome& outcome) {
  const evolution::Proposal& proposal = newcomer.job.source->proposal;
  evolution::Evaluation evaluation;
  evaluation.kind = outcome.kind();
  evaluation.diagnostics = outcome.diagnostics();
  ++evaluated_sources_;
  if (outcome.kind() == v1::OUTCOME_KIND_OK) {
    evaluation.objective = LogRatio(outcome);
    evaluation.objective_low =
        std::log(std::max(outcome.speedup().ci95_low(), 1e-9));
    const absl::StatusOr<std::vector<double>> measures =
        MeasuresOf(proposal, outcome);
    const absl::Status told =
        measures.ok() ? islands_
                            ->Tell(newcomer.ticket, proposal,
                                   evaluation.objective, *measures, absl::Now())
                            .status()
                      : measures.status();
    if (!told.ok())
      LOG_WARNING("a source is kept out of the archive: {}",
                  std::string(told.message()));
  } else {
    islands_->TellFailure(newcomer.ticket, absl::Now());
  }
  emitter_->Tell(proposal, evaluation);
}

// An elite's first measurement flatters it: those that seem faster than the
// baseline are measured again before others are made from them for long.
void LocalCampaign::RemeasureElites() {
  while (!OutOfBudget() &&
         (remeasured_sources_ + 1) * kNewPerRemeasured <= evaluated_sources_) {
    const std::vector<const evolution::Elite*> due =
        islands_->DueForRemeasurement(1);
    if (due.empty() || due.front()->objective <= 0) return;
    const uint64_t id = due.front()->solution.id;
    const auto source =
        std::find_if(sources_.begin(), sources_.end(),
                     [&](const auto& s) { return s->proposal.id == id; });
    const v1::Outcome outcome = EvaluateJob(
        {WithSources((*source)->proposal.files),
         JoinDescriptions((*source)->proposal.description, "as built"),
         source->get(), 0});
    ++remeasured_sources_;
    if (outcome.kind() == v1::OUTCOME_KIND_INFRASTRUCTURE) return;
    islands_
        ->Remeasured(id, outcome.kind() == v1::OUTCOME_KIND_OK
                             ? LogRatio(outcome)
                             : std::nan(""))
        .IgnoreError();
  }
}

bool LocalCampaign::EmitRound() {
  const std::vector<Newcomer> newcomers = AskForSources();
  if (newcomers.empty()) return false;
  std::vector<Job> jobs;
  for (const Newcomer& newcomer : newcomers) jobs.push_back(newcomer.job);
  CompileAhead(jobs);
  for (const Newcomer& newcomer : newcomers) {
    if (OutOfBudget()) break;
    if (islands_->IsStale(newcomer.ticket)) {
      islands_->Drop(newcomer.ticket);
      ++progress_.outcomes["STALE"];
      continue;
    }
    Settle(newcomer, EvaluateJob(newcomer.job));
  }
  RemeasureElites();
  return true;
}

void LocalCampaign::FillArchive(v1::Archive* archive) const {
  archive->set_cells(options_.cells);
  for (const auto& dimension : islands_->archive(0).cells().dimensions())
    archive->add_measures(dimension.name);
  for (size_t i = 0; i < islands_->size(); ++i) {
    const evolution::ArchiveStats stats = islands_->archive(i).stats();
    v1::Island* island = archive->add_islands();
    island->set_evaluations(islands_->archive(i).evaluations());
    island->set_elites(stats.num_elites);
    island->set_coverage(stats.coverage);
    island->set_qd_score(stats.qd_score);
    island->set_best(stats.obj_max);
  }
  for (const evolution::Elite* elite : islands_->Ranked()) {
    v1::Elite* kept = archive->add_elites();
    kept->set_proposal(elite->solution.id);
    kept->set_description(elite->solution.description);
    kept->set_cell(elite->cell);
    kept->mutable_measures()->Add(elite->measures.begin(),
                                  elite->measures.end());
    kept->set_objective(elite->objective);
    kept->set_remeasurements(static_cast<uint32_t>(elite->remeasurements));
  }
}

void LocalCampaign::Search() {
  PickFrontend();
  bool tuning = options_.tune, emitting = emitter_ != nullptr;
  Turns turns;
  while (!OutOfBudget() && (tuning || emitting)) {
    const bool emit = emitting && (!tuning || turns.First());
    const double before = std::log(progress_.best_ratio);
    const absl::Time start = absl::Now();
    if (emit) {
      emitting = EmitRound();
    } else {
      tuning = TuneRound();
    }
    turns.Note(emit, std::log(progress_.best_ratio) - before,
               absl::Now() - start);
  }
}

}  // namespace reprise
