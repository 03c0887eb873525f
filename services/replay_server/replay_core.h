// One device of a replay server: units that stay on it, and evaluations that
// stream through. A library; the gRPC server is one of its fronts.
//
// Evaluations wait in two queues: to be compiled, by several threads, and
// compiled, for the device, which one thread drives. While there is work the
// device does not wait for compilers, and compilers do not run further ahead
// than a bounded number of variants. Within a priority the device stays with a
// unit for a while, since another one has to be mapped.
//
// A unit is loaded by LoadUnit, may be evicted when others need its room and no
// lease holds it, and is loaded again when an evaluation wants it.
//
// Equal evaluations are made once: who asks for one that is under way takes
// part in it, and outcomes are kept (outcome_cache.h).
//
// After a fault or a timeout the core does not serve until the unit's
// unmodified kernel has run well again; what waits stays where it is. An
// INFRASTRUCTURE outcome is tried once more.
//
// Thread-safe. Callbacks run on the core's threads, or on the caller's where
// the outcome is known at once, and with no lock held; they must not block.
// Each runs exactly once.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_REPLAY_CORE_H_
#define REPRISE_SERVICES_REPLAY_SERVER_REPLAY_CORE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/compiler/compile_pool.h"
#include "replay/device/device.h"
#include "replay/engine/evaluator.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/replay.pb.h"
#include "services/replay_server/evaluation.h"
#include "services/replay_server/histogram.h"
#include "services/replay_server/job_queue.h"
#include "services/replay_server/outcome_cache.h"

namespace reprise {

class ReplayCore {
 public:
  struct Options {
    // Of memory images of units that are loaded at a time; 0: the device alone
    // decides.
    uint64_t budget_bytes = 0;
    int compile_threads = 2;
    // Variants that are compiled and wait for the device; 0: four times
    // compile_threads.
    int most_compiled = 0;
    size_t most_waiting = 100'000;
    size_t most_kept_outcomes = 20'000;
    // For every unit; tolerance and front ends are the request's.
    EvaluatorOptions evaluator;
    // Null: absl::Now. For leases and time limits.
    std::function<absl::Time()> now;
  };

  // What a caller holds of an evaluation.
  class Participant;

  // `store` and `pool` outlive the core.
  static std::unique_ptr<ReplayCore> Create(Options options,
                                            const UnitStore& store,
                                            std::unique_ptr<Device> device,
                                            CompilePool& pool);
  // As Drain; then waits for what the device does.
  ~ReplayCore();

  const DeviceFacts& device() const { return device_->facts(); }

  // replay.proto says what these mean. LoadUnit blocks, and returns CANCELLED
  // when `given_up` (may be null) becomes true; the unit is loaded all the
  // same.
  absl::StatusOr<v1::ServedUnit> LoadUnit(
      const v1::LoadUnitRequest& request,
      const std::function<bool()>& given_up = nullptr);
  absl::Status UnloadUnit(const std::string& unit_id);
  absl::Status RenewLease(const std::string& unit_id, absl::Duration lease);
  std::vector<v1::ServedUnit> Units() const;

  // An error: it was refused and `done` is not called.
  absl::StatusOr<std::shared_ptr<Participant>> Submit(EvaluationRequest request,
                                                      EvaluationCallback done);
  // Ends it as CANCELLED unless it has ended. What the device has begun it
  // finishes.
  void Cancel(const std::shared_ptr<Participant>& participant);
  // Ends evaluations that waited longer than they may. The device's thread
  // looks too whenever it can.
  void ExpireWaiting();

  // What a tuner has to know of a unit that is ready. NOT_FOUND,
  // FAILED_PRECONDITION: it is not.
  struct TuningFacts {
    v1::Unit manifest;  // with learned tolerances
    BaselineReport baseline;
  };
  absl::StatusOr<TuningFacts> FactsForTuning(const std::string& unit_id) const;

  v1::ServedDevice Describe() const;
  v1::DeviceStatistics Statistics() const;
  int compile_threads() const { return options_.compile_threads; }

  // Takes nothing any more, and hands back as UNAVAILABLE what the device has
  // not begun.
  void Drain();
  // Then ends what is being measured and compiled, as INFRASTRUCTURE, within a
  // launch's time limit. The compile pool is of no more use to anybody.
  void Abandon();

 private:
  struct Unit;
  struct Job;
  // Callbacks to make when the lock is given up.
  class Finished;
  enum class Health { kServing, kRecovering };

  ReplayCore(Options options, const UnitStore& store,
             std::unique_ptr<Device> device, CompilePool& pool);

