// The main job on one machine, as `optimize` and `demo` run it: a campaign per
// unit with live progress, results in a directory. Used from the main thread.
#ifndef REPRISE_SERVICES_CLI_OPTIMIZE_JOB_H_
#define REPRISE_SERVICES_CLI_OPTIMIZE_JOB_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reprise/v1/result.pb.h"
#include "services/cli/context.h"
#include "services/coordinator/local_campaign.h"

namespace reprise {

struct OptimizeJob {
  std::vector<std::string> units;  // ids or prefixes
  std::string budget = "60s";      // for all units together
  uint64_t trials = 0;
  uint64_t seed = 1;
  std::string tolerance;
  std::string frontend;      // "clang", "nvrtc", "both"; empty: what there is
  bool keep_source = false;  // pipelines, code generation and launches only
  int islands = 1;
  std::string cells = "kinds";  // evolution::ParseCells
  std::string output = "reprise-results";
};

struct OptimizeResults {
  std::vector<v1::Result> results;  // in the order of the units
  // Of the first unit that gave none, or whose result could not be written
  // (then it is in `results` all the same). The other units were tried.
  absl::Status status;
};

// One result per unit, each written to <output>/<unit>. Live progress on
// standard error. An interrupt ends the job after the unit at hand. The error
// is that of the job as a whole: bad options, no such unit, no device.
absl::StatusOr<OptimizeResults> RunOptimizeJob(const OptimizeJob& job,
                                               CliContext* context);

}  // namespace reprise

#endif  // REPRISE_SERVICES_CLI_OPTIMIZE_JOB_H_
