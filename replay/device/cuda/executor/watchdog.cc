#include "replay/device/cuda/executor/watchdog.h"

#include <unistd.h>

namespace reprise::cuda {
namespace {

// What a clock can hold with ease; more is no limit.
constexpr double kLongestMs = 1e12;

}  // namespace

Watchdog::Watchdog() : thread_([this] { Watch(); }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::Arm(double milliseconds) {
  if (milliseconds <= 0 || milliseconds > kLongestMs) return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    deadline_ = Clock::now() +
                std::chrono::duration_cast<Clock::duration>(
                    std::chrono::duration<double, std::milli>(milliseconds));
  }
  changed_.notify_one();
}

void Watchdog::Disarm() {
  std::lock_guard<std::mutex> lock(mutex_);
  deadline_.reset();
}

void Watchdog::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    if (!deadline_.has_value()) {
      changed_.wait(lock);
    } else if (Clock::now() >= *deadline_) {
      _exit(kTimeoutExitCode);
    } else {
      // A copy: Disarm may take the deadline away.
      const Clock::time_point deadline = *deadline_;
      changed_.wait_until(lock, deadline);
    }
  }
}

}  // namespace reprise::cuda
