// Counts what the hardware does in a launch, with CUPTI's Range Profiler.
//
// The counters do not all fit into the hardware at once, so that a launch runs
// several times (passes), each time with other counters. Between passes the
// caller puts memory back ("user replay"): the profiler's own way of doing that
// knows nothing of poison and of memory at recorded addresses.
//
//   counter = Create
//   do { prepare; counter->Begin; launch and wait; counter->End(&done) }
//   while (!done)
//   counter->Values
//
// Not thread-safe. Destroying it switches profiling off.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_LAUNCH_COUNTER_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_LAUNCH_COUNTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/device/cuda/executor/cupti.h"
#include "replay/device/cuda/executor/gpu.h"
#include "reprise/v1/types.pb.h"

namespace reprise::cuda {

class LaunchCounter {
 public:
  // NOT_FOUND, FAILED_PRECONDITION, PERMISSION_DENIED: nothing can be counted
  // here, and why.
  static absl::StatusOr<std::unique_ptr<LaunchCounter>> Create(
      Gpu& gpu, const std::string& cuda_home);
  ~LaunchCounter();
  LaunchCounter(const LaunchCounter&) = delete;
  LaunchCounter& operator=(const LaunchCounter&) = delete;

  absl::Status Begin();
  absl::Status End(bool* done);
  // After the last pass.
  absl::StatusOr<v1::Counters> Values();

 private:
  // A host object of the profiler's: metrics in, images and values out.
  class Metrics;
  LaunchCounter(Gpu& gpu, std::unique_ptr<const Cupti> cupti);
  absl::Status Start();
  absl::Status ReadDevice();
  absl::Status ChooseMetrics();
  absl::Status Configure();
  bool IsKnown(const std::string& metric);

  Gpu& gpu_;
  const std::unique_ptr<const Cupti> cupti_;
  bool initialized_ = false;
  std::string chip_;
  std::vector<uint8_t> availability_;
  std::vector<std::string> metrics_;  // that the device has
  std::unique_ptr<Metrics> host_;
  CUpti_RangeProfiler_Object* profiler_ = nullptr;
  std::vector<uint8_t> config_, data_;
  uint32_t passes_ = 0;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_LAUNCH_COUNTER_H_
