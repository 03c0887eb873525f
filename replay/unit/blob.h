// Blobs: the rules a blob keeps, and the blobs that hold interval sets.
// Thread-safe.
#ifndef REPRISE_REPLAY_UNIT_BLOB_H_
#define REPRISE_REPLAY_UNIT_BLOB_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/unit/frame.h"
#include "replay/unit/interval_set.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

// An encoded interval set larger than this is refused on reading.
inline constexpr uint64_t kMaxIntervalBlobBytes = uint64_t{512} << 20;

void AppendChunk(std::string sha256, uint64_t bytes, v1::Blob* blob);

// INVALID_ARGUMENT unless chunks are kChunkBytes long (the last one may be
// shorter, none is empty), their lengths add up to blob.bytes, and digests have
// 32 bytes or none.
absl::Status CheckBlob(const v1::Blob& blob);

// DATA_LOSS unless a chunk file's header is that of the chunk one asked for.
absl::Status CheckIsChunk(const FrameHeader& header, const v1::Chunk& expected,
                          const std::string& path);

// An interval set as a blob, as the read and write sets of a range are kept.
absl::StatusOr<v1::Blob> StoreIntervals(ChunkStore& store,
                                        const IntervalSet& set);

// INVALID_ARGUMENT where the blob is no interval set, or has a byte at or past
// `limit` (the range's bytes); otherwise as ChunkStore::Get.
absl::StatusOr<IntervalSet> LoadIntervals(const ChunkStore& store,
                                          const v1::Blob& blob, uint64_t limit);

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_BLOB_H_
