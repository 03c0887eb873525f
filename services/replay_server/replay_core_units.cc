// Units of a ReplayCore: loaded when they are wanted, evicted when others are.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/message_differencer.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/engine/compile_input.h"
#include "replay/unit/describe.h"
#include "services/replay_server/replay_core.h"
#include "services/replay_server/replay_core_internal.h"
#include "services/replay_server/residency.h"

namespace reprise {
namespace {

constexpr absl::Duration kLongestLease = absl::Hours(1);
// How often somebody who waits looks whether it is still worth it.
constexpr absl::Duration kGlance = absl::Milliseconds(100);
// A unit that evaluations wait for keeps its place for so many of them.
constexpr uint64_t kTurn = 64;

v1::BaselineFacts FactsOf(const BaselineReport& report) {
  v1::BaselineFacts facts;
  facts.set_kind(report.kind);
  facts.set_median_ms(absl::ToDoubleMilliseconds(report.median_time));
  facts.set_matches_epilogue(report.matches_epilogue);
  facts.set_deterministic(report.deterministic);
  *facts.mutable_tolerance() = report.tolerance;
  facts.mutable_frontends()->Add(report.frontends.begin(),
                                 report.frontends.end());
  facts.set_refused_frontends(report.refused_frontends);
  *facts.mutable_launch() = report.launch;
  *facts.mutable_clocks() = report.clocks;
  return facts;
}

absl::StatusOr<absl::Duration> LeaseOf(double seconds) {
  if (seconds >= 0 && absl::Seconds(seconds) <= kLongestLease)
    return absl::Seconds(seconds);
  return absl::InvalidArgumentError(absl::StrCat(
      "got a lease of ", seconds, " s, expected 0 (none) to ",
      absl::ToInt64Seconds(kLongestLease), " s; leases can be renewed"));
}

absl::Status CheckTerms(const v1::LoadUnitRequest& request) {
  const v1::Tolerance& tolerance = request.tolerance();
  for (const double value : {tolerance.absolute(), tolerance.relative(),
                             tolerance.outlier_share()}) {
    if (std::isfinite(value) && value >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "tolerance: got ", value, ", expected 0 or a positive number"));
  }
  if (tolerance.outlier_share() >= 1) {
    return absl::InvalidArgumentError(
        "tolerance: got an outlier share of 1 or more, which accepts anything");
  }
  std::set<std::string> seen;
  for (const std::string& frontend : request.frontends()) {
    const bool known = frontend == "clang" || frontend == "nvrtc";
    if (known && seen.insert(frontend).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("got front end '", frontend,
                     "', expected clang and nvrtc, each at most once"));
  }
  return absl::OkStatus();
}

// What a unit was loaded with decides how its variants are judged.
absl::Status SameTerms(const v1::LoadUnitRequest& loaded,
                       const v1::LoadUnitRequest& asked) {
  using google::protobuf::util::MessageDifferencer;
  const bool tolerance =
      !asked.has_tolerance() ||
      (loaded.has_tolerance() &&
       MessageDifferencer::Equals(loaded.tolerance(), asked.tolerance()));
  const bool frontends =
      asked.frontends_size() == 0 ||
      std::equal(loaded.frontends().begin(), loaded.frontends().end(),
                 asked.frontends().begin(), asked.frontends().end());
  if (tolerance && frontends) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("unit ", loaded.unit_id(), " is loaded with another ",
                   tolerance ? "choice of front ends" : "tolerance",
                   " than was asked for; unload it first"));
}

}  // namespace

absl::StatusOr<ReplayCore::Unit*> ReplayCore::AdmitLocked(
    const v1::LoadUnitRequest& request, UnitReader reader) {
  std::unique_ptr<Unit>& unit = units_[reader.id()];
  if (unit == nullptr) {
    unit = std::make_unique<Unit>(Unit{.id = reader.id(), .reader = reader});
    unit->bytes = MemoryBytes(reader.manifest());
  }
  const bool fresh = unit->state == v1::UNIT_STATE_STORED ||
                     unit->state == v1::UNIT_STATE_UNAVAILABLE;
  if (unit->unload_wanted) {
    return absl::UnavailableError(
        absl::StrCat("unit ", unit->id, " is being unloaded"));
  }
  if (!fresh) RETURN_IF_ERROR(SameTerms(unit->request, request));
  ASSIGN_OR_RETURN(const absl::Duration lease, LeaseOf(request.lease_s()));
  if (fresh) {
    unit->request = request;
    unit->request.set_unit_id(unit->id);
    unit->reader = std::move(reader);
    WantLoadLocked(*unit);
  } else if (unit->state == v1::UNIT_STATE_EVICTED) {
    WantLoadLocked(*unit);
  }
  unit->last_used = next_use_++;
  // Another client's lease holds on.
  if (lease > absl::ZeroDuration())
    unit->lease_end = std::max(unit->lease_end, Now() + lease);
  return unit.get();
}

