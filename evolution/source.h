// What the evolution knows of a kernel's source, and where it may change it.
// Plain values; thread-safe as such.
#ifndef REPRISE_EVOLUTION_SOURCE_H_
#define REPRISE_EVOLUTION_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace reprise::evolution {

struct SourceFile {
  std::string path;  // absolute, as the unit's closure names it
  std::string content;
  bool system = false;  // of a toolkit or compiler: never changed
};

// One kernel's translation unit.
struct SourceContext {
  std::string main_file;
  std::string directory;
  // Clang driver arguments of a device compile, without input and output.
  std::vector<std::string> clang_args;
  // Files that are not here are read from disk.
  std::vector<SourceFile> files;
  std::string kernel_symbol;        // mangled
  std::string architecture;         // "sm_90"
  std::string device_kind = "cpu";  // what variants will run on: "cpu", "cuda"
  // Of the recorded launch; 0: unknown.
  uint32_t threads_per_block = 0;
};

enum class RegionKind {
  kKernel,
  kDeviceFunction,
  kMacro,
  kConstant,
  kType,
};

std::string_view RegionKindName(RegionKind kind);

// Bytes [begin, end) of a file as recorded.
struct Region {
  std::string path;
  size_t begin = 0;
  size_t end = 0;
  RegionKind kind = RegionKind::kKernel;
  std::string name;
};

// New contents by path.
using FileContents = std::map<std::string, std::string>;

// The kernel and the device functions, macros, constants and types of the user
// that it uses. Everything else is fixed.
class EvolvableSource {
 public:
  EvolvableSource() = default;
  // Overlapping regions of a file are merged. Regions must lie in `files`.
  EvolvableSource(std::vector<SourceFile> files, std::vector<Region> regions);

  // By path, then place; disjoint.
  const std::vector<Region>& regions() const { return regions_; }
  // User files that hold a region.
  const FileContents& files() const { return files_; }

  // The source with these files in place of its own, and where its regions are
  // in them: as many, in the same order, of the same names. What has to be
  // within the regions of that state is within those of this one.
  // PERMISSION_DENIED, where they differ outside of the regions, names the file
  // and line of the first text that was touched there, NOT_FOUND a file without
  // regions.
  absl::StatusOr<EvolvableSource> At(const FileContents& after) const;

  // OK when `after` differs from the recorded files inside regions only; else
  // as At().
  absl::Status CheckConfined(const FileContents& after) const;

  // The digest-free identity of a source state: contents of changed files.
  // Drops files that equal the recorded ones.
  FileContents DropUnchanged(FileContents after) const;

 private:
  FileContents files_;
  std::vector<Region> regions_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_SOURCE_H_
