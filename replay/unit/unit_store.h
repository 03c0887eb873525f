// Units on disk: a directory of content-addressed, compressed chunks and one
// manifest per unit. docs/unit-format.md is the specification.
//
// ChunkStore: bytes in and out by SHA-256; what units share is kept once.
// UnitStore: manifests over a ChunkStore.
// UnitReader: one unit, opened and checked.
//
// Thread-safety: all classes may be used from several threads; several
// processes may write one store. Every file appears whole or not at all
// (written under tmp/ and renamed), also when a process is killed. Nothing is
// synced to the disk: after a power failure the last units may be reported as
// DATA_LOSS. Memory use is bounded by two chunks per thread and call, whatever
// the size of a blob.
//
// Errors: NOT_FOUND (no such unit or chunk, named), DATA_LOSS (truncated,
// bit-flipped, half-written: which file, what was expected),
// FAILED_PRECONDITION (written by a newer version), INVALID_ARGUMENT (not a
// Reprise file, or a blob or unit that breaks the rules), RESOURCE_EXHAUSTED
// (disk full: nothing of what was being written is visible, all else is
// intact).
#ifndef REPRISE_REPLAY_UNIT_UNIT_STORE_H_
#define REPRISE_REPLAY_UNIT_UNIT_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/unit/file_system.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

inline constexpr uint32_t kUnitFormatVersion = 1;
// Every chunk of a blob but the last has this size: chunk i begins at byte
// i * kChunkBytes, and equal bytes always give equal blobs.
inline constexpr uint64_t kChunkBytes = 1 << 20;

class ChunkStore {
 public:
  struct Options {
    std::string directory;      // of the whole store, as UnitStore's
    int compression_level = 1;  // zstd, 1 to 19
    bool create = true;
    int threads = 0;  // per call; 0: as many as the machine has, up to 16
    std::shared_ptr<FileSystem> file_system = nullptr;  // null: the real one
  };
  static absl::StatusOr<std::unique_ptr<ChunkStore>> Open(Options options);
  virtual ~ChunkStore() = default;

  // Cuts bytes into chunks of kChunkBytes and stores those that are new.
  // All-zero chunks are not stored.
  virtual absl::StatusOr<v1::Blob> Put(std::string_view bytes) = 0;

  // The same for bytes that come piece by piece: `next` fills the buffer and
  // returns how many bytes it wrote, 0 at the end. It is called by the caller's
  // thread while others compress; at most two chunks per thread are in flight.
  using Source =
      std::function<absl::StatusOr<size_t>(char* buffer, size_t capacity)>;
  virtual absl::StatusOr<v1::Blob> PutStream(const Source& next) = 0;

  // Calls `sink` with consecutive verified pieces of the blob, in order, on the
  // caller's thread while others read ahead. An error of `sink` ends it.
  using Sink = std::function<absl::Status(std::string_view piece)>;
  virtual absl::Status Get(const v1::Blob& blob, const Sink& sink) const = 0;

  // Verified bytes straight into memory of blob.bytes() bytes; `only_if` (may
  // be null) says by chunk index which chunks to read and may be called by
  // several threads at once; bytes of other chunks are left alone. Zero chunks
  // are written as zeros. Uses several threads from two chunks on. After an
  // error the contents of `destination` are undefined.
  virtual absl::Status GetInto(
      const v1::Blob& blob, char* destination,
      const std::function<bool(size_t chunk)>& only_if = nullptr) const = 0;

  // Verified bytes of one chunk, or zeros, into memory of chunk.bytes() bytes,
  // on the caller's thread. After an error they are undefined.
  virtual absl::Status GetChunk(const v1::Chunk& chunk,
                                char* destination) const = 0;

  // Whether the chunk is here and looks whole; then it is as young as one that
  // was put now, for CollectGarbage. Zero chunks are always here. Of a store in
  // files only.
  virtual bool Has(const v1::Chunk& chunk) {
    (void)chunk;
    return false;
  }

  // RESOURCE_EXHAUSTED where the blob has more than `limit` bytes.
  absl::StatusOr<std::string> GetString(const v1::Blob& blob,
                                        uint64_t limit = uint64_t{1}
                                                         << 30) const;
};

// A unit that was opened and whose manifest was checked. Cheap to copy chunks
// from; keeps the store alive.
class UnitReader {
 public:
  UnitReader(std::string id, v1::Unit manifest,
             std::shared_ptr<const ChunkStore> chunks);
  const std::string& id() const { return id_; }
  const v1::Unit& manifest() const { return manifest_; }
  const ChunkStore& chunks() const { return *chunks_; }

  // The same unit with another manifest over the same chunks, in memory only:
  // learned tolerances, perturbed inputs.
  UnitReader WithManifest(v1::Unit manifest) const {
    return UnitReader(id_, std::move(manifest), chunks_);
  }

 private:
  std::string id_;
  v1::Unit manifest_;
  std::shared_ptr<const ChunkStore> chunks_;
};

struct UnitListing {
  std::string id;
  v1::Unit manifest;
  absl::Status status;  // of reading it; a broken unit is listed with its error
};

class UnitStore {
 public:
  struct Options {
    std::string directory;
    bool create = true;
    int compression_level = 1;  // zstd, 1 to 19
    int threads = 0;            // as ChunkStore's
    // How long CollectGarbage spares chunks that no manifest names: a recording
    // puts chunks first and adds the unit at its end.
    absl::Duration garbage_grace = absl::Hours(1);
    std::shared_ptr<FileSystem> file_system = nullptr;  // null: the real one
  };
  static absl::StatusOr<std::unique_ptr<UnitStore>> Open(Options options);
  virtual ~UnitStore() = default;

  virtual ChunkStore& chunks() = 0;

  // Fills in instance_sha256 and format_version, checks the manifest (ranges
  // sorted and disjoint, chunks present, sizes consistent) and writes it.
  // Returns the unit's id: "<kernel's short name>-<8 hex digits of
  // instance_sha256>", with more digits where another instance has that id.
  // Adding an equal instance again returns the id it has and changes nothing;
  // where the unit that has it is broken, this mends it. NOT_FOUND names the
  // blob a chunk of which is not in the store.
  virtual absl::StatusOr<std::string> Add(v1::Unit unit) = 0;

  // Replaces the manifest of a unit by one of the same instance: for facts
  // learned after recording (read and write sets, work, tolerances,
  // determinism). INVALID_ARGUMENT where the instance differs.
  virtual absl::Status Update(std::string_view id, v1::Unit unit) = 0;

  // By full id, or by a prefix that only one unit has (INVALID_ARGUMENT names
  // the candidates otherwise).
  virtual absl::StatusOr<UnitReader> Open(
      std::string_view id_or_prefix) const = 0;

  // Sorted by id. The error is that of listing the store, never of one unit.
  virtual absl::StatusOr<std::vector<UnitListing>> List() const = 0;

  // Removes the manifest, broken or not, of a full id; chunks stay until
  // CollectGarbage.
  virtual absl::Status Remove(std::string_view id) = 0;
  // Deletes chunks that no manifest names, and leftovers of killed writers,
  // that are older than the grace period; returns bytes freed.
  // FAILED_PRECONDITION, deleting nothing, while a manifest cannot be read: it
  // may name any chunk.
  virtual absl::StatusOr<uint64_t> CollectGarbage() = 0;

  // Reads every chunk of a unit and compares digests; names the first that is
  // wrong and what it is part of.
  virtual absl::Status Verify(const UnitReader& unit) const = 0;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_UNIT_STORE_H_
