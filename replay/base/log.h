// Logging for the whole project: spdlog to standard error, behind this header.
// Thread-safe. Results never go here; they belong on standard output.
#ifndef REPRISE_REPLAY_BASE_LOG_H_
#define REPRISE_REPLAY_BASE_LOG_H_

#include <spdlog/spdlog.h>

#define LOG_DEBUG(...) ::spdlog::debug(__VA_ARGS__)
#define LOG_INFO(...) ::spdlog::info(__VA_ARGS__)
#define LOG_WARNING(...) ::spdlog::warn(__VA_ARGS__)
#define LOG_ERROR(...) ::spdlog::error(__VA_ARGS__)

namespace reprise {

// Sets the level from REPRISE_LOG (debug, info, warning, error; default
// warning) and the pattern. Called once by main.
void InitializeLogging();

}  // namespace reprise

#endif  // REPRISE_REPLAY_BASE_LOG_H_
