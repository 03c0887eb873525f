// The directory of a unit store: its marker file, where things lie in it, its
// lock, and files that appear whole or not at all. docs/unit-format.md is the
// specification.
//
// Thread-safe; several processes may use one directory.
#ifndef REPRISE_REPLAY_UNIT_STORE_DIRECTORY_H_
#define REPRISE_REPLAY_UNIT_STORE_DIRECTORY_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/unit/file_system.h"

namespace reprise {

inline constexpr char kStoreMarker[] = "reprise-store";

// Names of what is in a directory, "." and ".." aside, sorted.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Held until destroyed. Writers that rely on chunks which are already there
// hold it shared, the garbage collector exclusively. On a file system that has
// no locks it holds nothing, and the grace period alone protects.
class StoreLock {
 public:
  explicit StoreLock(int fd) : fd_(fd) {}
  StoreLock(StoreLock&& other) noexcept;
  StoreLock& operator=(StoreLock&&) = delete;
  ~StoreLock();

 private:
  int fd_;
};

class StoreDirectory {
 public:
  // `create` makes a store out of a missing or empty directory. Errors:
  // NOT_FOUND (no such directory and not `create`), INVALID_ARGUMENT (a
  // directory that is no store), FAILED_PRECONDITION (a newer store).
  static absl::StatusOr<StoreDirectory> Open(
      const std::string& root, bool create,
      std::shared_ptr<FileSystem> file_system);

  const std::string& root() const { return root_; }
  FileSystem& file_system() const { return *file_system_; }

  // `sha256` is 32 raw bytes.
  std::string ChunkPath(std::string_view sha256) const;
  std::string ChunksPath() const { return root_ + "/chunks"; }
  std::string UnitsPath() const { return root_ + "/units"; }
  std::string UnitPath(std::string_view id) const;
  std::string ManifestPath(std::string_view id) const;
  std::string TemporariesPath() const { return root_ + "/tmp"; }

  // A name under tmp/ that nothing has; the directory exists afterwards.
  absl::StatusOr<std::string> NewTemporaryPath() const;

  // Writes under tmp/ and renames to `path`, making the directories above
  // `path` where they are missing.
  absl::Status WriteFile(const std::string& path,
                         std::span<const std::string_view> parts) const;

  // Makes the parent of `path`, which lies in the store.
  absl::Status MakeParent(const std::string& path) const;

  absl::StatusOr<StoreLock> Lock(bool exclusive) const;

 private:
  StoreDirectory(std::string root, std::shared_ptr<FileSystem> file_system)
      : root_(std::move(root)), file_system_(std::move(file_system)) {}
  absl::Status CheckMarker() const;
  absl::Status CreateMarker() const;

  std::string root_;
  std::shared_ptr<FileSystem> file_system_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_STORE_DIRECTORY_H_
