// Serves one application process that records on a GPU
// (driver/protocol.h) until it hangs up. What it sends is not trusted: a
// malformed message ends the connection, not the recorder. Thread-safe for
// different connections.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_DRIVER_CONNECTION_H_
#define REPRISE_REPLAY_RECORDER_SESSION_DRIVER_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "replay/recorder/session/captured_launch.h"
#include "replay/recorder/session/launch_ledger.h"
#include "replay/recorder/session/program.h"
#include "replay/recorder/session/substitutions.h"

namespace reprise {

// Captures of all processes of an application, until they are made units.
// Thread-safe.
class CaptureList {
 public:
  void Add(CapturedLaunch captured) {
    const std::lock_guard<std::mutex> lock(mutex_);
    captures_.push_back(std::move(captured));
  }
  std::vector<CapturedLaunch> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(captures_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<CapturedLaunch> captures_;
};

struct DriverConnectionOptions {
  uint64_t arena_base = 0;
  uint64_t arena_stride = 0;
  uint32_t flags = 0;  // driver_wire::Flags
  uint64_t max_unit_bytes = 0;
  absl::Duration patience;  // see HelloReply
  ProgramCatalog* catalog = nullptr;
  LaunchLedger* ledger = nullptr;
  Substitutions* substitutions = nullptr;
  // That record now; shared by all connections.
  std::shared_ptr<std::atomic<int>> processes =
      std::make_shared<std::atomic<int>>(0);
  // Of host memory; likewise.
  std::shared_ptr<HostBudget> budget = std::make_shared<HostBudget>();
  CaptureList* captures = nullptr;
  // A process has begun to use CUDA.
  std::function<void()> on_hello;
};

// Returns when the other end is gone; does not close `fd`.
void ServeDriverConnection(int fd, const DriverConnectionOptions& options);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_DRIVER_CONNECTION_H_
