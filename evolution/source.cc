#include "evolution/source.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "evolution/regions.h"

namespace reprise::evolution {
std::string_view RegionKindName(RegionKind kind) {
  switch (kind) {
    case RegionKind::kKernel:
      return "kernel";
    case RegionKind::kDeviceFunction:
      return "device function";
    case RegionKind::kMacro:
      return "macro";
    case RegionKind::kConstant:
      return "constant";
    case RegionKind::kType:
      return "type";
  }
  return "unknown";
}

EvolvableSource::EvolvableSource(std::vector<SourceFile> files,
                                 std::vector<Region> regions) {
  std::sort(regions.begin(), regions.end(),
            [](const Region& a, const Region& b) {
              if (a.path != b.path) return a.path < b.path;
              if (a.begin != b.begin) return a.begin < b.begin;
              return a.end > b.end;
            });
  for (Region& region : regions) {
    if (!regions_.empty() && regions_.back().path == region.path &&
        regions_.back().end > region.begin) {
      regions_.back().end = std::max(regions_.back().end, region.end);
      continue;
    }
    regions_.push_back(std::move(region));
  }
  for (SourceFile& file : files) {
    const bool used = std::any_of(
        regions_.begin(), regions_.end(),
        [&](const Region& region) { return region.path == file.path; });
    if (used) files_[file.path] = std::move(file.content);
  }
}

absl::StatusOr<EvolvableSource> EvolvableSource::At(
    const FileContents& after) const {
  EvolvableSource state = *this;
  std::map<std::string, std::vector<Region>> by_path;
  for (const Region& region : regions_) by_path[region.path].push_back(region);
  for (const auto& [path, content] : after) {
    const auto before = files_.find(path);
    if (before == files_.end()) {
      return absl::NotFoundError(absl::StrCat(
          "source: got a change of ", path,
          ", which holds nothing that the kernel uses and may change"));
    }
    absl::StatusOr<std::vector<Region>> located =
        LocateRegions(before->second, by_path[path], content);
    if (!located.ok()) return located.status();
    by_path[path] = *std::move(located);
    state.files_[path] = content;
  }
  state.regions_.clear();
  for (const auto& [path, regions] : by_path) {
    state.regions_.insert(state.regions_.end(), regions.begin(), regions.end());
  }
  return state;
}

absl::Status EvolvableSource::CheckConfined(const FileContents& after) const {
  return At(after).status();
}

FileContents EvolvableSource::DropUnchanged(FileContents after) const {
  std::erase_if(after, [&](const auto& file) {
    const auto before = files_.find(file.first);
    return before != files_.end() && before->second == file.second;
  });
  return after;
}

}  // namespace reprise::evolution
