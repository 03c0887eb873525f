// ReplayService of replay.proto over the cores of a node's devices.
//
// A call has a thread of its own. Outcomes of an Evaluate wait in its own list
// until the client takes them, so a slow client holds up nobody; the list is
// bounded by what the call asked for. Thread-safe.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_REPLAY_SERVICE_H_
#define REPRISE_SERVICES_REPLAY_SERVER_REPLAY_SERVICE_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/replay.grpc.pb.h"
#include "services/replay_server/replay_core.h"

namespace reprise {

class ReplayServiceImpl final : public v1::ReplayService::Service {
 public:
  // Both outlive the service.
  ReplayServiceImpl(const UnitStore& store,
                    const std::vector<std::unique_ptr<ReplayCore>>& cores);

  grpc::Status LoadUnit(grpc::ServerContext* context,
                        const v1::LoadUnitRequest* request,
                        v1::LoadUnitResponse* response) override;
  grpc::Status UnloadUnit(grpc::ServerContext* context,
                          const v1::UnloadUnitRequest* request,
                          v1::UnloadUnitResponse* response) override;
  grpc::Status ListUnits(grpc::ServerContext* context,
                         const v1::ListUnitsRequest* request,
                         v1::ListUnitsResponse* response) override;
  grpc::Status RenewLease(grpc::ServerContext* context,
                          const v1::RenewLeaseRequest* request,
                          v1::RenewLeaseResponse* response) override;
  grpc::Status Evaluate(
      grpc::ServerContext* context, const v1::EvaluateRequest* request,
      grpc::ServerWriter<v1::EvaluateResponse>* writer) override;
  grpc::Status Tune(grpc::ServerContext* context,
                    const v1::TuneRequest* request,
                    grpc::ServerWriter<v1::TuneResponse>* writer) override;
  grpc::Status GetDevices(grpc::ServerContext* context,
                          const v1::GetDevicesRequest* request,
                          v1::GetDevicesResponse* response) override;
  grpc::Status GetStatistics(grpc::ServerContext* context,
                             const v1::GetStatisticsRequest* request,
                             v1::GetStatisticsResponse* response) override;

  // Evaluate and Tune calls that have not returned.
  int streams() const { return streams_; }

 private:
  // Empty: the first. INVALID_ARGUMENT names those that there are.
  absl::StatusOr<ReplayCore*> CoreOf(const std::string& device) const;

  const UnitStore& store_;
  const std::vector<std::unique_ptr<ReplayCore>>& cores_;
  const absl::Time start_;
  std::atomic<int> streams_ = 0;
};

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_REPLAY_SERVICE_H_
