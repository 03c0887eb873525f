#include "services/replay_server/replay_core.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "services/replay_server/replay_core_internal.h"

namespace reprise {
namespace {

absl::Status EndingError() {
  return absl::UnavailableError(
      "the server ends; nothing was measured, ask another one");
}

constexpr uint32_t kMostPairs = 10'000;
constexpr int kLargestPriority = 100;

absl::Status CheckRequest(const EvaluationRequest& request) {
  if (request.priority < -kLargestPriority ||
      request.priority > kLargestPriority) {
    return absl::InvalidArgumentError(
        absl::StrCat("got priority ", request.priority, ", expected -",
                     kLargestPriority, " to ", kLargestPriority));
  }
  const v1::Sampling& sampling = request.sampling;
  if (std::max(sampling.minimum_pairs(), sampling.maximum_pairs()) >
      kMostPairs) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sampling: got ", sampling.minimum_pairs(), " to ",
        sampling.maximum_pairs(), " pairs, expected at most ", kMostPairs));
  }
  if (sampling.maximum_pairs() != 0 &&
      sampling.maximum_pairs() < sampling.minimum_pairs()) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling: got at most ", sampling.maximum_pairs(),
                     " pairs and at least ", sampling.minimum_pairs()));
  }
  if (!(sampling.time_limit_s() >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling: got a time limit of ", sampling.time_limit_s(),
                     " s, expected none (0) or a positive one"));
  }
  return absl::OkStatus();
}

}  // namespace

std::unique_ptr<ReplayCore> ReplayCore::Create(Options options,
                                               const UnitStore& store,
                                               std::unique_ptr<Device> device,
                                               CompilePool& pool) {
  options.compile_threads = std::max(1, options.compile_threads);
  if (options.most_compiled <= 0)
    options.most_compiled = 4 * options.compile_threads;
  return std::unique_ptr<ReplayCore>(
      new ReplayCore(std::move(options), store, std::move(device), pool));
}

ReplayCore::ReplayCore(Options options, const UnitStore& store,
                       std::unique_ptr<Device> device, CompilePool& pool)
    : options_(std::move(options)),
      store_(store),
      device_(std::move(device)),
      pool_(pool),
      outcomes_(options_.most_kept_outcomes) {
  for (int i = 0; i < options_.compile_threads; ++i)
    threads_.emplace_back([this] { RunCompiler(); });
  threads_.emplace_back([this] { RunDevice(); });
}

ReplayCore::~ReplayCore() {
  Drain();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  compile_work_.notify_all();
  device_work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::Time ReplayCore::Now() const {
  return options_.now ? options_.now() : absl::Now();
}

ReplayCore::Unit* ReplayCore::FindLocked(const std::string& unit_id) const {
  const auto found = units_.find(unit_id);
  return found == units_.end() ? nullptr : found->second.get();
}

absl::Status ReplayCore::NotLoaded(const std::string& unit_id,
                                   const char* advice) const {
  return absl::NotFoundError(absl::StrCat(
      "unit ", unit_id, " is not loaded on ", device_->facts().kind, advice));
}

bool ReplayCore::CompilesForLocked(const Unit& unit) const {
  return std::any_of(compiling_.begin(), compiling_.end(),
                     [&](const auto& job) { return job->unit == unit.id; });
}

absl::StatusOr<std::shared_ptr<ReplayCore::Participant>> ReplayCore::Submit(
    EvaluationRequest request, EvaluationCallback done) {
  if (absl::Status status = CheckRequest(request); !status.ok()) return status;
  auto participant = std::make_shared<Participant>();
  participant->done = std::move(done);
  participant->asked = Now();
  participant->expires = participant->asked + request.queue_timeout;
  Finished finished;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (draining_) return EndingError();
    Unit* const unit = FindLocked(request.unit_id);
    if (unit == nullptr || unit->state == v1::UNIT_STATE_STORED ||
        unit->unload_wanted) {
      return NotLoaded(request.unit_id, "; load it first");
    }
    if (unit->state == v1::UNIT_STATE_UNAVAILABLE) return unit->error;
    if (waiting_.size() + unit->parked.size() >= options_.most_waiting) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "got more evaluations than may wait, ", options_.most_waiting,
          "; ask again when some have ended"));
    }
    next_expiry_ = std::min(next_expiry_, participant->expires);
    unit->last_used = next_use_++;
    const bool shared = !request.fresh && request.worth_running == nullptr;
    const std::string key =
        shared ? OutcomeKey(unit->id, unit->request, request.variant,
                            request.sampling, device_->facts())
               : "";
    std::optional<v1::Outcome> known;
    if (shared) known = outcomes_.Find(key);
    if (known.has_value()) {
      counts_.set_known(counts_.known() + 1);
      finished.Add(*participant, {.outcome = *std::move(known), .known = true});
    } else if (!shared || !JoinLocked(key, participant, request.priority)) {
      auto job = std::make_shared<Job>();
      job->unit = unit->id;
      job->priority = request.priority;
      job->sequence = next_sequence_++;
      job->key = key;
      job->asked = participant->asked;
      job->request = std::move(request);
      job->participants = {participant};
      participant->job = job;
      if (shared) under_way_[key] = job;
      EnqueueLocked(job, *unit);
    }
  }
  finished.Call();
  return participant;
}

