// The seam between the replay engine and whatever runs kernels: the host (cpu)
// or a GPU (cuda).
//
// A Device keeps units resident. A ResidentUnit owns the unit's memory on the
// device; between Restore and Verify nothing crosses this interface byte by
// byte. The engine calls, for every launch that counts:
//
//   Restore -> Poison -> Launch -> Verify
//
// The verdict never trusts the variant: reference bytes live where a kernel
// cannot reach them.
//
// Thread-safety: a Device may be used from several threads; a ResidentUnit and
// its LoadedKernels from one at a time. Lifetime: a Device outlives its
// ResidentUnits, a ResidentUnit its LoadedKernels.
#ifndef REPRISE_REPLAY_DEVICE_DEVICE_H_
#define REPRISE_REPLAY_DEVICE_DEVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "reprise/v1/node.pb.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

class UnitReader;  // replay/unit/unit_store.h

struct DeviceFacts {
  std::string kind;  // "cpu" or "cuda:N"
  std::string name;  // e.g. "AMD EPYC 9654 (2 threads)"
  std::string architecture;
  uint32_t max_threads_per_block = 1024;
  uint32_t max_shared_bytes_per_block = 0;
  uint32_t parallel_units = 0;  // host threads or multiprocessors
  std::string uuid;             // of a GPU; empty: none
  std::string driver;  // its version as CUDA numbers it, "13.0"; empty: none
  // What every launch finds in the L2 cache.
  v1::L2Policy l2 = v1::L2_POLICY_UNSPECIFIED;
  std::string
      clocks_unknown;  // why launches come without clocks; empty: they do not
};

// What one launch did. `kind` is OK, INVALID_LAUNCH, TIMEOUT, DEVICE_FAULT, or
// INFRASTRUCTURE.
struct LaunchReport {
  v1::OutcomeKind kind = v1::OUTCOME_KIND_UNSPECIFIED;
  absl::Duration device_time;  // read where the kernel's code cannot reach
  // By the host's clock, from before the launch until the device has nothing
  // left to do, for the cross-check: the device time and what submitting and
  // waiting cost, no restoring or verifying. Zero: not read.
  absl::Duration wall_time;
  // Nothing where none were asked for, or none were due.
  std::optional<v1::ClockSample> clocks;
  std::string diagnostics;
  std::string printf_output;
  v1::AccessReport accesses;  // of an instrumented launch
};

// Machine code loaded on a device. Destroying it unloads it.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
};

struct LaunchOptions {
  v1::LaunchConfig launch;
  absl::Duration timeout = absl::Seconds(10);
  uint64_t poison_seed = 0;  // fills shared memory where that is cheap
  bool instrumented = false;
  // Clocks are wanted with the report; where they can be read they come with
  // it, or with one soon after.
  bool sample_clocks = false;
  // Another one than DeviceFacts says, where the device controls its cache.
  std::optional<v1::L2Policy> l2;
  // That of the Verify to come: a device may verify at once, so that nobody
  // waits for a message between the two.
  std::optional<v1::Tolerance> verify_tolerance;
};

// How memory after a launch compares with the reference.
struct Verdict {
  bool equal = false;  // within tolerance everywhere, and nothing changed
                       // outside the write-set
  std::vector<v1::RangeErrors>
      ranges;  // of every range that was compared and written
};

class ResidentUnit {
 public:
  virtual ~ResidentUnit() = default;

  // Loads code built for this device by the compiler; `kernel` describes its
  // entry.
  virtual absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(
      const v1::CompileReply& code, const std::string& kernel_symbol) = 0;

  // Loads the application's own machine code, with the recorded kernel symbol.
  // UNIMPLEMENTED where this device cannot run it (another kind of device or
  // architecture); the message says why.
  virtual absl::StatusOr<std::unique_ptr<LoadedKernel>>
  LoadApplicationKernel() {
    return absl::UnimplementedError(
        "this device runs no machine code of an application's own");
  }

  // Puts back the prologue wherever any earlier launch or poisoning wrote.
  virtual absl::Status Restore() = 0;

  // Overwrites every byte that the recorded launch wrote before reading, with
  // bytes that depend on the seed.
  virtual absl::Status Poison(uint64_t seed) = 0;

  // Runs the kernel once with the unit's arguments. A fault or timeout of the
  // kernel is in the report; the unit is usable afterwards. A Status is an
  // error of this machine (INFRASTRUCTURE).
  virtual absl::StatusOr<LaunchReport> Launch(LoadedKernel& kernel,
                                              const LaunchOptions& options) = 0;

  // Compares memory with the reference: within `default_tolerance` for
  // floating-point ranges that declare none, by bits elsewhere.
  virtual absl::StatusOr<Verdict> Verify(
      const v1::Tolerance& default_tolerance) = 0;

  // Counts what the hardware does in a launch that begins as Launch's would;
  // the kernel runs several times. Of a device from OpenForCounting only, so
  // that no profiler comes near a timed launch. The counters say why where
  // there are none; memory holds anything afterwards.
  virtual absl::StatusOr<v1::Counters> Count(LoadedKernel&,
                                             const LaunchOptions&) {
    return absl::UnimplementedError("this device counts nothing");
  }

  // Makes the present contents the reference instead of the recorded epilogue
  // (another kind of device than the recording one, perturbed inputs).
  virtual absl::Status AdoptReference() = 0;
};

struct LoadOptions {
  // The prologue is not the recorded one (perturbed inputs), so the kernel may
  // write elsewhere than it was seen to.
  bool inputs_differ = false;
  // One launch is all: it need not be restored after or verified, so a device
  // may do without the copies for that. Another Launch, and Verify, may fail
  // then.
  bool run_once = false;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceFacts& facts() const = 0;
  // What the compile pool should build for this device.
  virtual v1::CompileTarget compile_target() const = 0;
  virtual absl::StatusOr<std::unique_ptr<ResidentUnit>> Load(
      const UnitReader& unit, const LoadOptions& options) = 0;
  absl::StatusOr<std::unique_ptr<ResidentUnit>> Load(const UnitReader& unit) {
    return Load(unit, LoadOptions());
  }

  // The same hardware, for ResidentUnit::Count: units are loaded there anew.
  // UNIMPLEMENTED where there is nothing to count with.
  virtual absl::StatusOr<std::unique_ptr<Device>> OpenForCounting() {
    return absl::UnimplementedError(
        absl::StrCat("the ", facts().kind, " device has no counters"));
  }
  // What the hardware can do at most, measured now, in some tens of
  // milliseconds. UNIMPLEMENTED where nothing measures it.
  virtual absl::StatusOr<v1::DeviceCeilings> MeasureCeilings() {
    return absl::UnimplementedError(absl::StrCat(
        "no ceilings are measured of the ", facts().kind, " device"));
  }
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_DEVICE_DEVICE_H_
