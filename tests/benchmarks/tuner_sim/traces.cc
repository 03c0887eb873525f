#include "tests/benchmarks/tuner_sim/traces.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"

namespace reprise::tuner_sim {
namespace {

using nlohmann::ordered_json;

Trace BestSoFar(const ordered_json& evaluated) {
  Trace trace;
  double best = std::numeric_limits<double>::infinity();
  for (const ordered_json& time : evaluated) {
    if (!time.is_null()) best = std::min(best, time.get<double>());
    trace.push_back(best);
  }
  trace.resize(kMaximumHorizon, best);
  return trace;
}

}  // namespace

absl::StatusOr<Traces> ReadTraces(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Traces traces;
  int line_number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    if (line.empty()) continue;
    try {
      const ordered_json search = ordered_json::parse(line);
      traces[search.at("method").get<std::string>()]
            [search.at("space").get<std::string>()]
                .push_back(BestSoFar(search.at("evaluated_ms")));
    } catch (const ordered_json::exception& error) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", line_number, ": ", error.what()));
    }
  }
  return traces;
}

std::string FormatTraces(const std::string& method, const std::string& space,
                         uint64_t first_seed,
                         const std::vector<Simulation>& simulations) {
  std::string text;
  for (size_t i = 0; i < simulations.size(); ++i) {
    ordered_json evaluated = ordered_json::array();
    for (const double time : simulations[i].evaluated_ms) {
      evaluated.push_back(std::isinf(time) ? ordered_json(nullptr)
                                           : ordered_json(time));
    }
    const ordered_json search = {{"method", method},
                                 {"space", space},
                                 {"seed", first_seed + i},
                                 {"evaluated_ms", std::move(evaluated)}};
    absl::StrAppend(&text, search.dump(), "\n");
  }
  return text;
}

}  // namespace reprise::tuner_sim
