// Ends this process when a kernel takes too long: nothing else stops one.
// Thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_WATCHDOG_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_WATCHDOG_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace reprise::cuda {

// What the process ends with then.
inline constexpr int kTimeoutExitCode = 75;

class Watchdog {
 public:
  Watchdog();
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // 0: no limit.
  void Arm(double milliseconds);
  void Disarm();

 private:
  using Clock = std::chrono::steady_clock;
  void Watch();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Clock::time_point> deadline_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_WATCHDOG_H_
