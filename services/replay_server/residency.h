// Which units have to make room for another one. Pure function; thread-safe.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_RESIDENCY_H_
#define REPRISE_SERVICES_REPLAY_SERVER_RESIDENCY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

struct Residency {
  std::string unit;
  uint64_t bytes = 0;
  uint64_t last_used = 0;  // larger: later
  bool held = false;       // by a lease
};

// As few as possible of those not used for longest, so that `needed` more bytes
// keep within the budget (0: there is none). RESOURCE_EXHAUSTED where not even
// all that nobody holds are enough.
absl::StatusOr<std::vector<std::string>> ChooseToEvict(
    std::vector<Residency> loaded, uint64_t needed, uint64_t budget);

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_RESIDENCY_H_