// False: no such evaluation is under way.
bool ReplayCore::JoinLocked(const std::string& key,
                            const std::shared_ptr<Participant>& participant,
                            int priority) {
  const auto found = under_way_.find(key);
  if (found == under_way_.end()) return false;
  const std::shared_ptr<Job>& job = found->second;
  job->participants.push_back(participant);
  participant->job = job;
  counts_.set_joined(counts_.joined() + 1);
  if (priority <= job->priority) return true;
  JobQueue<Job>* const queue = job->stage == Job::Stage::kWaiting ? &waiting_
                               : job->stage == Job::Stage::kCompiled
                                   ? &compiled_
                                   : nullptr;
  if (queue != nullptr) queue->Remove(*job);
  job->priority = priority;
  if (queue != nullptr) queue->Push(job);
  return true;
}

void ReplayCore::EnqueueLocked(const std::shared_ptr<Job>& job, Unit& unit) {
  if (unit.state == v1::UNIT_STATE_READY) {
    job->stage = Job::Stage::kWaiting;
    waiting_.Push(job);
    compile_work_.notify_one();
    return;
  }
  Park(job, unit);
  if (unit.state == v1::UNIT_STATE_EVICTED) WantLoadLocked(unit);
}

void ReplayCore::Park(const std::shared_ptr<Job>& job, Unit& unit) {
  job->stage = Job::Stage::kParked;
  job->code.reset();
  unit.parked.push_back(job);
}

void ReplayCore::ForgetLocked(const std::shared_ptr<Job>& job) {
  job->stage = Job::Stage::kOver;
  job->code.reset();
  // The key may be another job's by now.
  const auto found = under_way_.find(job->key);
  if (found != under_way_.end() && found->second == job)
    under_way_.erase(found);
}

void ReplayCore::EndLocked(const std::shared_ptr<Job>& job,
                           const absl::Status& status, Finished* finished) {
  for (const auto& participant : job->participants) {
    if (!participant->ended) finished->Add(*participant, {.status = status});
  }
  ForgetLocked(job);
}

// Of what the device has not begun. What is compiled now is forgotten when that
// is through.
void ReplayCore::HandBackLocked(Unit& unit, const absl::Status& status,
                                Finished* finished) {
  for (JobQueue<Job>* queue : {&waiting_, &compiled_}) {
    for (const std::shared_ptr<Job>& job : queue->RemoveUnit(unit.id))
      EndLocked(job, status, finished);
  }
  for (const std::shared_ptr<Job>& job : std::exchange(unit.parked, {}))
    EndLocked(job, status, finished);
  for (const std::shared_ptr<Job>& job : compiling_) {
    if (job->unit == unit.id) EndLocked(job, status, finished);
  }
  compile_work_.notify_all();  // there is room
}

void ReplayCore::Cancel(const std::shared_ptr<Participant>& participant) {
  Finished finished;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (participant->ended) return;
    counts_.set_cancelled(counts_.cancelled() + 1);
    finished.Add(*participant,
                 {.status = absl::CancelledError("it was cancelled")});
    DropUnwantedLocked(participant->job.lock());
  }
  finished.Call();
}

void ReplayCore::DropUnwantedLocked(const std::shared_ptr<Job>& job) {
  if (job == nullptr || job->begun() || job->wanted()) return;
  // A compile that is under way looks when it is through.
  if (job->stage == Job::Stage::kCompiling) return;
  waiting_.Remove(*job);
  compiled_.Remove(*job);
  if (Unit* const unit = FindLocked(job->unit); unit != nullptr)
    std::erase(unit->parked, job);
  ForgetLocked(job);
  compile_work_.notify_all();  // there is room
}

