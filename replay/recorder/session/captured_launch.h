// A launch as it was taken out of an application on a GPU: everything live
// before it and after it, and what was launched. RecordingFinisher makes a unit
// of it.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_CAPTURED_LAUNCH_H_
#define REPRISE_REPLAY_RECORDER_SESSION_CAPTURED_LAUNCH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/recorder/session/arena_memory.h"
#include "replay/recorder/session/launch_ledger.h"
#include "replay/recorder/session/program.h"
#include "replay/unit/interval_set.h"
#include "reprise/v1/node.pb.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

// Prologue and epilogue of everything live, in a memfd that the application
// fills: the ranges' bytes in order, each beginning at a multiple of 4096, then
// the same again as they are after the launch. Not thread-safe.
class CapturedMemory {
 public:
  // Ranges ascend, are disjoint and not empty. INVALID_ARGUMENT: they are not;
  // RESOURCE_EXHAUSTED: this host cannot hold them.
  static absl::StatusOr<std::unique_ptr<CapturedMemory>> Create(
      const std::vector<LiveRange>& ranges);
  ~CapturedMemory();
  CapturedMemory(const CapturedMemory&) = delete;
  CapturedMemory& operator=(const CapturedMemory&) = delete;

  // For the application; -1 once it was closed.
  int fd() const { return fd_; }
  void CloseDescriptor();

  uint64_t image_bytes() const { return image_bytes_; }
  const std::map<uint64_t, LiveRange>& live() const { return live_; }

  // Copies the blocks whose bit is not set from the prologue into the epilogue.
  // INVALID_ARGUMENT: too few bits.
  absl::Status CompleteEpilogue(std::string_view changed_bits);

  // Bytes inside one range; the memory lives as long as this.
  std::string_view Prologue(uint64_t address, uint64_t bytes) const;
  std::string_view Epilogue(uint64_t address, uint64_t bytes) const;
  // By absolute address.
  IntervalSet Differences() const;

 private:
  CapturedMemory() = default;
  const char* At(uint64_t address) const;

  int fd_ = -1;
  char* mapping_ = nullptr;
  uint64_t image_bytes_ = 0;
  std::map<uint64_t, LiveRange> live_;
  std::map<uint64_t, uint64_t> offsets_;  // in the image, by range's address
};

struct CapturedLaunch {
  LaunchTicket ticket;
  uint32_t device = 0;
  // As the driver knows the kernel: name and parameter table.
  v1::CompiledKernelInfo kernel;
  v1::LaunchConfig launch;
  std::string arguments;
  std::shared_ptr<const std::string> machine_code;
  std::shared_ptr<const Program> program;  // null: no source is known
  std::string no_source;                   // why
  std::unique_ptr<CapturedMemory> memory;
  absl::Duration duration;
  absl::Duration copy_time;  // of the prologue, device to host
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_CAPTURED_LAUNCH_H_
