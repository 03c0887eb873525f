// A unit's source closure as files, for compilers that read nothing else.
//
// The user's files and those that this machine lacks lie below one directory at
// their own absolute paths; headers of toolkit, compiler and C library are this
// machine's. Not thread-safe.
#ifndef REPRISE_REPLAY_COMPILER_SOURCE_TREE_H_
#define REPRISE_REPLAY_COMPILER_SOURCE_TREE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

class SourceTree {
 public:
  // `root` must exist; `unit` is borrowed. Writes the closure's files.
  static absl::StatusOr<SourceTree> Create(
      const std::string& root, const v1::CompileTranslationUnit& unit);

  // Puts the overlays in place and the files of earlier overlays back.
  absl::Status Apply(
      const google::protobuf::RepeatedPtrField<v1::SourceOverlay>& overlays);

  // Where a file of the unit lies, or would lie.
  std::string PathOf(const std::string& path) const;
  // Both places of a directory of the unit: below the root, and on this
  // machine.
  std::vector<std::string> DirectoriesOf(const std::string& directory) const;

 private:
  SourceTree(std::string root, const v1::CompileTranslationUnit& unit)
      : root_(std::move(root)), unit_(&unit) {}
  std::string Clean(const std::string& path) const;
  absl::Status Write(const std::string& path, const std::string& content) const;

  std::string root_;
  const v1::CompileTranslationUnit* unit_;
  std::map<std::string, const std::string*> originals_;  // by clean path
  std::vector<std::string> changed_;                     // clean paths
};

// Whether a file is of a toolkit, a compiler or the C library.
bool IsToolchainHeader(const std::string& path);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_SOURCE_TREE_H_
