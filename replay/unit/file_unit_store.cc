#include "replay/unit/file_unit_store.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "replay/base/file_util.h"
#include "replay/base/sha256.h"
#include "replay/base/status_macros.h"
#include "replay/unit/digest.h"
#include "replay/unit/manifest.h"
#include "replay/unit/ordered_workers.h"

namespace reprise {
namespace {

constexpr size_t kShortDigits = 8;
constexpr size_t kMaxCandidates = 8;

absl::Status Annotate(const absl::Status& status, const std::string& where) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(where, ": ", std::string(status.message())));
}

// A name that is a directory of its own under units/, and no path.
bool IsPlainName(std::string_view id) {
  return !id.empty() && id[0] != '.' &&
         id.find('/') == std::string_view::npos &&
         id.find('\0') == std::string_view::npos;
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// All of a file, unless it is too large for a manifest, whatever it is then.
absl::StatusOr<std::string> ReadManifestFile(const std::string& path) {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kFrameHeaderBytes + kMaxManifestBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is no unit manifest: it has ", bytes,
        " bytes, expected at most ", kFrameHeaderBytes + kMaxManifestBytes));
  }
  return ReadFile(path);
}

}  // namespace

FileUnitStore::FileUnitStore(StoreDirectory directory,
                             std::shared_ptr<FileChunkStore> chunks,
                             absl::Duration garbage_grace)
    : directory_(std::move(directory)),
      chunks_(std::move(chunks)),
      garbage_grace_(garbage_grace) {}

absl::StatusOr<std::string> FileUnitStore::Add(v1::Unit unit) {
  unit.set_format_version(kUnitFormatVersion);
  unit.set_instance_sha256(InstanceDigest(unit));
  RETURN_IF_ERROR(CheckUnit(unit));
  ASSIGN_OR_RETURN(const std::string manifest, EncodeManifest(unit));
  // From here on the garbage collector waits.
  ASSIGN_OR_RETURN(const StoreLock lock, directory_.Lock(/*exclusive=*/false));
  RETURN_IF_ERROR(CheckChunksPresent(unit));
  return Place(unit, manifest);
}

absl::StatusOr<std::string> FileUnitStore::Place(const v1::Unit& unit,
                                                 const std::string& manifest) {
  const std::string hex = HexEncode(unit.instance_sha256());
  const std::string name = ShortKernelName(unit.kernel());
  size_t digits = kShortDigits;
  while (digits <= hex.size()) {
    const std::string id = absl::StrCat(name, "-", hex.substr(0, digits));
    if (!Exists(directory_.UnitPath(id))) {
      ASSIGN_OR_RETURN(const bool placed, PlaceNew(id, manifest));
      if (placed) return id;
    }
    const absl::StatusOr<v1::Unit> present = ReadManifest(id);
    if (present.ok() && present->instance_sha256() == unit.instance_sha256())
      return id;
    if (present.ok()) {
      digits += 4;  // another instance whose digest begins alike
      continue;
    }
    if (absl::IsNotFound(present.status())) continue;  // removed meanwhile
    if (!absl::IsDataLoss(present.status()) &&
        !absl::IsInvalidArgument(present.status())) {
      return present.status();
    }
    // What is there under this name is broken or half written: mend it.
    const std::string_view parts[] = {manifest};
    RETURN_IF_ERROR(directory_.WriteFile(directory_.ManifestPath(id), parts));
    return id;
  }
  return absl::InternalError(
      absl::StrCat("two instances have the digest ", hex));
}

absl::StatusOr<bool> FileUnitStore::PlaceNew(const std::string& id,
                                             std::string_view manifest) {
  const std::string target = directory_.UnitPath(id);
  FileSystem& files = directory_.file_system();
  ASSIGN_OR_RETURN(const std::string temporary, directory_.NewTemporaryPath());
  const std::string file = temporary + "/manifest";
  const std::string_view parts[] = {manifest};
  absl::Status status = files.MakeDirectory(temporary);
  if (status.ok()) status = files.WriteNewFile(file, parts);
  if (status.ok()) status = directory_.MakeParent(target);
  if (status.ok()) status = files.Rename(temporary, target);
  if (status.ok()) return true;
  files.Remove(file).IgnoreError();
  files.Remove(temporary).IgnoreError();
  if (Exists(target)) return false;
  return status;
}

absl::Status FileUnitStore::Update(std::string_view id, v1::Unit unit) {
  const std::string name(id);
  ASSIGN_OR_RETURN(const StoreLock lock, directory_.Lock(/*exclusive=*/false));
  ASSIGN_OR_RETURN(const v1::Unit present, ReadManifest(name));
  unit.set_format_version(kUnitFormatVersion);
  unit.set_instance_sha256(InstanceDigest(unit));
  if (unit.instance_sha256() != present.instance_sha256()) {
    return absl::InvalidArgumentError(
        absl::StrCat("an update of unit ", name, " has instance ",
                     HexEncode(unit.instance_sha256()), ", expected ",
                     HexEncode(present.instance_sha256()),
                     ": code, launch, arguments and prologue must stay; add a "
                     "unit instead"));
  }
  RETURN_IF_ERROR(CheckUnit(unit));
  ASSIGN_OR_RETURN(const std::string manifest, EncodeManifest(unit));
  RETURN_IF_ERROR(CheckChunksPresent(unit));
  const std::string_view parts[] = {manifest};
  return directory_.WriteFile(directory_.ManifestPath(name), parts);
}

