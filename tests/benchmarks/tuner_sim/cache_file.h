// Files of exhaustively measured spaces: Kernel Tuner's cache (JSON; a cache
// that was not closed is read too) and its T4 results, each plain or gzip.
// Thread-safe.
#ifndef REPRISE_TESTS_BENCHMARKS_TUNER_SIM_CACHE_FILE_H_
#define REPRISE_TESTS_BENCHMARKS_TUNER_SIM_CACHE_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/benchmarks/tuner_sim/measured_space.h"

namespace reprise::tuner_sim {

// Plain bytes come back as they are. INVALID_ARGUMENT: broken gzip, or more
// than 1 GiB unpacked.
absl::StatusOr<std::string> Gunzip(std::string_view bytes);

// `text` is JSON of either format; `name` is for messages. Configurations that
// T4 says break a constraint are left out. INVALID_ARGUMENT: anything else.
absl::StatusOr<Table> ParseCache(std::string_view text,
                                 const std::string& name);

// The space of one file; its name is that of the file and its folder
// ("gemm/RTX_3090"). Errors name the file.
absl::StatusOr<std::shared_ptr<const MeasuredSpace>> ReadMeasuredSpace(
    const std::string& path);

// Files *.json and *.json.gz under `directory`, sorted.
absl::StatusOr<std::vector<std::string>> ListCacheFiles(
    const std::string& directory);

}  // namespace reprise::tuner_sim

#endif  // REPRISE_TESTS_BENCHMARKS_TUNER_SIM_CACHE_FILE_H_
