// The threads of a ReplayCore: compilers, and the one that drives the device.
#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "replay/base/fault_point.h"
#include "replay/base/log.h"
#include "replay/compiler/stopwatch.h"
#include "services/replay_server/replay_core.h"
#include "services/replay_server/replay_core_internal.h"

namespace reprise {
namespace {

// The device stays with a unit for so many evaluations while others of the
// same priority wait.
constexpr int kMostInARow = 64;
constexpr int kMostAttempts = 2;
constexpr std::chrono::milliseconds kGlance(100);
// After a fault: tries of the unmodified kernel until its unit is given up.
constexpr int kMostProbes = 5;

// What of the time since the request was spent on nothing else.
void SetWaits(absl::Duration since_request, double compile_ms, double run_ms,
              v1::StageTimes* stages) {
  stages->set_compile_ms(compile_ms);
  stages->set_queue_ms(std::max(
      0.0, absl::ToDoubleMilliseconds(since_request) - run_ms - compile_ms));
}

bool LeavesDeviceInDoubt(const v1::Outcome& outcome) {
  return outcome.kind() == v1::OUTCOME_KIND_DEVICE_FAULT ||
         outcome.kind() == v1::OUTCOME_KIND_TIMEOUT ||
         outcome.kind() == v1::OUTCOME_KIND_INFRASTRUCTURE;
}

}  // namespace

void ReplayCore::RunCompiler() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    compile_work_.wait(lock, [this] {
      const bool room = compiled_.size() + compiling_.size() <
                        static_cast<size_t>(options_.most_compiled);
      return stopped_ || !to_prebuild_.empty() || (!waiting_.empty() && room);
    });
    if (stopped_) return;
    if (!to_prebuild_.empty()) {
      const std::string unit = std::move(to_prebuild_.front());
      to_prebuild_.pop_front();
      Prebuild(unit, lock);
      continue;
    }
    CompileFor(waiting_.Pop(), lock);
  }
}

void ReplayCore::CompileFor(const std::shared_ptr<Job>& job,
                            std::unique_lock<std::mutex>& lock) {
  Unit& unit = *FindLocked(job->unit);
  std::shared_ptr<Evaluator> evaluator = unit.evaluator;
  job->stage = Job::Stage::kCompiling;
  compiling_.insert(job);
  lock.unlock();
  const Stopwatch watch;
  absl::StatusOr<v1::CompileReply> code =
      evaluator->Compile(job->request.variant);
  const double compile_ms = watch.ElapsedMs();
  const bool built = code.ok() && code->kind() == v1::OUTCOME_KIND_OK;
  const bool worth = !built || job->request.worth_running == nullptr ||
                     job->request.worth_running(*code);
  v1::Outcome unbuilt;
  if (!built) unbuilt = evaluator->OutcomeOfBuild(job->request.variant, code);
  evaluator.reset();  // whoever takes the unit off holds the last one
  lock.lock();
  compiling_.erase(job);
  job->compile_ms += compile_ms;
  Finished finished;
  if (!job->wanted()) {
    ForgetLocked(job);
  } else if (!built) {
    EndUnbuilt(job, std::move(unbuilt), &finished);
  } else if (!worth) {
    EndLocked(job, absl::AbortedError("it was not worth running"), &finished);
  } else if (draining_) {
    EndLocked(job, absl::UnavailableError("the server ends"), &finished);
  } else if (unit.unload_wanted) {
    EndLocked(job, absl::CancelledError("its unit was unloaded"), &finished);
  } else if (unit.state == v1::UNIT_STATE_UNAVAILABLE) {
    EndLocked(job, unit.error, &finished);
  } else if (unit.state != v1::UNIT_STATE_READY) {
    EnqueueLocked(job, unit);
  } else {
    job->stage = Job::Stage::kCompiled;
    job->code = *std::move(code);
    compiled_.Push(job);
  }
  device_work_.notify_all();
  unit_changed_.notify_all();
  finished.CallWithout(lock);
}