absl::Status FileUnitStore::CheckChunksPresent(const v1::Unit& unit) const {
  std::set<std::string_view> seen;
  return ForEachBlob(unit, [&](const std::string& name, const v1::Blob& blob) {
    for (const v1::Chunk& chunk : blob.chunks()) {
      if (chunk.sha256().empty() || !seen.insert(chunk.sha256()).second)
        continue;
      RETURN_IF_ERROR(Annotate(chunks_->CheckPresent(chunk), name));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<v1::Unit> FileUnitStore::ReadManifest(
    const std::string& id) const {
  if (!IsPlainName(id)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", id, "\" is no unit id, expected a name"));
  }
  const std::string path = directory_.ManifestPath(id);
  absl::StatusOr<std::string> file = ReadManifestFile(path);
  if (file.ok()) return DecodeManifest(*file, path);
  if (!absl::IsNotFound(file.status())) return file.status();
  if (!Exists(directory_.UnitPath(id))) {
    return absl::NotFoundError(
        absl::StrCat("no unit ", id, " in ", directory_.root()));
  }
  return absl::DataLossError(
      absl::StrCat("unit ", id, " is half written: got no file ", path,
                   "; remove the unit and record it again"));
}

absl::StatusOr<std::vector<std::string>> FileUnitStore::Ids() const {
  absl::StatusOr<std::vector<std::string>> names =
      ListDirectory(directory_.UnitsPath());
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  if (!names.ok()) return names.status();
  std::vector<std::string> ids;
  for (std::string& name : *names) {
    std::error_code ignored;
    if (IsPlainName(name) &&
        std::filesystem::is_directory(directory_.UnitPath(name), ignored)) {
      ids.push_back(std::move(name));
    }
  }
  return ids;
}

absl::StatusOr<std::string> FileUnitStore::Resolve(
    std::string_view id_or_prefix) const {
  const std::string wanted(id_or_prefix);
  ASSIGN_OR_RETURN(const std::vector<std::string> ids, Ids());
  std::vector<std::string> candidates;
  for (const std::string& id : ids) {
    if (id == wanted) return id;
    if (!wanted.empty() && absl::StartsWith(id, wanted))
      candidates.push_back(id);
  }
  if (candidates.size() == 1) return candidates[0];
  if (candidates.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "no unit \"", wanted, "\" in ", directory_.root(), ", which has ",
        ids.size(), ids.size() == 1 ? " unit" : " units"));
  }
  const size_t shown = std::min(candidates.size(), kMaxCandidates);
  const size_t more = candidates.size() - shown;
  candidates.resize(shown);
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", wanted,
      "\" begins several units' ids: ", absl::StrJoin(candidates, ", "),
      more > 0 ? absl::StrCat(" and ", more, " more") : "",
      "; give more of the id"));
}

absl::StatusOr<UnitReader> FileUnitStore::Open(
    std::string_view id_or_prefix) const {
  ASSIGN_OR_RETURN(const std::string id, Resolve(id_or_prefix));
  ASSIGN_OR_RETURN(v1::Unit manifest, ReadManifest(id));
  return UnitReader(id, std::move(manifest), chunks_);
}

absl::StatusOr<std::vector<UnitListing>> FileUnitStore::List() const {
  ASSIGN_OR_RETURN(std::vector<std::string> ids, Ids());
  std::vector<UnitListing> listings;
  for (std::string& id : ids) {
    absl::StatusOr<v1::Unit> manifest = ReadManifest(id);
    if (absl::IsNotFound(manifest.status())) continue;  // removed meanwhile
    UnitListing listing;
    listing.id = std::move(id);
    listing.status = manifest.status();
    if (manifest.ok()) listing.manifest = *std::move(manifest);
    listings.push_back(std::move(listing));
  }
  return listings;
}

absl::Status FileUnitStore::Remove(std::string_view id) {
  const std::string name(id);
  if (!IsPlainName(name) || !Exists(directory_.UnitPath(name))) {
    return absl::NotFoundError(
        absl::StrCat("no unit \"", name, "\" in ", directory_.root()));
  }
  // Out of sight in one step, so that no reader finds half a unit.
  ASSIGN_OR_RETURN(const std::string temporary, directory_.NewTemporaryPath());
  RETURN_IF_ERROR(
      directory_.file_system().Rename(directory_.UnitPath(name), temporary));
  std::error_code error;
  std::filesystem::remove_all(temporary, error);
  if (error) {
    return ErrnoToStatus(error.value(),
                         absl::StrCat("cannot remove ", temporary));
  }
  return absl::OkStatus();
}

absl::Status FileUnitStore::Verify(const UnitReader& unit) const {
  const std::string digest = InstanceDigest(unit.manifest());
  if (digest != unit.manifest().instance_sha256()) {
    return absl::DataLossError(
        absl::StrCat("unit ", unit.id(), " claims instance ",
                     HexEncode(unit.manifest().instance_sha256()),
                     ", its fields give ", HexEncode(digest)));
  }
  struct Item {
    std::string name;
    const v1::Chunk* chunk;
  };
  std::vector<Item> items;
  std::set<std::string_view> seen;
  RETURN_IF_ERROR(ForEachBlob(
      unit.manifest(), [&](const std::string& name, const v1::Blob& blob) {
        for (const v1::Chunk& chunk : blob.chunks()) {
          if (!chunk.sha256().empty() && seen.insert(chunk.sha256()).second)
            items.push_back({name, &chunk});
        }
        return absl::OkStatus();
      }));
  OrderedWork work;
  work.produce = [&](size_t index, size_t) { return index < items.size(); };
  work.work = [&](size_t index, size_t) {
    return Annotate(chunks_->VerifyChunk(*items[index].chunk),
                    absl::StrCat("unit ", unit.id(), ", ", items[index].name));
  };
  return RunOrdered(chunks_->threads(),
                    2 * static_cast<size_t>(chunks_->threads()), work);
}

}  // namespace reprise
