// The parent's end of a cpu executor: the crash-isolated child process that
// runs device code on host threads.
//
// The child is this executable (or Options::executable) run again with
// Options::arguments, joined over ZeroMQ ipc:// in a 0700 directory
// (proto/reprise/v1/node.proto). It inherits the shared memory file and maps
// pieces of it at the addresses it is told. A kernel that crashes or hangs it
// is reported as DEVICE_FAULT or TIMEOUT; the next call starts a new child and
// maps and loads everything again.
//
// Not thread-safe. Destroying it ends the child.
#ifndef REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_CLIENT_H_
#define REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/device/device.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

class ExecutorClient {
 public:
  struct Options {
    std::string executable;  // empty: this one
    std::vector<std::string> arguments = {"executor"};
    int memory_fd =
        -1;  // memfd with the device memory; not owned, must outlive the client
    int threads = 0;  // host threads that run blocks; 0: all
    // Null, or set from any thread when nobody waits for launches any more; not
    // owned, must outlive the client.
    const std::atomic<bool>* stop = nullptr;
  };
  static absl::StatusOr<std::unique_ptr<ExecutorClient>> Start(Options options);
  virtual ~ExecutorClient() = default;

  // Replaces all mappings. ALREADY_EXISTS when an address is taken in the child
  // (it says by what).
  virtual absl::Status MapMemory(
      const std::vector<v1::MemoryMapping>& mappings) = 0;

  // Loads a relocatable object from the compiler; request.module names it from
  // then on.
  virtual absl::Status LoadModule(const v1::LoadModuleRequest& request) = 0;
  virtual absl::Status UnloadModule(uint64_t module) = 0;

  // Runs one launch. The report's kind is OK, INVALID_LAUNCH, DEVICE_FAULT or
  // TIMEOUT. CANCELLED: it was stopped (Options::stop); the child is gone.
  virtual absl::StatusOr<LaunchReport> Launch(const v1::LaunchRequest& request,
                                              absl::Duration timeout) = 0;

  virtual uint64_t restarts() const = 0;
};

// main() of the child; argv after the verb. Returns the exit code.
int ExecutorMain(int argc, char** argv);

}  // namespace reprise

#endif  // REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_CLIENT_H_