  absl::Time Now() const;
  // Functions ending in Locked require mutex_.
  absl::Status NotLoaded(const std::string& unit_id,
                         const char* advice = "") const;
  // Whether a compile is under way that uses its evaluator.
  bool CompilesForLocked(const Unit& unit) const;
  Unit* FindLocked(const std::string& unit_id) const;
  absl::StatusOr<Unit*> AdmitLocked(const v1::LoadUnitRequest& request,
                                    UnitReader reader);
  void WantLoadLocked(Unit& unit);
  // Until it was loaded once more than `before`.
  absl::Status WaitUntilLoaded(Unit& unit, uint64_t before,
                               const std::function<bool()>& given_up,
                               std::unique_lock<std::mutex>& lock);
  void FillLocked(const Unit& unit, v1::ServedUnit* served) const;
  bool JoinLocked(const std::string& key,
                  const std::shared_ptr<Participant>& participant,
                  int priority);
  void EnqueueLocked(const std::shared_ptr<Job>& job, Unit& unit);
  // Until its unit is loaded.
  static void Park(const std::shared_ptr<Job>& job, Unit& unit);
  void EndLocked(const std::shared_ptr<Job>& job, const absl::Status& status,
                 Finished* finished);
  void ForgetLocked(const std::shared_ptr<Job>& job);
  void DropUnwantedLocked(const std::shared_ptr<Job>& job);
  void HandBackLocked(Unit& unit, const absl::Status& status,
                      Finished* finished);
  void ExpireLocked(Finished* finished);

  void RunCompiler();
  void CompileFor(const std::shared_ptr<Job>& job,
                  std::unique_lock<std::mutex>& lock);
  void Prebuild(const std::string& unit_id, std::unique_lock<std::mutex>& lock);

  void RunDevice();
  bool WaitForWork(std::unique_lock<std::mutex>& lock);
  std::shared_ptr<Job> NextJobLocked();
  void Load(const std::string& unit_id, std::unique_lock<std::mutex>& lock);
  absl::StatusOr<std::shared_ptr<Evaluator>> MakeEvaluator(
      const UnitReader& reader, const v1::LoadUnitRequest& request);
  const std::string* LoadableLocked() const;  // null: none
  static int PriorityOf(const Unit& incoming);
  // Of this priority or a larger one.
  bool HasWorkLocked(const Unit& unit, int least_priority) const;
  absl::StatusOr<std::vector<std::string>> ToEvictLocked(
      const Unit& incoming) const;
  // False: who would have to go has not had its turn.
  bool MayLoadLocked(const Unit& incoming) const;
  absl::Status Evict(const Unit& incoming, std::unique_lock<std::mutex>& lock);
  void TakeOff(Unit& unit, std::unique_lock<std::mutex>& lock);
  bool MayUnloadLocked(const Unit& unit) const;
  void UnloadWanted(std::unique_lock<std::mutex>& lock);
  void Run(const std::shared_ptr<Job>& job, std::unique_lock<std::mutex>& lock);
  std::vector<std::string> FrontendsOf(
      const v1::LoadUnitRequest& request) const;
  v1::Outcome Measure(Evaluator& evaluator, const Job& job) const;
  // Of a variant that did not build.
  void EndUnbuilt(const std::shared_ptr<Job>& job, v1::Outcome outcome,
                  Finished* finished);
  void Settle(const std::shared_ptr<Job>& job, v1::Outcome outcome,
              Finished* finished);
  // Whether an outcome says so little that it is to be tried once more.
  bool IsTriedAgainLocked(const Job& job, const v1::Outcome& outcome) const;
  void Recover(Unit& unit, absl::Time fault,
               std::unique_lock<std::mutex>& lock);
  void CountLocked(const v1::Outcome& outcome, absl::Duration since_request);

  const Options options_;
  const UnitStore& store_;
  const std::unique_ptr<Device> device_;
  CompilePool& pool_;

  mutable std::mutex mutex_;
  std::condition_variable compile_work_, device_work_, unit_changed_;
  std::map<std::string, std::unique_ptr<Unit>> units_;
  std::deque<std::string> to_prebuild_, to_load_;
  JobQueue<Job> waiting_, compiled_;
  std::set<std::shared_ptr<Job>> compiling_;
  std::map<std::string, std::shared_ptr<Job>> under_way_;  // by outcome key
  OutcomeCache outcomes_;
  bool draining_ = false, stopped_ = false;
  std::atomic<bool> abandoned_ = false;
  uint64_t next_sequence_ = 1, next_use_ = 1;
  // No participant's time is over before.
  absl::Time next_expiry_ = absl::InfiniteFuture();

  // What the device is at.
  Health health_ = Health::kServing;
  std::string fault_;  // what it recovers from
  std::string last_unit_;
  int in_a_row_ = 0;

  v1::DeviceStatistics counts_;  // the plain counters of it
  struct StageHistograms {
    Histogram queue, compile, load, verify, time, outcome;
  };
  std::map<std::string, StageHistograms> stages_;  // by kind of outcome
  Histogram recovery_;

  std::vector<std::thread> threads_;
};

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_REPLAY_CORE_H_
