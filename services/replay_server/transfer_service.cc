#include "services/replay_server/transfer_service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/sha256.h"
#include "services/replay_server/grpc_status.h"

namespace reprise {
namespace {

constexpr int kMostChunks = 4096;
constexpr size_t kDigestBytes = 32;

absl::Status CheckChunk(const v1::Chunk& chunk) {
  const bool digest =
      chunk.sha256().empty() || chunk.sha256().size() == kDigestBytes;
  if (digest && chunk.bytes() > 0 && chunk.bytes() <= kChunkBytes)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "got a chunk of ", chunk.bytes(), " bytes with a digest of ",
      chunk.sha256().size(), " bytes, expected 1 to ", kChunkBytes,
      " bytes and a SHA-256 of ", kDigestBytes, ", or none for zeros"));
}

template <typename Chunks>
absl::Status CheckChunks(const Chunks& chunks) {
  if (chunks.size() > kMostChunks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got ", chunks.size(), " chunks, expected at most ", kMostChunks));
  }
  for (const v1::Chunk& chunk : chunks) {
    if (absl::Status status = CheckChunk(chunk); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PutChunk(const v1::PutChunksRequest& request, ChunkStore& chunks) {
  const v1::Chunk& chunk = request.chunk();
  if (absl::Status status = CheckChunk(chunk); !status.ok()) return status;
  if (chunk.sha256().empty()) return absl::OkStatus();
  if (request.data().size() != chunk.bytes() ||
      Sha256(request.data()) != chunk.sha256()) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", request.data().size(), " bytes with SHA-256 ",
                     HexEncode(Sha256(request.data())), ", expected ",
                     chunk.bytes(), " bytes with ", HexEncode(chunk.sha256())));
  }
  return chunks.Put(request.data()).status();
}

}  // namespace

grpc::Status TransferServiceImpl::FindMissingChunks(
    grpc::ServerContext*, const v1::FindMissingChunksRequest* request,
    v1::FindMissingChunksResponse* response) {
  if (absl::Status status = CheckChunks(request->chunks()); !status.ok())
    return ToGrpc(status);
  for (const v1::Chunk& chunk : request->chunks()) {
    if (!store_.chunks().Has(chunk)) *response->add_missing() = chunk;
  }
  return grpc::Status::OK;
}

grpc::Status TransferServiceImpl::PutChunks(
    grpc::ServerContext*, grpc::ServerReader<v1::PutChunksRequest>* reader,
    v1::PutChunksResponse* response) {
  v1::PutChunksRequest request;
  while (reader->Read(&request)) {
    if (absl::Status status = PutChunk(request, store_.chunks()); !status.ok())
      return ToGrpc(status);
    response->set_chunks(response->chunks() + 1);
  }
  return grpc::Status::OK;
}

grpc::Status TransferServiceImpl::AddUnit(grpc::ServerContext*,
                                          const v1::AddUnitRequest* request,
                                          v1::AddUnitResponse* response) {
  const absl::StatusOr<std::string> id = store_.Add(request->unit());
  if (id.ok()) response->set_unit_id(*id);
  return ToGrpc(id.status());
}

grpc::Status TransferServiceImpl::GetUnit(grpc::ServerContext*,
                                          const v1::GetUnitRequest* request,
                                          v1::GetUnitResponse* response) {
  const absl::StatusOr<UnitReader> unit = store_.Open(request->unit_id());
  if (!unit.ok()) return ToGrpc(unit.status());
  response->set_unit_id(unit->id());
  *response->mutable_unit() = unit->manifest();
  return grpc::Status::OK;
}

grpc::Status TransferServiceImpl::GetChunks(
    grpc::ServerContext*, const v1::GetChunksRequest* request,
    grpc::ServerWriter<v1::GetChunksResponse>* writer) {
  if (absl::Status status = CheckChunks(request->chunks()); !status.ok())
    return ToGrpc(status);
  for (const v1::Chunk& chunk : request->chunks()) {
    v1::GetChunksResponse response;
    *response.mutable_chunk() = chunk;
    response.mutable_data()->resize(chunk.bytes());
    absl::Status status =
        store_.chunks().GetChunk(chunk, response.mutable_data()->data());
    if (!status.ok()) return ToGrpc(status);
    if (!writer->Write(response))
      return {grpc::StatusCode::CANCELLED, "the client is gone"};
  }
  return grpc::Status::OK;
}

}  // namespace reprise
