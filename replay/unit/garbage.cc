// FileUnitStore's garbage collection.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "replay/base/file_util.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/unit/file_unit_store.h"
#include "replay/unit/manifest.h"

namespace reprise {
namespace {

// Files in tmp/ younger than this may be a living writer's, whatever the grace
// period.
constexpr absl::Duration kTemporaryGrace = absl::Minutes(10);

struct FileFacts {
  uint64_t bytes;
  absl::Time modified;
};

// Nothing where the file is gone.
std::optional<FileFacts> Facts(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return std::nullopt;
  return FileFacts{static_cast<uint64_t>(info.st_size),
                   absl::TimeFromTimespec(info.st_mtim)};
}

absl::StatusOr<std::vector<std::string>> NamesIfAny(const std::string& path) {
  absl::StatusOr<std::vector<std::string>> names = ListDirectory(path);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  return names;
}

}  // namespace

absl::StatusOr<uint64_t> FileUnitStore::CollectGarbage() {
  ASSIGN_OR_RETURN(const StoreLock lock, directory_.Lock(/*exclusive=*/true));
  const absl::Time now = absl::Now();
  ASSIGN_OR_RETURN(const std::set<std::string> named, NamedChunks());
  ASSIGN_OR_RETURN(const uint64_t chunk_bytes,
                   RemoveOldChunks(named, now - garbage_grace_));
  ASSIGN_OR_RETURN(
      const uint64_t temporary_bytes,
      RemoveOldTemporaries(now - std::max(garbage_grace_, kTemporaryGrace)));
  return chunk_bytes + temporary_bytes;
}

absl::StatusOr<std::set<std::string>> FileUnitStore::NamedChunks() const {
  std::set<std::string> named;
  ASSIGN_OR_RETURN(const std::vector<UnitListing> listings, List());
  for (const UnitListing& listing : listings) {
    if (!listing.status.ok()) {
      // A unit without any manifest names nothing.
      const std::string manifest = directory_.ManifestPath(listing.id);
      if (!Facts(manifest).has_value()) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot tell which chunks unit ", listing.id, " needs (",
          std::string(listing.status.message()),
          "); remove that unit, or collect with the Reprise that wrote it"));
    }
    RETURN_IF_ERROR(ForEachBlob(
        listing.manifest, [&](const std::string&, const v1::Blob& blob) {
          for (const v1::Chunk& chunk : blob.chunks()) {
            const std::string hex = HexEncode(chunk.sha256());
            if (!hex.empty())
              named.insert(absl::StrCat(hex.substr(0, 2), "/", hex.substr(2)));
          }
          return absl::OkStatus();
        }));
  }
  return named;
}

absl::StatusOr<uint64_t> FileUnitStore::RemoveOldChunks(
    const std::set<std::string>& named, absl::Time before) {
  uint64_t freed = 0;
  ASSIGN_OR_RETURN(const std::vector<std::string> folders,
                   NamesIfAny(directory_.ChunksPath()));
  for (const std::string& folder : folders) {
    ASSIGN_OR_RETURN(
        const std::vector<std::string> files,
        NamesIfAny(absl::StrCat(directory_.ChunksPath(), "/", folder)));
    for (const std::string& file : files) {
      const std::string name = absl::StrCat(folder, "/", file);
      if (named.count(name) > 0) continue;
      const std::string path = absl::StrCat(directory_.ChunksPath(), "/", name);
      const std::optional<FileFacts> facts = Facts(path);
      if (!facts.has_value() || facts->modified >= before) continue;
      RETURN_IF_ERROR(directory_.file_system().Remove(path));
      freed += facts->bytes;
    }
  }
  return freed;
}

absl::StatusOr<uint64_t> FileUnitStore::RemoveOldTemporaries(
    absl::Time before) {
  uint64_t freed = 0;
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   NamesIfAny(directory_.TemporariesPath()));
  for (const std::string& name : names) {
    const std::string path =
        absl::StrCat(directory_.TemporariesPath(), "/", name);
    const std::optional<FileFacts> facts = Facts(path);
    if (!facts.has_value() || facts->modified >= before) continue;
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) {
      return ErrnoToStatus(error.value(), absl::StrCat("cannot remove ", path));
    }
    freed += facts->bytes;
  }
  return freed;
}

}  // namespace reprise
