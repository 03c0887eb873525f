#include "evolution/llm/rate_limit.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace reprise::evolution {
namespace {

constexpr double kBurstSeconds = 6;

}  // namespace

RateLimiter::RateLimiter(RateLimits limits, CallClock& clock)
    : clock_(clock), refilled_(clock.Now()) {
  const auto fill = [](Bucket* bucket, double per_minute, double least) {
    bucket->per_second = per_minute / 60;
    bucket->capacity = std::max(least, bucket->per_second * kBurstSeconds);
    bucket->level = bucket->capacity;
  };
  fill(&requests_, limits.requests_per_minute, 1);
  fill(&tokens_, limits.tokens_per_minute, 0);
}

void RateLimiter::Refill(absl::Time now) {
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - refilled_));
  refilled_ = std::max(refilled_, now);
  for (Bucket* bucket : {&requests_, &tokens_}) {
    bucket->level = std::min(bucket->capacity,
                             bucket->level + seconds * bucket->per_second);
  }
}

absl::Status RateLimiter::Take(uint64_t tokens, const ChatLimits& limits,
                               const std::string& what) {
  absl::Time ready;
  double from_requests = 0;
  double from_tokens = 0;
  {
    const std::lock_guard lock(mutex_);
    const absl::Time now = clock_.Now();
    Refill(now);
    ready = std::max(now, paused_until_);
    const auto take = [&](Bucket* bucket, double amount) {
      if (bucket->per_second <= 0) return 0.0;
      // A full bucket lets one pass that it could never hold; the next pays.
      const double needed = std::min(amount, bucket->capacity);
      const double missing = needed - bucket->level;
      if (missing > 0) {
        ready =
            std::max(ready, now + absl::Seconds(missing / bucket->per_second));
      }
      bucket->level -= amount;
      return amount;
    };
    from_requests = take(&requests_, 1);
    from_tokens = take(&tokens_, static_cast<double>(tokens));
  }
  absl::Status waited = WaitUntil(ready, limits, clock_, what);
  while (waited.ok()) {  // a pause may have come meanwhile
    {
      const std::lock_guard lock(mutex_);
      if (paused_until_ <= ready) return absl::OkStatus();
      ready = paused_until_;
    }
    waited = WaitUntil(ready, limits, clock_, what);
  }
  const std::lock_guard lock(mutex_);
  requests_.level += from_requests;
  tokens_.level += from_tokens;
  return waited;
}

void RateLimiter::Correct(uint64_t taken, uint64_t used) {
  const std::lock_guard lock(mutex_);
  if (tokens_.per_second <= 0) return;
  tokens_.level =
      std::min(tokens_.capacity, tokens_.level + static_cast<double>(taken) -
                                     static_cast<double>(used));
}

void RateLimiter::PauseUntil(absl::Time time) {
  const std::lock_guard lock(mutex_);
  paused_until_ = std::max(paused_until_, time);
}

}  // namespace reprise::evolution
