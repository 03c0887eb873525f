#include "replay/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>

namespace reprise {

void InitializeLogging() {
  auto logger = std::make_shared<spdlog::logger>(
      "reprise", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  spdlog::set_default_logger(logger);
  spdlog::set_pattern("reprise[%P] %l: %v");
  const char* level = std::getenv("REPRISE_LOG");
  spdlog::set_level(level == nullptr ? spdlog::level::warn
                                     : spdlog::level::from_str(level));
}

}  // namespace reprise
