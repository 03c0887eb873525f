// From a captured launch to a unit, after the application is done and its
// device is free again.
//
// The capture is loaded whole on a device of the same kind. There the kernel's
// IR, built so that it notes its accesses, runs once: what it touches is the
// unit's memory, and its read and write sets say what may be poisoned and must
// be checked. Then the application's own machine code runs, to see whether it
// gives the recorded epilogue bit for bit. Where no source is known, memory
// stays whole and the bytes that differ are the write set.
//
// Not thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_RECORDING_FINISHER_H_
#define REPRISE_REPLAY_RECORDER_SESSION_RECORDING_FINISHER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/device/device.h"
#include "replay/recorder/session/captured_launch.h"
#include "replay/recorder/session/launch_ledger.h"
#include "replay/recorder/session/memory_image.h"
#include "replay/recorder/session/unit_builder.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

class RecordingFinisher {
 public:
  struct Options {
    uint64_t max_unit_bytes = 0;
    absl::Duration launch_timeout;
    std::vector<std::string> command;
    // How long a device that has too little memory may take to have more.
    absl::Duration memory_patience = absl::Seconds(3);
  };
  // Everything borrowed outlives the finisher.
  RecordingFinisher(Options options, Device* device, UnitStore* store,
                    LaunchLedger* ledger);

  // Adds the unit to the ledger. FAILED_PRECONDITION: no unit can be made of
  // it, and why; others are this machine's.
  absl::Status Finish(const CapturedLaunch& captured);

 private:
  struct Observation;

  // These ranges on the device, straight from memory.
  absl::StatusOr<std::unique_ptr<ResidentUnit>> Load(
      const CapturedLaunch& captured, const v1::CompiledKernelInfo& kernel,
      const std::vector<ImageRange>& image, const LoadOptions& options);
  absl::StatusOr<Observation> Observe(const CapturedLaunch& captured,
                                      const v1::CompiledKernelInfo& kernel);
  absl::StatusOr<bool> IsDeterministic(const CapturedLaunch& captured,
                                       const v1::CompiledKernelInfo& kernel,
                                       const std::vector<ImageRange>& image);
  absl::StatusOr<std::vector<ImageRange>> CutMemory(
      const CapturedLaunch& captured, Observation& observation);
  LaunchFacts FactsOf(const CapturedLaunch& captured,
                      const v1::CompiledKernelInfo& kernel,
                      std::vector<ImageRange> image) const;
  v1::Provenance Describe(const CapturedLaunch& captured) const;

  const Options options_;
  Device* const device_;
  LaunchLedger* const ledger_;
  UnitBuilder builder_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_RECORDING_FINISHER_H_