absl::StatusOr<v1::ServedUnit> ReplayCore::LoadUnit(
    const v1::LoadUnitRequest& request, const std::function<bool()>& given_up) {
  ASSIGN_OR_RETURN(UnitReader reader, store_.Open(request.unit_id()));
  std::unique_lock<std::mutex> lock(mutex_);
  if (draining_) return absl::UnavailableError("the server ends");
  RETURN_IF_ERROR(CheckTerms(request));
  const Unit* const known = FindLocked(reader.id());
  const uint64_t loads = known == nullptr ? 0 : known->loads;
  ASSIGN_OR_RETURN(Unit * unit, AdmitLocked(request, std::move(reader)));
  if (unit->state != v1::UNIT_STATE_READY)
    RETURN_IF_ERROR(WaitUntilLoaded(*unit, loads, given_up, lock));
  v1::ServedUnit served;
  FillLocked(*unit, &served);
  return served;
}

absl::Status ReplayCore::WaitUntilLoaded(Unit& unit, uint64_t before,
                                         const std::function<bool()>& given_up,
                                         std::unique_lock<std::mutex>& lock) {
  for (;;) {
    // It may have made room for others already.
    if (unit.loads > before) return absl::OkStatus();
    if (!unit.error.ok()) return unit.error;
    if (unit.state == v1::UNIT_STATE_EVICTED) WantLoadLocked(unit);
    if (unit.state == v1::UNIT_STATE_STORED)
      return absl::CancelledError("it was unloaded meanwhile");
    if (draining_) return absl::UnavailableError("the server ends");
    if (given_up != nullptr && given_up())
      return absl::CancelledError("nobody waits for it any more");
    unit_changed_.wait_for(lock, absl::ToChronoMilliseconds(kGlance));
  }
}

void ReplayCore::WantLoadLocked(Unit& unit) {
  unit.state = v1::UNIT_STATE_LOADING;
  unit.error = absl::OkStatus();
  to_prebuild_.push_back(unit.id);
  compile_work_.notify_one();
}

absl::Status ReplayCore::UnloadUnit(const std::string& unit_id) {
  Finished finished;
  std::unique_lock<std::mutex> lock(mutex_);
  Unit* const unit = FindLocked(unit_id);
  if (unit == nullptr || unit->state == v1::UNIT_STATE_STORED) {
    return NotLoaded(unit_id);
  }
  unit->unload_wanted = true;
  HandBackLocked(*unit, absl::CancelledError("its unit was unloaded"),
                 &finished);
  device_work_.notify_all();
  finished.CallWithout(lock);
  unit_changed_.wait(lock, [&] { return !unit->unload_wanted || stopped_; });
  return absl::OkStatus();
}

absl::Status ReplayCore::RenewLease(const std::string& unit_id,
                                    absl::Duration lease) {
  ASSIGN_OR_RETURN(lease, LeaseOf(absl::ToDoubleSeconds(lease)));
  const std::lock_guard<std::mutex> lock(mutex_);
  Unit* const unit = FindLocked(unit_id);
  if (unit == nullptr || unit->state != v1::UNIT_STATE_READY) {
    return NotLoaded(unit_id);
  }
  unit->lease_end = Now() + lease;
  return absl::OkStatus();
}

void ReplayCore::FillLocked(const Unit& unit, v1::ServedUnit* served) const {
  served->set_unit_id(unit.id);
  served->set_device(device_->facts().kind);
  served->set_state(unit.unload_wanted ? v1::UNIT_STATE_UNLOADING : unit.state);
  served->set_reason(std::string(unit.error.message()));
  if (unit.state == v1::UNIT_STATE_EVICTED && unit.error.ok())
    served->set_reason("it made room for others");
  served->set_kernel(unit.reader.manifest().kernel().display_name());
  served->set_bytes(unit.bytes);
  served->set_lease_s(
      std::max(0.0, absl::ToDoubleSeconds(unit.lease_end - Now())));
  served->set_waiting(waiting_.CountOf(unit.id) + compiled_.CountOf(unit.id) +
                      unit.parked.size());
  if (unit.baseline.kind() != v1::BASELINE_KIND_UNSPECIFIED)
    *served->mutable_baseline() = unit.baseline;
}

