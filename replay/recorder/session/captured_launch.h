// A launch as it was taken out of an application on a GPU: everything live
// before it and after it, and what was launched. RecordingFinisher makes a unit
// of it.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_CAPTURED_LAUNCH_H_
#define REPRISE_REPLAY_RECORDER_SESSION_CAPTURED_LAUNCH_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/recorder/session/arena_memory.h"
#include "replay/recorder/session/host_memory.h"
#include "replay/recorder/session/launch_ledger.h"
#include "replay/recorder/session/program.h"
#include "replay/unit/interval_set.h"
#include "reprise/v1/node.pb.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

// Prologue and epilogue of everything live. The image is the ranges' bytes in
// order, each beginning at a multiple of 4096. Of the epilogue only the blocks
// that differ take memory. Not thread-safe but where it says so.
class CapturedMemory {
 public:
  // Ranges ascend, are disjoint and not empty. `reserve` (may be null) is where
  // pages come from; `budget` outlives this. INVALID_ARGUMENT: they are not;
  // RESOURCE_EXHAUSTED: this host cannot hold them.
  static absl::StatusOr<std::unique_ptr<CapturedMemory>> Create(
      const std::vector<LiveRange>& ranges, HostReserve* reserve,
      HostBudget* budget);
  CapturedMemory(const CapturedMemory&) = delete;
  CapturedMemory& operator=(const CapturedMemory&) = delete;

  uint64_t image_bytes() const { return image_bytes_; }
  const std::map<uint64_t, LiveRange>& live() const { return live_; }

  // Pieces of the image before and after the launch: every byte once, offsets
  // multiples of 1 MiB, all of the prologue before any of the epilogue. From
  // several threads at once.
  void TakePrologue(uint64_t offset, std::string_view piece);
  // All of the prologue is here.
  void ExpectEpilogue();
  void TakeEpilogue(uint64_t offset, std::string_view piece);
  // All of the epilogue is. RESOURCE_EXHAUSTED: there was no memory for all
  // blocks that differ.
  absl::Status FinishEpilogue();

  // Bytes inside one range; the memory lives as long as this.
  std::string_view Prologue(uint64_t address, uint64_t bytes) const;
  std::string_view Epilogue(uint64_t address, uint64_t bytes) const;
  // Whether one may be unlike the other.
  bool MayDiffer(uint64_t address, uint64_t bytes) const;
  // By absolute address.
  IntervalSet Differences() const;

 private:
  CapturedMemory() = default;
  uint64_t OffsetOf(uint64_t address) const;

  HostPages prologue_;
  // Whole blocks, where `stored_` says so. Others are the prologue's and come
  // when they are asked for.
  HostPages epilogue_;
  mutable std::vector<char> stored_;
  std::vector<char> differs_;  // blocks
  HostBudget* budget_ = nullptr;
  HostBudget::Promise promise_;  // for what is still to come of an image
  std::atomic<int64_t> epilogue_room_ = 0;  // bytes
  std::atomic<bool> out_of_room_ = false;
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
  // The source, where Clang makes no IR of it: only NVIDIA's compiler builds
  // variants then, and `program` is null.
  std::vector<std::shared_ptr<const SourceUnit>> sources;
  std::unique_ptr<CapturedMemory> memory;
  // Of the arguments: an address, perhaps, of memory that CUDA was never given
  // and that is not in `memory`; 0: none.
  uint64_t host_pointer = 0;
  absl::Duration duration;
  absl::Duration copy_time;  // of the prologue, device to host
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_CAPTURED_LAUNCH_H_
