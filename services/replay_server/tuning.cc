#include "services/replay_server/tuning.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bayesopt/baselines.h"
#include "bayesopt/optimizer.h"
#include "bayesopt/parameter_mapper.h"
#include "replay/base/status_macros.h"
#include "replay/engine/launch_geometry.h"
#include "services/coordinator/tuning_terms.h"

namespace reprise {
namespace {

constexpr std::chrono::milliseconds kGlance(50);
constexpr uint32_t kMostParallel = 1024;

absl::StatusOr<std::unique_ptr<bayesopt::Sampler>> SamplerOf(
    const std::string& name) {
  if (name.empty() || name == "model")
    return std::unique_ptr<bayesopt::Sampler>();  // the optimizer's own choice
  if (name == "random") return bayesopt::NewRandomSampler();
  if (name == "local-search") return bayesopt::NewLocalSearchSampler();
  if (name == "hill-climbing") return bayesopt::NewHillClimbingSampler();
  if (name == "genetic") return bayesopt::NewGeneticSampler();
  if (name == "annealing") return bayesopt::NewAnnealingSampler();
  return absl::InvalidArgumentError(absl::StrCat(
      "got sampler '", name,
      "', expected model, random, local-search, hill-climbing, genetic or "
      "annealing"));
}

// Callbacks hold it: a compile may end when the session is over.
class Tuning : public std::enable_shared_from_this<Tuning> {
 public:
  Tuning(ReplayCore& core, const v1::TuneRequest& request,
         const std::function<bool()>& given_up,
         const std::function<void(const v1::TuneResponse&)>& event)
      : core_(core), request_(request), given_up_(given_up), event_(event) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Prepare());
    SendStart();
    const absl::Status status = Loop();
    for (const auto& [id, running] : running_)
      core_.Cancel(running.participant);
    if (!status.ok()) return status;
    SendEnd();
    return absl::OkStatus();
  }

 private:
  struct Running {
    bayesopt::Trial trial;
    v1::Variant variant;
    std::shared_ptr<ReplayCore::Participant> participant;
    uint64_t same_as = 0;
  };

  absl::Status Prepare() {
    if (request_.trials() == 0 &&
        !(request_.seconds() > 0 && std::isfinite(request_.seconds()))) {
      return absl::InvalidArgumentError(
          "tuning has no end: state trials, seconds, or both");
    }
    ASSIGN_OR_RETURN(const ReplayCore::TuningFacts facts,
                     core_.FactsForTuning(request_.unit_id()));
    recorded_ = facts.manifest.launch();
    const bayesopt::TrialSpaceOptions options =
        SpaceOptionsOf(facts.manifest, facts.baseline, core_.device());
    ASSIGN_OR_RETURN(const auto space, bayesopt::BuildTrialSpace(options));
    bayesopt::Optimizer::Options optimizer;
    optimizer.seed = request_.seed();
    optimizer.seeds = bayesopt::SeedConfigurations(*space);
    ASSIGN_OR_RETURN(optimizer.sampler, SamplerOf(request_.sampler()));
    ASSIGN_OR_RETURN(optimizer_,
                     bayesopt::Optimizer::Create(space, std::move(optimizer)));
    mapper_ = std::make_unique<bayesopt::ParameterMapper>(recorded_);
    *base_.mutable_sources() = request_.sources();
    if (!options.has_clang) base_.set_frontend("nvrtc");
    parallel_ = request_.parallel() != 0
                    ? std::min(request_.parallel(), kMostParallel)
                    : 2 * static_cast<uint32_t>(core_.compile_threads());
    if (request_.seconds() > 0)
      end_time_ = absl::Now() + absl::Seconds(request_.seconds());
    return absl::OkStatus();
  }

  absl::Status Loop() {
    for (;;) {
      if (given_up_()) return absl::CancelledError("nobody listens any more");
      if (stopped_by_.empty() && absl::Now() > end_time_)
        stopped_by_ = "seconds";
      while (stopped_by_.empty() && running_.size() < parallel_ &&
             !given_up_() && absl::Now() <= end_time_)
        RETURN_IF_ERROR(AskOne());
      if (running_.empty()) return absl::OkStatus();
      // What has not begun when the time is over is let go.
      if (stopped_by_ == "seconds" && !std::exchange(cancelled_, true)) {
        for (const auto& [id, running] : running_)
          core_.Cancel(running.participant);
      }
      RETURN_IF_ERROR(TakeEnded());
    }
  }

