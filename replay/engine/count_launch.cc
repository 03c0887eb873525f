#include "replay/engine/count_launch.h"

#include <random>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

absl::StatusOr<v1::Counters> Count(Device& device, const UnitReader& unit,
                                   const v1::CompileReply* code,
                                   const v1::LaunchConfig& launch,
                                   absl::Duration timeout) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> counting,
                   device.OpenForCounting());
  ASSIGN_OR_RETURN(const std::unique_ptr<ResidentUnit> resident,
                   counting->Load(unit));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<LoadedKernel> kernel,
      code == nullptr
          ? resident->LoadApplicationKernel()
          : resident->LoadKernel(*code, unit.manifest().kernel().symbol()));
  LaunchOptions options;
  options.launch = launch;
  options.timeout = timeout;
  options.poison_seed = std::random_device()();
  const auto prepare = [&]() -> absl::Status {
    RETURN_IF_ERROR(resident->Restore());
    return resident->Poison(options.poison_seed);
  };
  // Once without counting: what the kernel needs of the device (memory that it
  // writes against its recording) is found out by that.
  RETURN_IF_ERROR(prepare());
  ASSIGN_OR_RETURN(const LaunchReport report,
                   resident->Launch(*kernel, options));
  if (report.kind != v1::OUTCOME_KIND_OK) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the launch to count ended with ", v1::OutcomeKind_Name(report.kind),
        ": ", report.diagnostics));
  }
  RETURN_IF_ERROR(prepare());
  return resident->Count(*kernel, options);
}

}  // namespace

v1::Counters CountLaunch(Device& device, const UnitReader& unit,
                         const v1::CompileReply* code,
                         const v1::LaunchConfig& launch,
                         absl::Duration timeout) {
  absl::StatusOr<v1::Counters> counters =
      Count(device, unit, code, launch, timeout);
  if (counters.ok()) return *std::move(counters);
  return NothingCounted(std::string(counters.status().message()));
}

v1::Counters NothingCounted(const std::string& why) {
  v1::Counters counters;
  counters.set_absent(why);
  return counters;
}

}  // namespace reprise
