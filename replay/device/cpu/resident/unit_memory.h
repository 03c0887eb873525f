// A unit's device memory on the host: what kernels work on, and the golden
// copies they are judged by.
//
// Working memory is a memfd that the executor child maps at the recorded
// addresses; the parent maps it elsewhere. Golden prologue and reference are
// private memory of the parent, which no kernel can reach.
//
// Where the unit knows its write set, only pages that hold written bytes are
// mapped writable, so a write anywhere else is a fault at once, and restoring
// and comparing cost what the launch wrote, not what the unit holds. Bytes of
// mapped pages that belong to no range hold a canary.
//
// Not thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CPU_RESIDENT_UNIT_MEMORY_H_
#define REPRISE_REPLAY_DEVICE_CPU_RESIDENT_UNIT_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/device/device.h"
#include "replay/unit/interval_set.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/node.pb.h"

namespace reprise::cpu {

class UnitMemory {
 public:
  // Reads the prologue and epilogue from the unit's store. RESOURCE_EXHAUSTED
  // when the host has not enough memory; FAILED_PRECONDITION when ranges lie
  // where a process cannot map.
  static absl::StatusOr<std::unique_ptr<UnitMemory>> Create(
      const UnitReader& unit, const LoadOptions& options);
  ~UnitMemory();
  UnitMemory(const UnitMemory&) = delete;
  UnitMemory& operator=(const UnitMemory&) = delete;

  int fd() const { return fd_; }
  // What the executor maps, the spare region included.
  const std::vector<v1::MemoryMapping>& mappings() const { return mappings_; }

  void Restore();
  void Poison(uint64_t seed);
  Verdict Verify(const v1::Tolerance& default_tolerance) const;
  void AdoptReference();

  // Module globals that are no range of the unit (never touched by the recorded
  // launch, or added by a variant) live in a spare region. Returns an address
  // for `bytes`, restored with everything else. RESOURCE_EXHAUSTED when full.
  absl::StatusOr<uint64_t> AllocateSpare(uint64_t bytes, uint32_t alignment);
  // Of AllocateSpare; no code that uses it is loaded any more.
  void FreeSpare(uint64_t address);
  // Takes the present contents of one as what Restore puts back.
  void CaptureSpare(uint64_t address);

 private:
  // A run of whole pages, all writable or none, at one place of the file.
  struct Run {
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint64_t offset = 0;  // in the file, the golden copy and the reference
    bool writable = false;
  };
  struct Range {
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint64_t offset = 0;
    std::string name;
    v1::ElementType type = v1::ELEMENT_TYPE_UNTYPED;
    bool has_tolerance = false;
    v1::Tolerance tolerance;
    bool has_write_set = false;
    IntervalSet writes;
    IntervalSet poisoned;  // written before they are read
    IntervalSet spans;     // bytes of it that lie in writable pages
  };

  UnitMemory() = default;
  absl::Status ReadRanges(const UnitReader& unit, const LoadOptions& options);
  absl::Status LayOut();
  void SplitByWritability(const Run& pages);
  void FindSpans();
  absl::Status Allocate();
  absl::Status ReadContents(const UnitReader& unit);
  void VerifySlack(Verdict* verdict) const;
  // What of the spare region is nobody's has to stay as it is: it would keep
  // what a variant leaves there for its next launch.
  void VerifySpare(Verdict* verdict) const;
  void ClearUnusedSpare();

  std::vector<Range> ranges_;
  std::vector<Run> runs_;
  std::vector<v1::MemoryMapping> mappings_;
  int fd_ = -1;
  uint64_t bytes_ = 0;  // of the file, the spare region included
  uint64_t spare_offset_ = 0;
  std::map<uint64_t, uint64_t> spare_;  // blocks: offset in it, bytes
  uint64_t spare_used_ = 0;             // behind the last one
  char* work_ = nullptr;                // shared mapping of the file
  // The prologue and what a launch must give; filled in writable pages only.
  char* golden_ = nullptr;
  char* reference_ = nullptr;
};

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_RESIDENT_UNIT_MEMORY_H_
