#include "evolution/source.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::evolution {
namespace {

size_t LineOf(std::string_view text, size_t offset) {
  return 1 + static_cast<size_t>(
                 std::count(text.begin(), text.begin() + offset, '\n'));
}

absl::Status Outside(const std::string& path, std::string_view before,
                     size_t offset) {
  return absl::PermissionDeniedError(absl::StrCat(
      "source: got a change at ", path, ":", LineOf(before, offset),
      ", outside of the kernel and what it uses; expected changes inside of "
      "the evolvable regions only"));
}

// Whether `after` is `before` with each region replaced by any text: the fixed
// pieces between regions must follow each other, the first at the start and the
// last at the end.
absl::Status CheckFile(const std::string& path, std::string_view before,
                       std::string_view after,
                       const std::vector<Region>& regions) {
  size_t fixed = 0;  // start of the fixed piece, in before
  size_t at = 0;     // in after
  bool first = true;
  for (const Region& region : regions) {
    if (region.path != path) continue;
    const std::string_view piece = before.substr(fixed, region.begin - fixed);
    const size_t found = first ? (after.substr(0, piece.size()) == piece
                                      ? 0
                                      : std::string_view::npos)
                               : after.find(piece, at);
    if (found == std::string_view::npos) {
      size_t same = 0;
      while (first && same < piece.size() && same < after.size() &&
             piece[same] == after[same]) {
        ++same;
      }
      return Outside(path, before, fixed + same);
    }
    at = found + piece.size();
    fixed = region.end;
    first = false;
  }
  const std::string_view last = before.substr(fixed);
  if (after.size() < at + last.size() ||
      after.substr(after.size() - last.size()) != last) {
    return Outside(path, before, fixed);
  }
  return absl::OkStatus();
}

}  // namespace

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

absl::Status EvolvableSource::CheckConfined(const FileContents& after) const {
  for (const auto& [path, content] : after) {
    const auto before = files_.find(path);
    if (before == files_.end()) {
      return absl::NotFoundError(absl::StrCat(
          "source: got a change of ", path,
          ", which holds nothing that the kernel uses and may change"));
    }
    absl::Status status = CheckFile(path, before->second, content, regions_);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

FileContents EvolvableSource::DropUnchanged(FileContents after) const {
  std::erase_if(after, [&](const auto& file) {
    const auto before = files_.find(file.first);
    return before != files_.end() && before->second == file.second;
  });
  return after;
}

}  // namespace reprise::evolution
