#include "replay/unit/unit_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"
#include "replay/unit/blob.h"
#include "replay/unit/file_chunk_store.h"
#include "replay/unit/file_unit_store.h"

namespace reprise {
namespace {

absl::Status CheckLevel(int level) {
  if (level >= 1 && level <= 19) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("compression level is ", level, ", expected 1 to 19"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChunkStore>> ChunkStore::Open(Options options) {
  RETURN_IF_ERROR(CheckLevel(options.compression_level));
  ASSIGN_OR_RETURN(StoreDirectory directory,
                   StoreDirectory::Open(options.directory, options.create,
                                        std::move(options.file_system)));
  return std::make_unique<FileChunkStore>(
      std::move(directory), options.compression_level, options.threads);
}

absl::StatusOr<std::string> ChunkStore::GetString(const v1::Blob& blob,
                                                  uint64_t limit) const {
  if (blob.bytes() > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a blob has ", blob.bytes(), " bytes, expected at most ",
                     limit, " to be read in one piece"));
  }
  RETURN_IF_ERROR(CheckBlob(blob));
  std::string bytes(blob.bytes(), '\0');
  RETURN_IF_ERROR(GetInto(blob, bytes.data()));
  return bytes;
}

UnitReader::UnitReader(std::string id, v1::Unit manifest,
                       std::shared_ptr<const ChunkStore> chunks)
    : id_(std::move(id)),
      manifest_(std::move(manifest)),
      chunks_(std::move(chunks)) {}

absl::StatusOr<std::unique_ptr<UnitStore>> UnitStore::Open(Options options) {
  RETURN_IF_ERROR(CheckLevel(options.compression_level));
  ASSIGN_OR_RETURN(const StoreDirectory directory,
                   StoreDirectory::Open(options.directory, options.create,
                                        std::move(options.file_system)));
  auto chunks = std::make_shared<FileChunkStore>(
      directory, options.compression_level, options.threads);
  return std::make_unique<FileUnitStore>(directory, std::move(chunks),
                                         options.garbage_grace);
}

}  // namespace reprise
