// What an instrumented launch touches, byte by byte: read, written, read before
// written, and as which type. Also counts floating-point operations and bytes.
//
// Memory outside the given ranges (stacks, shared memory) is not counted.
// Shadow memory is one byte per byte, committed where touched. Not thread-safe:
// an instrumented launch runs on one thread.
#ifndef REPRISE_REPLAY_DEVICE_CPU_RUNTIME_SHADOW_H_
#define REPRISE_REPLAY_DEVICE_CPU_RUNTIME_SHADOW_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/device/cpu/abi.h"
#include "reprise/v1/node.pb.h"

namespace reprise::cpu {

struct AddressRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

class Shadow {
 public:
  // RESOURCE_EXHAUSTED when the system has no address space for it.
  static absl::StatusOr<std::unique_ptr<Shadow>> Create(
      std::vector<AddressRange> ranges);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  void Read(uint64_t address, uint64_t bytes, AccessType type);
  void Write(uint64_t address, uint64_t bytes, AccessType type);
  void CountFlops(uint64_t count) { flops_ += count; }

  v1::AccessReport Report() const;

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
    uint8_t* marks;             // one byte per byte
    std::vector<bool> touched;  // one bit per page of marks
  };
  Shadow() = default;
  Range* Find(uint64_t address, uint64_t bytes);
  void ReportRange(const Range& range, v1::AccessReport* report) const;

  std::vector<Range> ranges_;  // sorted
  Range* last_ = nullptr;
  uint64_t flops_ = 0;
  uint64_t bytes_read_ = 0;
  uint64_t bytes_written_ = 0;
};

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_RUNTIME_SHADOW_H_
