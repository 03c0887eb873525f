#include "replay/recorder/session/preload_library.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "replay/base/process.h"
#include "replay/base/status_macros.h"

namespace reprise {

absl::StatusOr<std::string> FindPreloadLibrary(const std::string& name,
                                               const std::string& given) {
  namespace fs = std::filesystem;
  std::vector<std::string> places;
  if (!given.empty()) {
    places.push_back(given);
  } else {
    ASSIGN_OR_RETURN(const std::string self, SelfExecutable());
    const fs::path directory = fs::path(self).parent_path();
    for (const char* place : {"", "../lib", "../lib/reprise"})
      places.push_back((directory / place / name).lexically_normal());
  }
  std::error_code error;
  for (const std::string& place : places)
    if (fs::exists(place, error))
      return fs::absolute(place).lexically_normal().string();
  return absl::NotFoundError(
      absl::StrCat("the library that goes into applications is missing; "
                   "looked for ",
                   absl::StrJoin(places, ", "), "; build or install ", name));
}

std::string PreloadList(const std::string& library) {
  const char* others = std::getenv("LD_PRELOAD");
  return others == nullptr || *others == '\0'
             ? library
             : absl::StrCat(others, ":", library);
}

}  // namespace reprise
