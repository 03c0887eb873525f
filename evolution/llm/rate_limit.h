// A provider's limits of requests and tokens a minute, as token buckets that
// all calls of a model share. Who takes more than there is waits until it has
// come back, in the order of asking.
//
// Thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_RATE_LIMIT_H_
#define REPRISE_EVOLUTION_LLM_RATE_LIMIT_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "evolution/llm/call_clock.h"
#include "evolution/llm/chat_model.h"

namespace reprise::evolution {

struct RateLimits {
  double requests_per_minute = 0;  // 0: no limit
  double tokens_per_minute = 0;    // of prompt and output together; 0: no limit
};

class RateLimiter {
 public:
  // A bucket holds what comes in within six seconds, or the first request of a
  // full one where that is more: short bursts pass, and any minute sees at most
  // a tenth more than its limit. `clock` outlives this.
  RateLimiter(RateLimits limits, CallClock& clock);

  // Blocks until one request of `tokens` may go out. Errors as WaitUntil; then
  // nothing is taken. DEADLINE_EXCEEDED comes at once where it is certain.
  absl::Status Take(uint64_t tokens, const ChatLimits& limits,
                    const std::string& what);

  // What a request took turned out to be less or more.
  void Correct(uint64_t taken, uint64_t used);

  // The provider asks all to wait until then.
  void PauseUntil(absl::Time time);

 private:
  struct Bucket {
    double per_second = 0;
    double level = 0;  // below 0: promised to those who wait
    double capacity = 0;
  };
  void Refill(absl::Time now);  // with mutex_ held, as the rest below

  CallClock& clock_;
  std::mutex mutex_;  // guards all below
  Bucket requests_;
  Bucket tokens_;
  absl::Time refilled_;
  absl::Time paused_until_ = absl::InfinitePast();
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_RATE_LIMIT_H_
