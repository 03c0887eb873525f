#include "evolution/move.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace reprise::evolution {
namespace {

bool Overlap(const TextEdit& a, const TextEdit& b) {
  if (a.path != b.path) return false;
  const size_t a_end = a.offset + a.length;
  const size_t b_end = b.offset + b.length;
  if (a.length > 0 && b.length > 0) {
    return a.offset < b_end && b.offset < a_end;
  }
  if (a.length == 0 && b.length == 0) {
    return a.offset == b.offset && a.rank == b.rank;
  }
  const TextEdit& insertion = a.length == 0 ? a : b;
  const TextEdit& replacement = a.length == 0 ? b : a;
  return insertion.offset > replacement.offset &&
         insertion.offset < replacement.offset + replacement.length;
}

bool Before(const TextEdit& a, const TextEdit& b) {
  if (a.offset != b.offset) return a.offset < b.offset;
  // Insertions come before the text that is replaced from the same place on.
  if ((a.length == 0) != (b.length == 0)) return a.length == 0;
  return a.rank < b.rank;
}

absl::Status CheckEdit(const EvolvableSource& source, const Move& move,
                       const TextEdit& edit) {
  const auto file = source.files().find(edit.path);
  if (file == source.files().end() ||
      edit.offset + edit.length > file->second.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("move ", move.key, ": got an edit outside of ", edit.path,
                     ", expected one within an evolvable file"));
  }
  for (const Region& region : source.regions()) {
    if (region.path == edit.path && region.begin <= edit.offset &&
        edit.offset + edit.length <= region.end) {
      return absl::OkStatus();
    }
  }
  return absl::PermissionDeniedError(
      absl::StrCat("move ", move.key, ": got an edit at offset ", edit.offset,
                   " of ", edit.path, ", outside of the evolvable regions"));
}

std::string Rewrite(const std::string& before,
                    const std::vector<const TextEdit*>& edits) {
  std::string after;
  size_t at = 0;
  for (const TextEdit* edit : edits) {
    after.append(before, at, edit->offset - at);
    after += edit->text;
    at = edit->offset + edit->length;
  }
  after.append(before, at);
  return after;
}

}  // namespace

bool Compatible(const Move& a, const Move& b) {
  if (a.site == b.site) return false;
  for (const std::string& tag : a.tags) {
    if (std::find(b.tags.begin(), b.tags.end(), tag) != b.tags.end()) {
      return false;
    }
  }
  for (const TextEdit& ours : a.edits) {
    for (const TextEdit& theirs : b.edits) {
      if (Overlap(ours, theirs)) return false;
    }
  }
  return true;
}

absl::StatusOr<FileContents> ApplyMoves(const EvolvableSource& source,
                                        const std::vector<const Move*>& moves) {
  std::map<std::string, std::vector<const TextEdit*>> by_file;
  for (size_t i = 0; i < moves.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (Compatible(*moves[i], *moves[j])) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("moves ", moves[j]->key, " and ", moves[i]->key,
                       " conflict, expected compatible ones"));
    }
    for (const TextEdit& edit : moves[i]->edits) {
      absl::Status status = CheckEdit(source, *moves[i], edit);
      if (!status.ok()) return status;
      by_file[edit.path].push_back(&edit);
    }
  }
  FileContents after;
  for (auto& [path, edits] : by_file) {
    std::stable_sort(
        edits.begin(), edits.end(),
        [](const TextEdit* a, const TextEdit* b) { return Before(*a, *b); });
    after[path] = Rewrite(source.files().at(path), edits);
  }
  return source.DropUnchanged(std::move(after));
}

}  // namespace reprise::evolution
