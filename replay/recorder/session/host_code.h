// Host code of a program in one executor: where its variables live, and
// launching. Not thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_HOST_CODE_H_
#define REPRISE_REPLAY_RECORDER_SESSION_HOST_CODE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/device/cpu/executor_client.h"
#include "replay/recorder/session/arena_memory.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

using SymbolAddresses = std::map<std::string, uint64_t>;

// An executor child over one memory file, with what is loaded in it.
class HostExecutor {
 public:
  // `options.memory_fd` outlives this. The child starts when first needed.
  explicit HostExecutor(ExecutorClient::Options options);

  // Maps what is live in `memory`, if that changed since the last call.
  absl::Status Map(const ArenaMemory& memory);

  // Loads an object; returns the module's number. `initialize`: whether its
  // variables get their initial values, which happens once in their life.
  absl::StatusOr<uint64_t> Load(const v1::CompileReply& code,
                                const SymbolAddresses& addresses,
                                bool initialize);
  absl::Status Unload(uint64_t module);

  absl::StatusOr<LaunchReport> Launch(uint64_t module,
                                      const v1::CompiledKernelInfo& kernel,
                                      const v1::LaunchConfig& launch,
                                      const std::string& arguments,
                                      bool instrumented,
                                      absl::Duration timeout);

 private:
  absl::Status Start();

  const ExecutorClient::Options options_;
  std::unique_ptr<ExecutorClient> client_;
  uint64_t mapped_generation_ = 0;
  bool mapped_ = false;
  uint64_t next_module_ = 1;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_HOST_CODE_H_