std::vector<v1::ServedUnit> ReplayCore::Units() const {
  std::vector<v1::ServedUnit> served;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [id, unit] : units_) {
    if (unit->state != v1::UNIT_STATE_STORED)
      FillLocked(*unit, &served.emplace_back());
  }
  return served;
}

absl::StatusOr<ReplayCore::TuningFacts> ReplayCore::FactsForTuning(
    const std::string& unit_id) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Unit* const unit = FindLocked(unit_id);
  if (unit == nullptr || unit->state == v1::UNIT_STATE_STORED) {
    return NotLoaded(unit_id, "; load it first");
  }
  if (unit->state == v1::UNIT_STATE_UNAVAILABLE) return unit->error;
  if (!unit->on_device()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "unit ", unit_id, " is not on the device now; load it first"));
  }
  return TuningFacts{unit->evaluator->unit().manifest(),
                     unit->evaluator->baseline()};
}

// On a compile thread: what loading will ask the compilers for, so that the
// device does not wait for them.
void ReplayCore::Prebuild(const std::string& unit_id,
                          std::unique_lock<std::mutex>& lock) {
  const Unit& unit = *FindLocked(unit_id);
  const UnitReader reader = unit.reader;
  const std::vector<std::string> frontends = FrontendsOf(unit.request);
  lock.unlock();
  // Errors come up again when it is loaded.
  if (const auto input = LoadCompileInput(reader, *device_); input.ok()) {
    for (const std::string& frontend : frontends) {
      pool_
          .Compile(*input, UnmodifiedVariant(frontend),
                   device_->compile_target())
          .status()
          .IgnoreError();
    }
  }
  lock.lock();
  to_load_.push_back(unit_id);
  device_work_.notify_all();
}

std::vector<std::string> ReplayCore::FrontendsOf(
    const v1::LoadUnitRequest& request) const {
  if (request.frontends_size() > 0)
    return {request.frontends().begin(), request.frontends().end()};
  if (device_->facts().kind == "cpu") return {"clang"};
  return {"clang", "nvrtc"};
}

absl::StatusOr<std::shared_ptr<Evaluator>> ReplayCore::MakeEvaluator(
    const UnitReader& reader, const v1::LoadUnitRequest& request) {
  EvaluatorOptions options = options_.evaluator;
  if (request.has_tolerance()) options.tolerance = request.tolerance();
  options.frontends = FrontendsOf(request);
  options.give_up = &abandoned_;
  ASSIGN_OR_RETURN(std::unique_ptr<Evaluator> evaluator,
                   Evaluator::Create(reader, *device_, pool_, options));
  if (device_->facts().kind != "cpu") evaluator->ExpectSourceVariants();
  return evaluator;
}

// On the device's thread, as all below.
void ReplayCore::Load(const std::string& unit_id,
                      std::unique_lock<std::mutex>& lock) {
  Unit& unit = *FindLocked(unit_id);
  absl::StatusOr<std::shared_ptr<Evaluator>> evaluator;
  const absl::Status room = Evict(unit, lock);
  const absl::Time start = absl::Now();
  if (!room.ok()) {
    evaluator = room;
  } else {
    const UnitReader reader = unit.reader;
    const v1::LoadUnitRequest request = unit.request;
    lock.unlock();
    evaluator = MakeEvaluator(reader, request);
    lock.lock();
  }
  counts_.set_busy_s(counts_.busy_s() +
                     absl::ToDoubleSeconds(absl::Now() - start));
  Finished finished;
  if (evaluator.ok()) {
    unit.evaluator = *std::move(evaluator);
    unit.baseline = FactsOf(unit.evaluator->baseline());
    unit.state = v1::UNIT_STATE_READY;
    ++unit.loads;
    unit.run_since_load = 0;
    for (const std::shared_ptr<Job>& job : std::exchange(unit.parked, {}))
      EnqueueLocked(job, unit);
  } else {
    unit.error = evaluator.status();
    // Others may go, and the device may come back.
    const bool lasting = absl::IsFailedPrecondition(unit.error) ||
                         absl::IsDataLoss(unit.error) ||
                         absl::IsNotFound(unit.error);
    unit.state = lasting ? v1::UNIT_STATE_UNAVAILABLE : v1::UNIT_STATE_EVICTED;
    LOG_WARNING("{} cannot be loaded: {}", unit_id,
                std::string(unit.error.message()));
    HandBackLocked(unit, unit.error, &finished);
  }
  unit_changed_.notify_all();
  finished.CallWithout(lock);
}

