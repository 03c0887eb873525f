// When to try again. Thread-safe: pure functions.
#ifndef REPRISE_EVOLUTION_LLM_RETRY_H_
#define REPRISE_EVOLUTION_LLM_RETRY_H_

#include <optional>
#include <string_view>

#include "absl/time/time.h"

namespace reprise::evolution {

// The value of a Retry-After header (RFC 9110, section 10.2.3), seconds or a
// date, as the time to wait from `now`; not negative. Fractions of a second,
// which some providers send, are understood. None: neither.
std::optional<absl::Duration> ParseRetryAfter(std::string_view value,
                                              absl::Time now);

// Exponential backoff with full jitter (Brooker, "Exponential Backoff And
// Jitter", 2015): uniform between 0 and min(most, first * 2^failures). `unit`
// is uniform in [0, 1); `failures` counts those before this one.
absl::Duration FullJitter(int failures, absl::Duration first,
                          absl::Duration most, double unit);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_RETRY_H_