void ReplayCore::RunDevice() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (WaitForWork(lock)) {
    UnloadWanted(lock);
    if (const std::string* loadable = LoadableLocked()) {
      const std::string unit = *loadable;
      std::erase(to_load_, unit);
      Load(unit, lock);
    } else if (const std::shared_ptr<Job> job = NextJobLocked()) {
      compile_work_.notify_all();  // there is room again
      Run(job, lock);
    }
  }
  for (const auto& [id, unit] : units_) {
    if (unit->on_device()) TakeOff(*unit, lock);
  }
}

// False: the core ends.
bool ReplayCore::WaitForWork(std::unique_lock<std::mutex>& lock) {
  const auto is_there = [this] {
    return stopped_ || !compiled_.empty() || LoadableLocked() != nullptr ||
           std::any_of(units_.begin(), units_.end(), [this](const auto& unit) {
             return MayUnloadLocked(*unit.second);
           });
  };
  for (;;) {
    Finished finished;
    ExpireLocked(&finished);
    finished.CallWithout(lock);
    if (is_there()) return !stopped_;
    const bool starved = !compiling_.empty() || !waiting_.empty();
    const absl::Time start = absl::Now();
    device_work_.wait_for(lock, kGlance, is_there);
    if (starved) {
      counts_.set_starved_s(counts_.starved_s() +
                            absl::ToDoubleSeconds(absl::Now() - start));
    }
  }
}

std::shared_ptr<ReplayCore::Job> ReplayCore::NextJobLocked() {
  if (compiled_.empty()) return nullptr;
  const bool stay = in_a_row_ < kMostInARow;
  std::shared_ptr<Job> job =
      stay ? compiled_.PopPreferring(last_unit_) : compiled_.Pop();
  in_a_row_ = job->unit == last_unit_ ? in_a_row_ + 1 : 1;
  last_unit_ = job->unit;
  return job;
}

v1::Outcome ReplayCore::Measure(Evaluator& evaluator, const Job& job) const {
  const v1::Sampling& sampling = job.request.sampling;
  const v1::CompileReply* const code = job.code ? &*job.code : nullptr;
  if (sampling.verify_only())
    return evaluator.VerifyOnly(job.request.variant, code);
  StoppingRule rule = options_.evaluator.stopping;
  if (sampling.maximum_pairs() != 0)
    rule.maximum_pairs = static_cast<int>(sampling.maximum_pairs());
  if (sampling.minimum_pairs() != 0)
    rule.minimum_pairs = static_cast<int>(sampling.minimum_pairs());
  rule.minimum_pairs = std::min(rule.minimum_pairs, rule.maximum_pairs);
  const absl::Duration limit = sampling.time_limit_s() > 0
                                   ? absl::Seconds(sampling.time_limit_s())
                                   : options_.evaluator.time_per_variant;
  return evaluator.EvaluateWith(job.request.variant, rule, limit, code);
}

void ReplayCore::Run(const std::shared_ptr<Job>& job,
                     std::unique_lock<std::mutex>& lock) {
  Unit& unit = *FindLocked(job->unit);
  unit.last_used = next_use_++;
  ++unit.run_since_load;
  job->stage = Job::Stage::kRunning;
  ++job->attempts;
  std::shared_ptr<Evaluator> evaluator = unit.evaluator;
  lock.unlock();
  const absl::Time start = absl::Now();
  v1::Outcome outcome = Measure(*evaluator, *job);
  PassFaultPoint("settle");
  evaluator.reset();
  const absl::Time end = absl::Now();
  SetWaits(Now() - job->asked, job->compile_ms,
           absl::ToDoubleMilliseconds(end - start), outcome.mutable_stages());
  lock.lock();
  counts_.set_busy_s(counts_.busy_s() + absl::ToDoubleSeconds(end - start));
  const bool doubt = LeavesDeviceInDoubt(outcome);
  if (doubt) {
    health_ = Health::kRecovering;
    fault_ = absl::StrCat("it recovers from an evaluation of ", job->unit, ": ",
                          outcome.diagnostics());
  }
  Finished finished;
  Settle(job, std::move(outcome), &finished);
  finished.CallWithout(lock);
  if (doubt && !abandoned_) Recover(unit, end, lock);
}

