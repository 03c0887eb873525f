// A GPU's clocks, and what holds them down, from NVIDIA's management library
// (libnvidia-ml.so.1), which is loaded where it is there. Nothing is ever set.
//
// The library numbers devices on its own; the PCI bus id names the one that
// CUDA means. Of a partition (MIG) the whole device's clocks are read.
//
// Not thread-safe; the library stays loaded.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_CLOCK_READER_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_CLOCK_READER_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "reprise/v1/types.pb.h"

namespace reprise::cuda {

// Names the library to load instead of libnvidia-ml.so.1; for tests.
inline constexpr char kManagementVariable[] = "REPRISE_NVML";

// How often something may be done that should not take more than a twentieth of
// the time; what takes less than 50 us may always be done.
class Pace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  bool IsDue(Time now) const { return now >= next_; }
  void Note(Time begin, Time end);

 private:
  Time next_ = Time::min();
};

class ClockReader {
 public:
  // Where the library is missing or knows no such device, every sample says
  // so.
  static std::unique_ptr<ClockReader> Create(const std::string& pci_bus_id);
  virtual ~ClockReader() = default;

  // Nothing where the last sample was taken too short ago for what it cost.
  // Temperature and power are as of the last tenth of a second.
  virtual std::optional<v1::ClockSample> SampleIfDue() = 0;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_CLOCK_READER_H_
