#include "services/replay_server/replay_service.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "replay/base/status_macros.h"
#include "replay/unit/describe.h"
#include "services/replay_server/grpc_status.h"
#include "services/replay_server/outcome_cache.h"
#include "services/replay_server/tuning.h"

namespace reprise {
namespace {

constexpr char kServerVersion[] = "0.1.0";
constexpr int kMostVariants = 1000;
// How often a call looks whether its client is still there.
constexpr std::chrono::milliseconds kGlance(50);

absl::Status CheckEvaluate(const v1::EvaluateRequest& request) {
  if (request.variants_size() == 0 || request.variants_size() > kMostVariants) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", request.variants_size(),
                     " variants, expected 1 to ", kMostVariants));
  }
  if (!(request.queue_timeout_s() >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("got a queue timeout of ", request.queue_timeout_s(),
                     " s, expected none (0) or a positive one"));
  }
  return absl::OkStatus();
}

class CountedCall {
 public:
  explicit CountedCall(std::atomic<int>* count) : count_(*count) { ++count_; }
  ~CountedCall() { --count_; }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

 private:
  std::atomic<int>& count_;
};

// The answers of one call on their way to its client.
class Answers {
 public:
  void Add(v1::EvaluateResponse response) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ready_.push_back(std::move(response));
    changed_.notify_all();
  }
  // Nothing within a glance: false.
  bool Take(v1::EvaluateResponse* response) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait_for(lock, kGlance, [this] { return !ready_.empty(); }))
      return false;
    *response = std::move(ready_.front());
    ready_.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<v1::EvaluateResponse> ready_;
};

v1::EvaluateResponse Answer(uint32_t index, const Evaluated& evaluated) {
  v1::EvaluateResponse response;
  response.set_index(index);
  response.set_code(static_cast<int32_t>(evaluated.status.code()));
  response.set_message(std::string(evaluated.status.message()));
  if (evaluated.status.ok()) *response.mutable_outcome() = evaluated.outcome;
  response.set_known(evaluated.known);
  return response;
}

EvaluationRequest RequestFor(const v1::EvaluateRequest& request, int index) {
  EvaluationRequest evaluation;
  evaluation.unit_id = request.unit_id();
  evaluation.variant = request.variants(index);
  evaluation.priority = request.priority();
  if (request.queue_timeout_s() > 0)
    evaluation.queue_timeout = absl::Seconds(request.queue_timeout_s());
  evaluation.sampling = request.sampling();
  evaluation.fresh = request.fresh();
  return evaluation;
}

}  // namespace

ReplayServiceImpl::ReplayServiceImpl(
    const UnitStore& store,
    const std::vector<std::unique_ptr<ReplayCore>>& cores)
    : store_(store), cores_(cores), start_(absl::Now()) {}

absl::StatusOr<ReplayCore*> ReplayServiceImpl::CoreOf(
    const std::string& device) const {
  for (const auto& core : cores_) {
    if (device.empty() || core->device().kind == device) return core.get();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "got device '", device, "', this server has ",
      absl::StrJoin(cores_, ", ", [](std::string* out, const auto& core) {
        absl::StrAppend(out, core->device().kind);
      })));
}

grpc::Status ReplayServiceImpl::LoadUnit(grpc::ServerContext* context,
                                         const v1::LoadUnitRequest* request,
                                         v1::LoadUnitResponse* response) {
  const auto load = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(ReplayCore * core, CoreOf(request->device()));
    ASSIGN_OR_RETURN(*response->mutable_unit(), core->LoadUnit(*request, [&] {
      return context->IsCancelled();
    }));
    return absl::OkStatus();
  };
  return ToGrpc(load());
}

grpc::Status ReplayServiceImpl::UnloadUnit(grpc::ServerContext*,
                                           const v1::UnloadUnitRequest* request,
                                           v1::UnloadUnitResponse*) {
  const absl::StatusOr<ReplayCore*> core = CoreOf(request->device());
  if (!core.ok()) return ToGrpc(core.status());
  return ToGrpc((*core)->UnloadUnit(request->unit_id()));
}

