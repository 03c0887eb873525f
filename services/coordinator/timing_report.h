// How an outcome was measured, for people and programs; `replay`, results and
// trials say it alike. Pure functions.
#ifndef REPRISE_SERVICES_COORDINATOR_TIMING_REPORT_H_
#define REPRISE_SERVICES_COORDINATOR_TIMING_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "reprise/v1/types.pb.h"

namespace reprise {

// "cold L2", "warm L2", "caches not controlled".
std::string L2Text(v1::L2Policy policy);

// "cold L2; SM clock 1980 MHz, ..., not held down; wall clock agrees (0.3 of 10
// us allowed); 2 pairs measured again (thermal slowdown)".
std::string TimingText(const v1::Outcome& outcome);

// {"l2", "clocks", "wall_clock", "discarded_pairs", "doubtful_pairs",
// "samples"}; docs/measuring.md names the fields.
nlohmann::ordered_json TimingJson(const v1::Outcome& outcome);

// Adds "speedup", "speedup_ci95" and "pairs".
void AddSpeedup(const v1::Speedup& speedup, nlohmann::ordered_json* json);

nlohmann::ordered_json ClocksJson(const v1::ClockReport& clocks);

}  // namespace reprise

#endif  // REPRISE_SERVICES_COORDINATOR_TIMING_REPORT_H_
