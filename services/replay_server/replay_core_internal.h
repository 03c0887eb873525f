// What the parts of ReplayCore share.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_REPLAY_CORE_INTERNAL_H_
#define REPRISE_SERVICES_REPLAY_SERVER_REPLAY_CORE_INTERNAL_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "services/replay_server/replay_core.h"

namespace reprise {

class ReplayCore::Participant {
 public:
  EvaluationCallback done;
  std::weak_ptr<Job> job;
  absl::Time asked;
  absl::Time expires = absl::InfiniteFuture();
  bool ended = false;
};

struct ReplayCore::Job {
  enum class Stage {
    kParked,
    kWaiting,
    kCompiling,
    kCompiled,
    kRunning,
    kOver
  };

  bool wanted() const {
    for (const auto& participant : participants) {
      if (!participant->ended) return true;
    }
    return false;
  }
  bool begun() const {
    return stage == Stage::kRunning || stage == Stage::kOver;
  }

  std::string unit;
  int priority = 0;
  uint64_t sequence = 0;
  EvaluationRequest request;
  std::string key;  // of its outcome; empty: nobody may share it
  Stage stage = Stage::kParked;
  std::vector<std::shared_ptr<Participant>> participants;
  absl::Time asked;
  double compile_ms = 0;
  // From when it is compiled until it ends or its unit makes room.
  std::optional<v1::CompileReply> code;
  int attempts = 0;
};

struct ReplayCore::Unit {
  bool on_device() const { return evaluator != nullptr; }

  std::string id;
  UnitReader reader;
  v1::LoadUnitRequest request = {};
  uint64_t bytes = 0;
  v1::UnitState state = v1::UNIT_STATE_STORED;
  absl::Status error = {};  // why it is not there, where that is one
  absl::Time lease_end = absl::InfinitePast();
  uint64_t last_used = 0;
  uint64_t loads = 0;
  uint64_t run_since_load = 0;
  bool unload_wanted = false;
  std::shared_ptr<Evaluator> evaluator = nullptr;
  v1::BaselineFacts baseline = {};
  std::vector<std::shared_ptr<Job>> parked = {};  // until it is loaded
};

class ReplayCore::Finished {
 public:
  void Add(Participant& participant, Evaluated evaluated) {
    participant.ended = true;
    calls_.emplace_back(std::move(participant.done), std::move(evaluated));
    participant.done = nullptr;
  }
  // While `lock` is given up.
  void CallWithout(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    Call();
    lock.lock();
  }
  // Without a lock.
  void Call() {
    for (auto& [done, evaluated] : calls_) done(evaluated);
    calls_.clear();
  }

 private:
  std::vector<std::pair<EvaluationCallback, Evaluated>> calls_;
};

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_REPLAY_CORE_INTERNAL_H_