grpc::Status ReplayServiceImpl::ListUnits(grpc::ServerContext*,
                                          const v1::ListUnitsRequest*,
                                          v1::ListUnitsResponse* response) {
  const absl::StatusOr<std::vector<UnitListing>> stored = store_.List();
  if (!stored.ok()) return ToGrpc(stored.status());
  std::vector<v1::ServedUnit> units;
  for (const auto& core : cores_) {
    for (v1::ServedUnit& unit : core->Units()) units.push_back(std::move(unit));
  }
  for (const UnitListing& listing : *stored) {
    const bool loaded = std::any_of(
        units.begin(), units.end(),
        [&](const v1::ServedUnit& u) { return u.unit_id() == listing.id; });
    if (loaded) continue;
    v1::ServedUnit& unit = units.emplace_back();
    unit.set_unit_id(listing.id);
    unit.set_state(listing.status.ok() ? v1::UNIT_STATE_STORED
                                       : v1::UNIT_STATE_UNAVAILABLE);
    unit.set_reason(std::string(listing.status.message()));
    unit.set_kernel(listing.manifest.kernel().display_name());
    unit.set_bytes(MemoryBytes(listing.manifest));
  }
  std::sort(units.begin(), units.end(),
            [](const v1::ServedUnit& a, const v1::ServedUnit& b) {
              return std::pair(a.unit_id(), a.device()) <
                     std::pair(b.unit_id(), b.device());
            });
  response->mutable_units()->Add(units.begin(), units.end());
  return grpc::Status::OK;
}

grpc::Status ReplayServiceImpl::RenewLease(grpc::ServerContext*,
                                           const v1::RenewLeaseRequest* request,
                                           v1::RenewLeaseResponse*) {
  const absl::StatusOr<ReplayCore*> core = CoreOf(request->device());
  if (!core.ok()) return ToGrpc(core.status());
  return ToGrpc((*core)->RenewLease(request->unit_id(),
                                    absl::Seconds(request->lease_s())));
}

grpc::Status ReplayServiceImpl::Evaluate(
    grpc::ServerContext* context, const v1::EvaluateRequest* request,
    grpc::ServerWriter<v1::EvaluateResponse>* writer) {
  const CountedCall counted(&streams_);
  if (absl::Status status = CheckEvaluate(*request); !status.ok())
    return ToGrpc(status);
  const absl::StatusOr<ReplayCore*> found = CoreOf(request->device());
  if (!found.ok()) return ToGrpc(found.status());
  ReplayCore& core = **found;
  const auto answers = std::make_shared<Answers>();
  std::vector<std::shared_ptr<ReplayCore::Participant>> asked;
  for (int i = 0; i < request->variants_size(); ++i) {
    const auto index = static_cast<uint32_t>(i);
    auto participant = core.Submit(
        RequestFor(*request, i), [answers, index](const Evaluated& evaluated) {
          answers->Add(Answer(index, evaluated));
        });
    if (participant.ok()) {
      asked.push_back(*std::move(participant));
    } else if (asked.empty() && i == 0) {
      return ToGrpc(participant.status());
    } else {
      answers->Add(Answer(index, {.status = participant.status()}));
    }
  }
  for (int left = request->variants_size(); left > 0;) {
    v1::EvaluateResponse response;
    const bool there = answers->Take(&response);
    if (context->IsCancelled() || (there && !writer->Write(response))) {
      for (const auto& participant : asked) core.Cancel(participant);
      return {grpc::StatusCode::CANCELLED, "the client is gone"};
    }
    if (there) --left;
    core.ExpireWaiting();
  }
  return grpc::Status::OK;
}

grpc::Status ReplayServiceImpl::Tune(
    grpc::ServerContext* context, const v1::TuneRequest* request,
    grpc::ServerWriter<v1::TuneResponse>* writer) {
  const CountedCall counted(&streams_);
  const absl::StatusOr<ReplayCore*> core = CoreOf(request->device());
  if (!core.ok()) return ToGrpc(core.status());
  bool gone = false;
  return ToGrpc(RunTuning(
      **core, *request, [&] { return gone || context->IsCancelled(); },
      [&](const v1::TuneResponse& event) {
        gone = gone || !writer->Write(event);
      }));
}

grpc::Status ReplayServiceImpl::GetDevices(grpc::ServerContext*,
                                           const v1::GetDevicesRequest*,
                                           v1::GetDevicesResponse* response) {
  for (const auto& core : cores_) *response->add_devices() = core->Describe();
  response->set_server_version(kServerVersion);
  response->set_protocol_version(kReplayProtocolVersion);
  return grpc::Status::OK;
}

grpc::Status ReplayServiceImpl::GetStatistics(
    grpc::ServerContext*, const v1::GetStatisticsRequest*,
    v1::GetStatisticsResponse* response) {
  for (const auto& core : cores_) *response->add_devices() = core->Statistics();
  response->set_uptime_s(absl::ToDoubleSeconds(absl::Now() - start_));
  return grpc::Status::OK;
}

}  // namespace reprise
