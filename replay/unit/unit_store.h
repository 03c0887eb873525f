// Units on disk: a directory of content-addressed, compressed chunks and one
// manifest per unit. docs/unit-format.md is the specification.
//
//   ChunkStore   bytes in and out by SHA-256; chunks that several units share
//   are kept once UnitStore    manifests over a ChunkStore UnitReader   one
//   unit, opened and checked
//
// Thread-safety: all classes may be used from several threads; several
// processes may write one store. Every file appears whole or not at all
// (written beside and renamed). Memory use is bounded by a few chunks per call,
// whatever the size of a blob.
//
// Errors: NOT_FOUND (no such unit or chunk, named), DATA_LOSS (truncated,
// bit-flipped, half-written: which file, what was expected),
// FAILED_PRECONDITION (written by a newer version), INVALID_ARGUMENT (not a
// Reprise file), RESOURCE_EXHAUSTED (disk full).
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
#include "reprise/v1/unit.pb.h"

namespace reprise {

inline constexpr uint32_t kUnitFormatVersion = 1;
inline constexpr uint64_t kChunkBytes = 1 << 20;

class ChunkStore {
 public:
  struct Options {
    std::string directory;
    int compression_level = 1;  // zstd
    bool create = true;
  };
  static absl::StatusOr<std::unique_ptr<ChunkStore>> Open(Options options);
  virtual ~ChunkStore() = default;

  // Cuts bytes into chunks of kChunkBytes and stores those that are new.
  // All-zero chunks are not stored.
  virtual absl::StatusOr<v1::Blob> Put(std::string_view bytes) = 0;

  // The same for bytes that come piece by piece: `next` fills the buffer and
  // returns how many bytes it wrote, 0 at the end. At most `threads` chunks are
  // in flight.
  using Source =
      std::function<absl::StatusOr<size_t>(char* buffer, size_t capacity)>;
  virtual absl::StatusOr<v1::Blob> PutStream(const Source& next) = 0;

  // Calls `sink` with consecutive verified pieces of the blob, in order.
  using Sink = std::function<absl::Status(std::string_view piece)>;
  virtual absl::Status Get(const v1::Blob& blob, const Sink& sink) const = 0;

  // Verified bytes straight into memory of blob.bytes() bytes; `only_if` (may
  // be null) says by chunk index which chunks to read. Uses several threads for
  // large blobs.
  virtual absl::Status GetInto(
      const v1::Blob& blob, char* destination,
      const std::function<bool(size_t chunk)>& only_if = nullptr) const = 0;

  absl::StatusOr<std::string> GetString(const v1::Blob& blob) const;
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

  // The same unit with another manifest over the same chunks, in memory only: learned tolerances, perturbed inputs.
  UnitReader WithManifest(v1::Unit manifest) const { return UnitReader(id_, std::move(manifest), chunks_); }

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
    int compression_level = 1;
  };
  static absl::StatusOr<std::unique_ptr<UnitStore>> Open(Options options);
  virtual ~UnitStore() = default;

  virtual ChunkStore& chunks() = 0;

  // Fills in instance_sha256 and format_version, checks the manifest (ranges
  // sorted and disjoint, chunks present, sizes consistent) and writes it.
  // Returns the unit's id: "<kernel's short name>-<8 hex digits of
  // instance_sha256>". Adding an equal instance again returns the id it has.
  virtual absl::StatusOr<std::string> Add(v1::Unit unit) = 0;

  // By full id, or by a prefix that only one unit has (INVALID_ARGUMENT names
  // the candidates otherwise).
  virtual absl::StatusOr<UnitReader> Open(
      std::string_view id_or_prefix) const = 0;

  // Sorted by id.
  virtual absl::StatusOr<std::vector<UnitListing>> List() const = 0;

  // Removes the manifest; chunks stay until CollectGarbage.
  virtual absl::Status Remove(std::string_view id) = 0;
  // Deletes chunks that no manifest names and that are older than a grace
  // period; returns bytes freed.
  virtual absl::StatusOr<uint64_t> CollectGarbage() = 0;

  // Reads every chunk of a unit and compares digests.
  virtual absl::Status Verify(const UnitReader& unit) const = 0;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_UNIT_STORE_H_
