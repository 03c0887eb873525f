// The ChunkStore over a StoreDirectory, with what the UnitStore needs beside
// the public interface. Thread-safe.
#ifndef REPRISE_REPLAY_UNIT_FILE_CHUNK_STORE_H_
#define REPRISE_REPLAY_UNIT_FILE_CHUNK_STORE_H_

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "replay/unit/frame.h"
#include "replay/unit/store_directory.h"
#include "replay/unit/unit_store.h"

namespace reprise {

class FileChunkStore : public ChunkStore {
 public:
  FileChunkStore(StoreDirectory directory, int compression_level, int threads);

  absl::StatusOr<v1::Blob> Put(std::string_view bytes) override;
  absl::StatusOr<v1::Blob> PutStream(const Source& next) override;
  absl::Status Get(const v1::Blob& blob, const Sink& sink) const override;
  absl::Status GetInto(
      const v1::Blob& blob, char* destination,
      const std::function<bool(size_t chunk)>& only_if) const override;
  absl::Status GetChunk(const v1::Chunk& chunk,
                        char* destination) const override;
  bool Has(const v1::Chunk& chunk) override;

  // Whether the chunk has a file (its contents are not read).
  absl::Status CheckPresent(const v1::Chunk& chunk) const;
  // Reads the chunk and compares its digest.
  absl::Status VerifyChunk(const v1::Chunk& chunk) const;

  const StoreDirectory& directory() const { return directory_; }
  int threads() const { return threads_; }

 private:
  // What PutChunk found: the digest is empty for zeros.
  struct Stored {
    std::string sha256;
    uint64_t bytes = 0;
  };
  absl::StatusOr<Stored> PutChunk(std::string_view bytes);
  // Whether the chunk's file exists and looks whole; then it is made young, so
  // that the garbage collector leaves it alone.
  bool RenewIfPresent(const std::string& path, const FrameHeader& expected);
  absl::Status ReadChunk(const v1::Chunk& chunk, char* destination) const;
  size_t Window() const { return 2 * static_cast<size_t>(threads_); }

  // Codecs are kept for reuse; at most as many exist as threads ever worked at
  // once.
  class BorrowedCodec;

  const StoreDirectory directory_;
  const int compression_level_;
  const int threads_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<FrameCodec>> idle_codecs_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_FILE_CHUNK_STORE_H_
