// Unified diffs that `patch -p1` applies. Pure functions; thread-safe.
#ifndef REPRISE_EVOLUTION_UNIFIED_DIFF_H_
#define REPRISE_EVOLUTION_UNIFIED_DIFF_H_

#include <string>
#include <string_view>
#include <vector>

#include "evolution/source.h"

namespace reprise::evolution {

struct FileChange {
  std::string path;
  std::string before;
  std::string after;
};

struct DiffOptions {
  int context_lines = 3;
  // Taken off the front of paths: apply with `patch -p1` in this directory.
  // Paths outside of it are given without their leading '/'.
  std::string root;
};

// Empty when nothing changed. Lines keep their endings as they are; a missing
// newline at the end of a file is marked as diff does.
std::string UnifiedDiff(const std::vector<FileChange>& changes,
                        const DiffOptions& options = {});

// The recorded files against `after`.
std::string UnifiedDiff(const EvolvableSource& source,
                        const FileContents& after,
                        const DiffOptions& options = {});

// The deepest directory that holds all the paths; "" when there is none.
std::string CommonDirectory(const std::vector<std::string>& paths);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_UNIFIED_DIFF_H_
