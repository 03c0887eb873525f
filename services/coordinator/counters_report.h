// Counters and roofline as text and JSON, for `reprise replay --counters` and
// for results. Pure functions.
#ifndef REPRISE_SERVICES_COORDINATOR_COUNTERS_REPORT_H_
#define REPRISE_SERVICES_COORDINATOR_COUNTERS_REPORT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "replay/engine/roofline.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

// By name: value, unit and metric, or "absent" with the reason; "passes"
// beside them. All that there is where nothing was counted is "absent".
nlohmann::ordered_json CountersJson(const v1::Counters& counters);

// A table with a column for the baseline and, where there is one, for the
// variant; ends with a newline. What is absent says why below it.
std::string CountersTable(const v1::Counters& baseline,
                          const std::optional<v1::Counters>& variant);

// "occupancy 96.2 %, ..." in one line; empty where nothing was counted.
std::string CountersLine(const v1::Counters& counters);

// What a report says of bounds. `ceilings` may say why there are none.
struct BoundsReport {
  absl::StatusOr<v1::DeviceCeilings> ceilings;
  Roofline roofline;
  std::optional<WriteFloor> floor;
  // Of the baseline from a cold L2 cache, which is what the roofline is for.
  std::optional<double> cold_ns;
};
BoundsReport BoundsOf(const LaunchWork& work, const v1::Counters& baseline,
                      const absl::StatusOr<v1::DeviceCeilings>& ceilings,
                      std::optional<double> cold_ns);

// {"roofline": ..., "write_floor": ..., "ceilings": ...}.
nlohmann::ordered_json BoundsJson(const BoundsReport& bounds);
// Lines that begin with "roofline", "ceilings" and "floor".
std::string BoundsText(const BoundsReport& bounds);

}  // namespace reprise

#endif  // REPRISE_SERVICES_COORDINATOR_COUNTERS_REPORT_H_
