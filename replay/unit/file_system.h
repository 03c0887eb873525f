// What a unit store asks of the file system to change it: the seam at which
// tests make a disk full or a process die between any two steps. Reading needs
// no seam; broken files are easy to make.
//
// The base class is the real file system. Thread-safe; keeps no state. Errors
// name the path and the system's reason (ErrnoToStatus).
#ifndef REPRISE_REPLAY_UNIT_FILE_SYSTEM_H_
#define REPRISE_REPLAY_UNIT_FILE_SYSTEM_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace reprise {

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // A new file holding the parts one after the other. ALREADY_EXISTS if there
  // is one. After an error a partial file may remain.
  virtual absl::Status WriteNewFile(const std::string& path,
                                    std::span<const std::string_view> parts);
  // Replaces a file or an empty directory at `to`.
  virtual absl::Status Rename(const std::string& from, const std::string& to);
  // The parent must exist; that the directory exists already is no error.
  virtual absl::Status MakeDirectory(const std::string& path);
  // A file, or an empty directory.
  virtual absl::Status Remove(const std::string& path);
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_FILE_SYSTEM_H_
