#include "services/replay_server/residency.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace reprise {

absl::StatusOr<std::vector<std::string>> ChooseToEvict(
    std::vector<Residency> loaded, uint64_t needed, uint64_t budget) {
  std::vector<std::string> evicted;
  if (budget == 0) return evicted;
  uint64_t used = 0, held = 0;
  for (const Residency& unit : loaded) {
    used += unit.bytes;
    if (unit.held) held += unit.bytes;
  }
  if (needed > budget || held > budget - needed) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the unit has ", needed, " bytes, of the server's budget of ", budget,
        " bytes leases hold ", held,
        "; let leases end, unload units, or raise --unit-bytes"));
  }
  std::sort(loaded.begin(), loaded.end(),
            [](const Residency& a, const Residency& b) {
              return a.last_used < b.last_used;
            });
  for (const Residency& unit : loaded) {
    if (used <= budget - needed) break;
    if (unit.held) continue;
    used -= unit.bytes;
    evicted.push_back(unit.unit);
  }
  return evicted;
}

}  // namespace reprise