  // Sets stopped_by_ where there is none to ask.
  absl::Status AskOne() {
    if (request_.trials() != 0 && asked_ >= request_.trials()) {
      stopped_by_ = "trials";
      return absl::OkStatus();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    std::vector<bayesopt::Trial> trials = optimizer_->Ask(1);
    if (trials.empty()) {
      stopped_by_ = "space used up";
      return absl::OkStatus();
    }
    const uint64_t id = trials[0].id;
    ASSIGN_OR_RETURN(
        v1::Variant variant,
        mapper_->ToVariant(
            optimizer_->space().ToAssignment(trials[0].configuration), base_));
    Running& running = running_[id];
    running.trial = std::move(trials[0]);
    running.variant = variant;
    EvaluationRequest evaluation;
    evaluation.unit_id = request_.unit_id();
    evaluation.variant = std::move(variant);
    evaluation.priority = request_.priority();
    evaluation.worth_running = [self = shared_from_this(),
                                id](const v1::CompileReply& code) {
      return self->IsNewCode(id, code);
    };
    lock.unlock();
    ++asked_;
    auto submitted = core_.Submit(
        std::move(evaluation),
        [self = shared_from_this(), id](const Evaluated& evaluated) {
          const std::lock_guard<std::mutex> inner(self->ended_mutex_);
          self->ended_.emplace_back(id, evaluated);
          self->changed_.notify_all();
        });
    lock.lock();
    if (!submitted.ok()) {
      running_.erase(id);
      return submitted.status();
    }
    running.participant = *std::move(submitted);
    return absl::OkStatus();
  }

  // On a compile thread.
  bool IsNewCode(uint64_t id, const v1::CompileReply& code) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = running_.find(id);
    if (found == running_.end()) return false;
    Running& running = found->second;
    const std::string key = absl::StrCat(
        code.code_sha256(),
        DescribeLaunch(VariantLaunch(recorded_, running.variant.launch())));
    const auto claim = optimizer_->ClaimKey(id, key);
    if (!claim.ok() || claim->first) return true;
    running.same_as = claim->owner;
    return false;
  }

  absl::Status TakeEnded() {
    std::deque<std::pair<uint64_t, Evaluated>> ended;
    {
      std::unique_lock<std::mutex> lock(ended_mutex_);
      if (ended_.empty()) changed_.wait_for(lock, kGlance);
      ended.swap(ended_);
    }
    for (const auto& [id, evaluated] : ended) {
      const Running running = Remove(id);
      if (!evaluated.status.ok() && running.same_as == 0) {
        if (!absl::IsCancelled(evaluated.status)) return evaluated.status;
        if (stopped_by_.empty()) stopped_by_ = "unit unloaded";
        continue;
      }
      RETURN_IF_ERROR(Take(running, evaluated.outcome));
    }
    return absl::OkStatus();
  }

  Running Remove(uint64_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::move(running_.extract(id).mapped());
  }

  absl::Status Take(const Running& running, const v1::Outcome& outcome) {
    v1::TuneResponse response;
    v1::Trial* trial = response.mutable_trial();
    trial->set_number(running.trial.id);
    *trial->mutable_variant() = running.variant;
    trial->set_description(mapper_->Describe(running.variant));
    trial->set_origin(running.trial.origin);
    trial->set_same_as(running.same_as);
    ++trials_;
    if (running.same_as != 0) {
      ++same_code_;
    } else {
      *trial->mutable_outcome() = outcome;
      const bool ok = outcome.kind() == v1::OUTCOME_KIND_OK;
      const std::lock_guard<std::mutex> lock(mutex_);
      RETURN_IF_ERROR(
          optimizer_->Tell(running.trial.id, outcome.kind(),
                           ok ? CostSamples(outcome) : std::vector<double>()));
      const auto best = optimizer_->Best();
      trial->set_best(best.has_value() && best->trial.id == running.trial.id);
    }
    event_(response);
    return absl::OkStatus();
  }

  void SendStart() {
    v1::TuneResponse response;
    v1::TuneStart* start = response.mutable_start();
    start->set_space_size(optimizer_->space().SizeBound());
    for (const bayesopt::Parameter& parameter :
         optimizer_->space().parameters())
      start->add_parameters(parameter.name);
    event_(response);
  }

  void SendEnd() {
    v1::TuneResponse response;
    v1::TuneEnd* end = response.mutable_end();
    if (const auto best = optimizer_->Best()) end->set_best(best->trial.id);
    end->set_stopped_by(stopped_by_);
    end->set_trials(trials_);
    end->set_same_code(same_code_);
    event_(response);
  }

  ReplayCore& core_;
  const v1::TuneRequest& request_;
  const std::function<bool()>& given_up_;
  const std::function<void(const v1::TuneResponse&)>& event_;

  v1::LaunchConfig recorded_;
  v1::Variant base_;
  std::unique_ptr<bayesopt::ParameterMapper> mapper_;
  uint32_t parallel_ = 1;
  absl::Time end_time_ = absl::InfiniteFuture();
  uint64_t asked_ = 0, trials_ = 0, same_code_ = 0;
  bool cancelled_ = false;
  std::string stopped_by_;

  std::mutex mutex_;  // of these two; compile threads ask them too
  std::unique_ptr<bayesopt::Optimizer> optimizer_;
  std::map<uint64_t, Running> running_;
  std::mutex ended_mutex_;  // the device's thread takes it: never for long
  std::condition_variable changed_;
  std::deque<std::pair<uint64_t, Evaluated>> ended_;
};

}  // namespace

absl::Status RunTuning(
    ReplayCore& core, const v1::TuneRequest& request,
    const std::function<bool()>& given_up,
    const std::function<void(const v1::TuneResponse&)>& event) {
  return std::make_shared<Tuning>(core, request, given_up, event)->Run();
}

}  // namespace reprise
