// UnitTransferService of replay.proto over a unit store. Thread-safe.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_TRANSFER_SERVICE_H_
#define REPRISE_SERVICES_REPLAY_SERVER_TRANSFER_SERVICE_H_

#include "replay/unit/unit_store.h"
#include "reprise/v1/replay.grpc.pb.h"

namespace reprise {

class TransferServiceImpl final : public v1::UnitTransferService::Service {
 public:
  explicit TransferServiceImpl(UnitStore& store) : store_(store) {}

  grpc::Status FindMissingChunks(
      grpc::ServerContext* context, const v1::FindMissingChunksRequest* request,
      v1::FindMissingChunksResponse* response) override;
  grpc::Status PutChunks(grpc::ServerContext* context,
                         grpc::ServerReader<v1::PutChunksRequest>* reader,
                         v1::PutChunksResponse* response) override;
  grpc::Status AddUnit(grpc::ServerContext* context,
                       const v1::AddUnitRequest* request,
                       v1::AddUnitResponse* response) override;
  grpc::Status GetUnit(grpc::ServerContext* context,
                       const v1::GetUnitRequest* request,
                       v1::GetUnitResponse* response) override;
  grpc::Status GetChunks(
      grpc::ServerContext* context, const v1::GetChunksRequest* request,
      grpc::ServerWriter<v1::GetChunksResponse>* writer) override;

 private:
  UnitStore& store_;
};

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_TRANSFER_SERVICE_H_
