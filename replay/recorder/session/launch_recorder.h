// Makes units out of launches.
//
// Around a chosen launch:
//   before  a scratch copy of everything live is made; on it the kernel runs
//           once as it is, to see whether it ends and later whether it gives
//           the same bits again, and once with its accesses noted; then the
//           copy is put back
//   (the application's launch runs on the application's memory)
//   after   the copy is the prologue, the memory the epilogue; what changed
//           outside the noted write set (writes that depend on the order of
//           blocks) is added to it
//
// Thread-safe; a Recording and its memories belong to one thread at a time.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_LAUNCH_RECORDER_H_
#define REPRISE_REPLAY_RECORDER_SESSION_LAUNCH_RECORDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/device/cpu/executor_client.h"
#include "replay/recorder/session/arena_memory.h"
#include "replay/recorder/session/host_code.h"
#include "replay/recorder/session/launch_ledger.h"
#include "replay/recorder/session/memory_image.h"
#include "replay/recorder/session/program.h"
#include "replay/recorder/session/unit_builder.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

// A second device memory and executor beside an application's, for runs that
// must leave no trace.
class ScratchDevice {
 public:
  static absl::StatusOr<std::unique_ptr<ScratchDevice>> Create(
      const ArenaMemory::Options& arena, ExecutorClient::Options executor);

  ArenaMemory& memory() { return *memory_; }
  // Runs a kernel of `code`, loading it when it is new.
  absl::StatusOr<LaunchReport> Launch(
      const v1::CompileReply& code, const std::string& symbol,
      const SymbolAddresses& addresses, const v1::LaunchConfig& launch,
      const std::string& arguments, bool instrumented, absl::Duration timeout);

 private:
  ScratchDevice(std::unique_ptr<ArenaMemory> memory,
                ExecutorClient::Options executor);

  std::unique_ptr<ArenaMemory> memory_;
  HostExecutor executor_;
  std::map<std::pair<const v1::CompileReply*, const SymbolAddresses*>, uint64_t>
      modules_;
};

// A launch that is about to run. Everything borrowed outlives the recording.
struct ChosenLaunch {
  LaunchTicket ticket;
  const ArenaMemory* memory = nullptr;
  std::shared_ptr<const Program> program;
  std::string symbol;  // in the program
  const SymbolAddresses* addresses = nullptr;
  v1::LaunchConfig launch;
  std::string arguments;
};

class LaunchRecorder {
 public:
  struct Options {
    uint64_t max_unit_bytes = 0;
    absl::Duration launch_timeout;
    ExecutorClient::Options executor;
    std::vector<std::string> command;
  };
  // `store` and `ledger` outlive the recorder.
  LaunchRecorder(Options options, UnitStore* store, LaunchLedger* ledger);

  struct Recording;

  // Null: an equal launch is recorded already. FAILED_PRECONDITION: this launch
  // cannot be recorded, and why. `scratch` is made when it is null, and must be
  // thrown away after an error.
  absl::StatusOr<std::shared_ptr<Recording>> Before(
      const ChosenLaunch& chosen, std::unique_ptr<ScratchDevice>* scratch);

  // After the launch ran without a fault. Adds the unit to the ledger.
  absl::Status After(Recording& recording, const LaunchReport& report);

 private:
  bool IsRecorded(const ChosenLaunch& chosen) const;
  absl::Status RunPlain(Recording& recording);
  absl::Status Observe(Recording& recording);
  static LaunchFacts FactsOf(const Recording& recording,
                             std::vector<ImageRange> image);

  const Options options_;
  UnitBuilder builder_;
  LaunchLedger* const ledger_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_LAUNCH_RECORDER_H_