void ReplayCore::ExpireWaiting() {
  Finished finished;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ExpireLocked(&finished);
  }
  finished.Call();
}

void ReplayCore::ExpireLocked(Finished* finished) {
  const absl::Time now = Now();
  if (now < next_expiry_) return;
  next_expiry_ = absl::InfiniteFuture();
  std::vector<std::shared_ptr<Job>> looked_at;
  const auto look = [&](const std::shared_ptr<Job>& job) {
    for (const auto& participant : job->participants) {
      if (participant->ended) continue;
      if (participant->expires > now) {
        next_expiry_ = std::min(next_expiry_, participant->expires);
        continue;
      }
      counts_.set_expired(counts_.expired() + 1);
      finished->Add(
          *participant,
          {.status = absl::DeadlineExceededError(absl::StrCat(
               "it waited for ", absl::FormatDuration(now - participant->asked),
               " and had not begun to run"))});
      looked_at.push_back(job);
    }
  };
  waiting_.ForEach(look);
  compiled_.ForEach(look);
  for (const std::shared_ptr<Job>& job : compiling_) look(job);
  for (const auto& [id, unit] : units_) {
    for (const std::shared_ptr<Job>& job : unit->parked) look(job);
  }
  for (const std::shared_ptr<Job>& job : looked_at) DropUnwantedLocked(job);
}

void ReplayCore::Drain() {
  Finished finished;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    draining_ = true;
    for (const auto& [id, unit] : units_)
      HandBackLocked(*unit, EndingError(), &finished);
  }
  compile_work_.notify_all();
  device_work_.notify_all();
  unit_changed_.notify_all();
  finished.Call();
}

void ReplayCore::Abandon() {
  Drain();
  abandoned_ = true;
  pool_.Abandon();
}

void ReplayCore::CountLocked(const v1::Outcome& outcome,
                             absl::Duration since_request) {
  const std::string kind = OutcomeName(outcome.kind());
  ++(*counts_.mutable_outcomes())[kind];
  const v1::StageTimes& took = outcome.stages();
  StageHistograms& stages = stages_[kind];
  stages.queue.Add(took.queue_ms());
  stages.compile.Add(took.compile_ms());
  stages.outcome.Add(absl::ToDoubleMilliseconds(since_request));
  if (took.load_ms() > 0) stages.load.Add(took.load_ms());
  if (took.verify_ms() > 0) stages.verify.Add(took.verify_ms());
  if (took.time_ms() > 0) stages.time.Add(took.time_ms());
}

v1::ServedDevice ReplayCore::Describe() const {
  const DeviceFacts& facts = device_->facts();
  v1::ServedDevice served;
  served.set_device(facts.kind);
  served.set_name(facts.name);
  served.set_architecture(facts.architecture);
  served.set_uuid(facts.uuid);
  served.set_driver(facts.driver);
  served.set_l2(facts.l2);
  served.set_parallel_units(facts.parallel_units);
  served.set_max_threads_per_block(facts.max_threads_per_block);
  served.set_max_shared_bytes_per_block(facts.max_shared_bytes_per_block);
  const std::lock_guard<std::mutex> lock(mutex_);
  served.set_serving(!draining_ && health_ == Health::kServing);
  if (draining_) {
    served.set_reason("the server ends");
  } else if (health_ != Health::kServing) {
    served.set_reason(fault_);
  }
  return served;
}

v1::DeviceStatistics ReplayCore::Statistics() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  v1::DeviceStatistics statistics = counts_;
  statistics.set_device(device_->facts().kind);
  statistics.set_waiting(waiting_.size() + compiling_.size());
  statistics.set_compiled(compiled_.size());
  statistics.set_budget_bytes(options_.budget_bytes);
  uint64_t bytes = 0;
  for (const auto& [id, unit] : units_)
    bytes += unit->on_device() ? unit->bytes : 0;
  statistics.set_resident_bytes(bytes);
  for (const auto& [kind, stages] : stages_) {
    v1::StageHistograms& told = (*statistics.mutable_stages())[kind];
    *told.mutable_queue() = stages.queue.ToProto();
    *told.mutable_compile() = stages.compile.ToProto();
    *told.mutable_load() = stages.load.ToProto();
    *told.mutable_verify() = stages.verify.ToProto();
    *told.mutable_time() = stages.time.ToProto();
    *told.mutable_outcome() = stages.outcome.ToProto();
  }
  *statistics.mutable_recovery() = recovery_.ToProto();
  return statistics;
}

}  // namespace reprise
