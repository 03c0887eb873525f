// What the verbs share: settings, exit codes, and how stores, devices and
// compile pools are made from them. Used from the main thread only.
#ifndef REPRISE_SERVICES_CLI_CONTEXT_H_
#define REPRISE_SERVICES_CLI_CONTEXT_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "replay/compiler/compile_pool.h"
#include "replay/device/device.h"
#include "replay/unit/unit_store.h"
#include "services/common/settings.h"

namespace reprise {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNothingBetter = 3;
inline constexpr int kExitInterrupted = 130;

struct CliContext {
  Settings settings;
  int exit_code = kExitDone;
  bool json = false;
  std::string l2 = "cold";  // or "warm": what launches find in a GPU's L2 cache

  // Prints "reprise: message" and remembers the exit code that fits.
  void Fail(const absl::Status& status);

  absl::StatusOr<std::unique_ptr<UnitStore>> OpenStore(bool create) const;
  // A unit by id or unique prefix. An empty or missing store says how to record
  // one.
  absl::StatusOr<UnitReader> OpenUnit(const std::string& id) const;
  // "cpu" or "cuda:N", as the setting says; auto: the first GPU where there is
  // one.
  absl::StatusOr<std::string> DeviceKind() const;
  absl::StatusOr<std::unique_ptr<Device>> MakeDevice() const;
  // Of one kind, as DeviceKind names them.
  absl::StatusOr<std::unique_ptr<Device>> MakeDevice(
      const std::string& kind) const;
  // A compile may take that long, and never longer than is usual.
  absl::StatusOr<std::unique_ptr<CompilePool>> MakePool(
      absl::Duration longest_compile = absl::InfiniteDuration()) const;
  // The setting, with 0 meaning one per processor.
  absl::StatusOr<int> CompileWorkers() const;
};

// Adds the options every verb has (--store, --device, --threads, ...; --json
// where the verb reports) to a subcommand.
void AddCommonOptions(CLI::App* verb, CliContext* context, bool reports);

// --l2, for verbs that time kernels.
void AddL2Option(CLI::App* verb, CliContext* context);

// "20s", "5m", "1h30m", "250ms". INVALID_ARGUMENT otherwise or when not
// positive.
absl::StatusOr<absl::Duration> ParseDuration(const std::string& text);

// "64MiB", "10GB", "4096".
absl::StatusOr<uint64_t> ParseBytes(const std::string& text);

// "1e-6" (absolute and relative) or "abs=1e-8,rel=1e-5".
absl::StatusOr<v1::Tolerance> ParseTolerance(const std::string& text);

// Result on standard output.
void PrintJson(const nlohmann::ordered_json& json);

// Set by SIGINT and SIGTERM; the handlers are installed on first use. A second
// one ends the process.
const std::atomic<bool>* InterruptFlag();

// What an interrupt should wait for, as the user is told: "finishing what was
// found". Null (at first so): nothing, and an interrupt also stops the launches
// of devices from MakeDevice. The text outlives the process's last interrupt.
void SetWorthFinishing(const char* what);

// Each verb adds its subcommand; its callback sets context->exit_code.
void AddRecordVerb(CLI::App* app, CliContext* context);
void AddUnitsVerb(CLI::App* app, CliContext* context);
void AddInspectVerb(CLI::App* app, CliContext* context);
void AddReplayVerb(CLI::App* app, CliContext* context);
void AddOptimizeVerb(CLI::App* app, CliContext* context);
void AddApplyVerb(CLI::App* app, CliContext* context);
void AddDemoVerb(CLI::App* app, CliContext* context);
void AddDoctorVerb(CLI::App* app, CliContext* context);
void AddServeVerb(CLI::App* app, CliContext* context);
void AddCertsVerb(CLI::App* app, CliContext* context);

}  // namespace reprise

#endif  // REPRISE_SERVICES_CLI_CONTEXT_H_
