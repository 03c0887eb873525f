// Chunks that stay where they are in memory: for units that are loaded once and
// never kept, so that nothing is hashed, compressed or written. What stands for
// a chunk's digest is its number. From one thread at a time, but for Get,
// GetInto and GetChunk.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_BORROWED_CHUNKS_H_
#define REPRISE_REPLAY_RECORDER_SESSION_BORROWED_CHUNKS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/unit/unit_store.h"

namespace reprise {

class BorrowedChunks : public ChunkStore {
 public:
  // The bytes stay where they are and as they are.
  v1::Blob Borrow(std::string_view bytes);
  // The chunks of `base`, but for those that `other` has other bytes for: as
  // many, and null where they are the same.
  v1::Blob BorrowChanged(const v1::Blob& base,
                         const std::function<const char*(size_t chunk)>& other);

  // Keeps a copy.
  absl::StatusOr<v1::Blob> Put(std::string_view bytes) override;
  absl::StatusOr<v1::Blob> PutStream(const Source& next) override;
  absl::Status Get(const v1::Blob& blob, const Sink& sink) const override;
  absl::Status GetInto(const v1::Blob& blob, char* destination,
                       const std::function<bool(size_t chunk)>& only_if =
                           nullptr) const override;
  absl::Status GetChunk(const v1::Chunk& chunk,
                        char* destination) const override;

 private:
  std::string Number(std::string_view chunk);
  absl::StatusOr<std::string_view> Find(const v1::Chunk& chunk) const;

  std::vector<std::string_view> chunks_;
  std::deque<std::string> copies_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_BORROWED_CHUNKS_H_
