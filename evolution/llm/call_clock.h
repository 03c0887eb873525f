// Time, as the clients of models wait for it. Tests have one that passes
// without waiting. Thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_CALL_CLOCK_H_
#define REPRISE_EVOLUTION_LLM_CALL_CLOCK_H_

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "evolution/llm/chat_model.h"

namespace reprise::evolution {

class CallClock {
 public:
  virtual ~CallClock() = default;
  virtual absl::Time Now() = 0;
  virtual void Sleep(absl::Duration duration) = 0;

  // The system's. Lives forever.
  static CallClock& System();
};

// CANCELLED, DEADLINE_EXCEEDED: as `limits` says of now. `what` reads like
// "asking gpt".
absl::Status CheckLimits(const ChatLimits& limits, CallClock& clock,
                         const std::string& what);

// Sleeps until `time` in steps of at most 50 ms. CANCELLED: by `limits`.
// DEADLINE_EXCEEDED: at once where `time` is beyond the deadline.
absl::Status WaitUntil(absl::Time time, const ChatLimits& limits,
                       CallClock& clock, const std::string& what);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_CALL_CLOCK_H_
