#include "evolution/llm/call_clock.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace reprise::evolution {
namespace {

class SystemClock : public CallClock {
 public:
  absl::Time Now() override { return absl::Now(); }
  void Sleep(absl::Duration duration) override { absl::SleepFor(duration); }
};

bool Cancelled(const ChatLimits& limits) {
  return limits.cancelled != nullptr &&
         limits.cancelled->load(std::memory_order_relaxed);
}

}  // namespace

CallClock& CallClock::System() {
  static CallClock& clock = *new SystemClock();
  return clock;
}

absl::Status CheckLimits(const ChatLimits& limits, CallClock& clock,
                         const std::string& what) {
  if (Cancelled(limits)) {
    return absl::CancelledError(absl::StrCat(what, " was cancelled"));
  }
  if (clock.Now() >= limits.deadline) {
    return absl::DeadlineExceededError(
        absl::StrCat(what, " took longer than it may"));
  }
  return absl::OkStatus();
}

absl::Status WaitUntil(absl::Time time, const ChatLimits& limits,
                       CallClock& clock, const std::string& what) {
  if (time > limits.deadline && !Cancelled(limits)) {
    return absl::DeadlineExceededError(absl::StrCat(
        what, " would have to wait ",
        absl::FormatDuration(absl::Trunc(time - clock.Now(), absl::Seconds(1))),
        ", which is longer than it may take"));
  }
  for (absl::Time now = clock.Now(); now < time; now = clock.Now()) {
    if (Cancelled(limits)) {
      return absl::CancelledError(absl::StrCat(what, " was cancelled"));
    }
    clock.Sleep(std::min(time - now, absl::Milliseconds(50)));
  }
  return CheckLimits(limits, clock, what);
}

}  // namespace reprise::evolution
