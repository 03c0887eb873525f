// Members of a static library (ar). Thread-safe. Input is untrusted: malformed
// archives give INVALID_ARGUMENT.
#ifndef REPRISE_REPLAY_RECORDER_CC_ARCHIVE_H_
#define REPRISE_REPLAY_RECORDER_CC_ARCHIVE_H_

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

bool IsArchive(std::string_view file);

// The members' contents in order, symbol table and name table left out. A thin
// archive names files: they are read, relative to `path`'s directory, into
// `storage`; those that are gone are left out.
absl::StatusOr<std::vector<std::string_view>> ArchiveMembers(
    std::string_view file, const std::string& path,
    std::deque<std::string>* storage);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_CC_ARCHIVE_H_
