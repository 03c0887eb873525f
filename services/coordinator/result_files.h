// A result on disk: a directory with result.pb (everything, for programs and
// `reprise apply`), result.json, winner.patch, report.txt and trials.jsonl.
// Thread-safe.
#ifndef REPRISE_SERVICES_COORDINATOR_RESULT_FILES_H_
#define REPRISE_SERVICES_COORDINATOR_RESULT_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "reprise/v1/result.pb.h"
#include "services/coordinator/local_campaign.h"

namespace reprise {

// Writes all files but trials.jsonl; result.pb last, so that its presence means
// a whole result.
absl::Status WriteResult(const std::string& directory,
                         const v1::Result& result);

// `path` is a result directory or its result.pb. NOT_FOUND, DATA_LOSS,
// FAILED_PRECONDITION (newer version).
absl::StatusOr<v1::Result> ReadResult(const std::string& path);

// Where the kernel's speed-up within its program is expected: between the outer
// ends of the 95% intervals with a cold, a warm and a dirty L2 cache, as far as
// they were measured, of what one more loading of code and memory would show.
struct RatioInterval {
  double low = 0;
  double high = 0;
};
RatioInterval ExpectedInProgram(const v1::Result& result);

// Schema "reprise.result/1".
nlohmann::ordered_json ResultJson(const v1::Result& result);

// One line of trials.jsonl, without the newline; schema "reprise.trial/1".
std::string TrialJson(const TrialRecord& trial);

// For a person: baseline, best, speed-up with interval, verdict, what changed,
// how to reproduce it.
std::string ResultText(const v1::Result& result);

// "argument-free" names of outcome counts in one line: "41 ok, 3 wrong result".
std::string OutcomesText(const v1::Result& result);

}  // namespace reprise

#endif  // REPRISE_SERVICES_COORDINATOR_RESULT_FILES_H_
