// The UnitStore over a StoreDirectory. Thread-safe.
#ifndef REPRISE_REPLAY_UNIT_FILE_UNIT_STORE_H_
#define REPRISE_REPLAY_UNIT_FILE_UNIT_STORE_H_

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "replay/unit/file_chunk_store.h"
#include "replay/unit/store_directory.h"
#include "replay/unit/unit_store.h"

namespace reprise {

class FileUnitStore : public UnitStore {
 public:
  FileUnitStore(StoreDirectory directory,
                std::shared_ptr<FileChunkStore> chunks,
                absl::Duration garbage_grace);

  ChunkStore& chunks() override { return *chunks_; }
  absl::StatusOr<std::string> Add(v1::Unit unit) override;
  absl::Status Update(std::string_view id, v1::Unit unit) override;
  absl::StatusOr<UnitReader> Open(std::string_view id_or_prefix) const override;
  absl::StatusOr<std::vector<UnitListing>> List() const override;
  absl::Status Remove(std::string_view id) override;
  absl::StatusOr<uint64_t> CollectGarbage() override;
  absl::Status Verify(const UnitReader& unit) const override;

 private:
  absl::StatusOr<std::vector<std::string>> Ids() const;
  absl::StatusOr<std::string> Resolve(std::string_view id_or_prefix) const;
  absl::StatusOr<v1::Unit> ReadManifest(const std::string& id) const;
  absl::Status CheckChunksPresent(const v1::Unit& unit) const;
  // Makes the unit's directory appear with its manifest; false if there is one
  // by now.
  absl::StatusOr<bool> PlaceNew(const std::string& id,
                                std::string_view manifest);
  absl::StatusOr<std::string> Place(const v1::Unit& unit,
                                    const std::string& manifest);

  // File names of all chunks that manifests name, "ab/cdef...".
  absl::StatusOr<std::set<std::string>> NamedChunks() const;
  absl::StatusOr<uint64_t> RemoveOldChunks(const std::set<std::string>& named,
                                           absl::Time before);
  absl::StatusOr<uint64_t> RemoveOldTemporaries(absl::Time before);

  const StoreDirectory directory_;
  const std::shared_ptr<FileChunkStore> chunks_;
  const absl::Duration garbage_grace_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_FILE_UNIT_STORE_H_