bool ReplayCore::IsTriedAgainLocked(const Job& job,
                                    const v1::Outcome& outcome) const {
  return outcome.kind() == v1::OUTCOME_KIND_INFRASTRUCTURE &&
         job.attempts < kMostAttempts && job.wanted() && !draining_ &&
         !FindLocked(job.unit)->unload_wanted;
}

void ReplayCore::Settle(const std::shared_ptr<Job>& job, v1::Outcome outcome,
                        Finished* finished) {
  if (IsTriedAgainLocked(*job, outcome)) {
    LOG_WARNING("{}: once more: {}", job->unit, outcome.diagnostics());
    job->stage = Job::Stage::kCompiled;
    compiled_.Push(job);
    return;
  }
  CountLocked(outcome, Now() - job->asked);
  if (!job->key.empty() && MayBeKept(outcome))
    outcomes_.Insert(job->key, outcome);
  for (const auto& participant : job->participants) {
    if (!participant->ended) finished->Add(*participant, {.outcome = outcome});
  }
  ForgetLocked(job);
}

// Nothing of it reaches the device. Where the compilers themselves failed it is
// tried once more.
void ReplayCore::EndUnbuilt(const std::shared_ptr<Job>& job,
                            v1::Outcome outcome, Finished* finished) {
  ++job->attempts;
  if (IsTriedAgainLocked(*job, outcome)) {
    EnqueueLocked(job, *FindLocked(job->unit));
    return;
  }
  SetWaits(Now() - job->asked, job->compile_ms, /*run_ms=*/0,
           outcome.mutable_stages());
  Settle(job, std::move(outcome), finished);
}

// Runs the unmodified kernel of the unit that met the fault until it computes
// the right thing again.
void ReplayCore::Recover(Unit& unit, absl::Time fault,
                         std::unique_lock<std::mutex>& lock) {
  std::shared_ptr<Evaluator> evaluator = unit.evaluator;
  const v1::Variant unmodified =
      UnmodifiedVariant(evaluator->baseline().frontends.at(0));
  v1::Outcome outcome;
  for (int probe = 0; probe < kMostProbes && !stopped_; ++probe) {
    if (probe > 0) {
      device_work_.wait_for(lock, kGlance * (1 << probe),
                            [this] { return stopped_; });
    }
    lock.unlock();
    outcome = evaluator->VerifyOnly(unmodified);
    lock.lock();
    if (outcome.kind() == v1::OUTCOME_KIND_OK) break;
    LOG_WARNING("{} does not replay after a fault: {}", unit.id,
                outcome.diagnostics());
  }
  health_ = Health::kServing;
  if (outcome.kind() == v1::OUTCOME_KIND_OK) {
    counts_.set_recoveries(counts_.recoveries() + 1);
    recovery_.Add(absl::ToDoubleMilliseconds(absl::Now() - fault));
    return;
  }
  evaluator.reset();
  if (stopped_) return;
  Finished finished;
  unit.error = absl::FailedPreconditionError(
      absl::StrCat("unit ", unit.id, " does not replay after a fault: ",
                   outcome.diagnostics(), "; load it again"));
  HandBackLocked(unit, unit.error, &finished);
  TakeOff(unit, lock);
  HandBackLocked(unit, unit.error, &finished);  // what came meanwhile
  unit.state = v1::UNIT_STATE_UNAVAILABLE;
  unit_changed_.notify_all();
  finished.CallWithout(lock);
}

}  // namespace reprise
