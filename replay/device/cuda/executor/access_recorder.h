// Which bytes an instrumented kernel touches (access_notes.h). One launch each.
// Not thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_ACCESS_RECORDER_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_ACCESS_RECORDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/device/cuda/access_notes.h"
#include "replay/device/cuda/executor/gpu.h"
#include "replay/device/cuda/executor/module.h"
#include "replay/device/cuda/executor/unit_memory.h"

namespace reprise::cuda {

class AccessRecorder {
 public:
  // Clears the planes and tells the module's code of them. FAILED_PRECONDITION
  // where the code is not instrumented, RESOURCE_EXHAUSTED where the device has
  // not enough memory: two bits for every byte of the unit.
  static absl::StatusOr<std::unique_ptr<AccessRecorder>> Create(
      Gpu& gpu, const UnitMemory& memory, const Module& module);
  ~AccessRecorder();
  AccessRecorder(const AccessRecorder&) = delete;
  AccessRecorder& operator=(const AccessRecorder&) = delete;

  // After the launch: what was touched, by recorded addresses. `remark` says
  // what no range holds, if anything. Which reads came before writes is not
  // told: where blocks wait for each other it changes from run to run.
  absl::StatusOr<v1::AccessReport> Report(std::string* remark);

 private:
  struct Range {
    uint64_t recorded = 0;  // address in the recording
    NotedRange noted;       // where it is now
  };
  explicit AccessRecorder(Gpu& gpu) : gpu_(gpu) {}
  absl::Status Allocate();
  absl::Status ReportPlane(
      const Range& range, uint64_t plane,
      google::protobuf::RepeatedPtrField<v1::AccessInterval>* intervals);
  absl::Status ReportTypes(const Range& range, v1::AccessReport* report);

  Gpu& gpu_;
  std::vector<Range> ranges_;  // by present address
  uint64_t notes_ = 0;         // AccessNotes, in the module
  CUdeviceptr memory_ = 0;     // planes, types, ranges
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_ACCESS_RECORDER_H_
