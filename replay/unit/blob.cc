#include "replay/unit/blob.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"

namespace reprise {

void AppendChunk(std::string sha256, uint64_t bytes, v1::Blob* blob) {
  v1::Chunk* chunk = blob->add_chunks();
  chunk->set_sha256(std::move(sha256));
  chunk->set_bytes(bytes);
  blob->set_bytes(blob->bytes() + bytes);
}

absl::Status CheckBlob(const v1::Blob& blob) {
  uint64_t left = blob.bytes();
  for (int i = 0; i < blob.chunks_size(); ++i) {
    const v1::Chunk& chunk = blob.chunks(i);
    const uint64_t expected = std::min(left, kChunkBytes);
    if (chunk.bytes() != expected || expected == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("chunk ", i, " has ", chunk.bytes(), " bytes, expected ",
                       expected, " of a blob of ", blob.bytes()));
    }
    if (!chunk.sha256().empty() && chunk.sha256().size() != 32) {
      return absl::InvalidArgumentError(
          absl::StrCat("chunk ", i, " has a digest of ", chunk.sha256().size(),
                       " bytes, expected 32 or none"));
    }
    left -= expected;
  }
  if (left > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunks hold ", blob.bytes() - left, " bytes, expected ",
                     blob.bytes()));
  }
  return absl::OkStatus();
}

absl::Status CheckIsChunk(const FrameHeader& header, const v1::Chunk& expected,
                          const std::string& path) {
  if (header.sha256 != expected.sha256()) {
    return absl::DataLossError(absl::StrCat(
        path, " is damaged: it holds chunk ", HexEncode(header.sha256),
        ", expected ", HexEncode(expected.sha256()),
        "; remove the file and record again"));
  }
  if (header.raw_bytes != expected.bytes()) {
    return absl::DataLossError(
        absl::StrCat(path, " holds ", header.raw_bytes, " bytes, expected ",
                     expected.bytes(), ": the unit or the chunk is damaged"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Blob> StoreIntervals(ChunkStore& store,
                                        const IntervalSet& set) {
  return store.Put(set.Encode());
}

absl::StatusOr<IntervalSet> LoadIntervals(const ChunkStore& store,
                                          const v1::Blob& blob,
                                          uint64_t limit) {
  // A number n takes at most max(n, 1) bytes, and all but the first gap are at
  // least 1, so that no set below `limit` takes more than limit + 1 bytes.
  if (limit < kMaxIntervalBlobBytes && blob.bytes() > limit + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "malformed interval set: got ", blob.bytes(), " bytes for a range of ",
        limit, ", expected at most ", limit + 1));
  }
  ASSIGN_OR_RETURN(const std::string bytes,
                   store.GetString(blob, kMaxIntervalBlobBytes));
  return IntervalSet::Decode(bytes, limit);
}

}  // namespace reprise