const std::string* ReplayCore::LoadableLocked() const {
  if (draining_) return nullptr;
  for (const std::string& id : to_load_) {
    if (MayLoadLocked(*FindLocked(id))) return &id;
  }
  return nullptr;
}

bool ReplayCore::MayLoadLocked(const Unit& incoming) const {
  const auto evicted = ToEvictLocked(incoming);
  if (!evicted.ok()) return true;  // which is told when it is loaded
  const int priority = PriorityOf(incoming);
  return std::all_of(
      evicted->begin(), evicted->end(), [&](const std::string& id) {
        const Unit& unit = *FindLocked(id);
        return unit.run_since_load >= kTurn || !HasWorkLocked(unit, priority);
      });
}

// Of what waits for a unit that is not loaded.
int ReplayCore::PriorityOf(const Unit& incoming) {
  if (incoming.parked.empty()) return 0;  // somebody loads it
  const auto first = std::max_element(
      incoming.parked.begin(), incoming.parked.end(),
      [](const auto& a, const auto& b) { return a->priority < b->priority; });
  return (*first)->priority;
}

bool ReplayCore::HasWorkLocked(const Unit& unit, int least_priority) const {
  return waiting_.PriorityOf(unit.id) >= least_priority ||
         compiled_.PriorityOf(unit.id) >= least_priority ||
         std::any_of(
             compiling_.begin(), compiling_.end(), [&](const auto& job) {
               return job->unit == unit.id && job->priority >= least_priority;
             });
}

absl::StatusOr<std::vector<std::string>> ReplayCore::ToEvictLocked(
    const Unit& incoming) const {
  std::vector<Residency> loaded;
  for (const auto& [id, unit] : units_) {
    if (unit->on_device() && unit.get() != &incoming) {
      loaded.push_back(
          {id, unit->bytes, unit->last_used, unit->lease_end > Now()});
    }
  }
  return ChooseToEvict(std::move(loaded), incoming.bytes,
                       options_.budget_bytes);
}

absl::Status ReplayCore::Evict(const Unit& incoming,
                               std::unique_lock<std::mutex>& lock) {
  for (;;) {
    // Chosen anew each time: leases may have come meanwhile.
    ASSIGN_OR_RETURN(const std::vector<std::string> evicted,
                     ToEvictLocked(incoming));
    if (evicted.empty()) return absl::OkStatus();
    const std::string& id = evicted.front();
    Unit& unit = *FindLocked(id);
    counts_.set_evictions(counts_.evictions() + 1);
    for (JobQueue<Job>* queue : {&waiting_, &compiled_}) {
      for (const std::shared_ptr<Job>& job : queue->RemoveUnit(id))
        Park(job, unit);
    }
    compile_work_.notify_all();  // there is room
    TakeOff(unit, lock);
    unit.state = v1::UNIT_STATE_EVICTED;
    if (!unit.parked.empty()) WantLoadLocked(unit);
    unit_changed_.notify_all();
  }
}

void ReplayCore::TakeOff(Unit& unit, std::unique_lock<std::mutex>& lock) {
  unit.state = v1::UNIT_STATE_UNLOADING;
  unit_changed_.wait(lock, [&] { return !CompilesForLocked(unit); });
  std::shared_ptr<Evaluator> evaluator = std::move(unit.evaluator);
  lock.unlock();
  evaluator.reset();
  lock.lock();
}

bool ReplayCore::MayUnloadLocked(const Unit& unit) const {
  if (!unit.unload_wanted) return false;
  // Or what its loading will ask of the compilers is under way.
  return unit.state != v1::UNIT_STATE_LOADING ||
         std::count(to_load_.begin(), to_load_.end(), unit.id) > 0;
}

void ReplayCore::UnloadWanted(std::unique_lock<std::mutex>& lock) {
  for (const auto& [id, unit] : units_) {
    if (!MayUnloadLocked(*unit)) continue;
    std::erase(to_load_, id);
    if (unit->on_device()) TakeOff(*unit, lock);
    // What was tried once more meanwhile.
    Finished finished;
    HandBackLocked(*unit, absl::CancelledError("its unit was unloaded"),
                   &finished);
    finished.CallWithout(lock);
    unit->state = v1::UNIT_STATE_STORED;
    unit->error = absl::OkStatus();
    unit->lease_end = absl::InfinitePast();
    unit->unload_wanted = false;
    unit_changed_.notify_all();
  }
}

}  // namespace reprise
