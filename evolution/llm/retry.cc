#include "evolution/llm/retry.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "evolution/llm/text.h"

namespace reprise::evolution {

std::optional<absl::Duration> ParseRetryAfter(std::string_view value,
                                              absl::Time now) {
  const std::string text(Stripped(value));
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds)) {
    if (!std::isfinite(seconds) || seconds < 0) return std::nullopt;
    return absl::Seconds(std::min(seconds, 1e9));
  }
  absl::Time date;
  std::string error;
  for (const char* format :
       {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
        "%a %b %d %H:%M:%S %Y"}) {
    if (absl::ParseTime(format, text, &date, &error)) {
      return std::max(date - now, absl::ZeroDuration());
    }
  }
  return std::nullopt;
}

absl::Duration FullJitter(int failures, absl::Duration first,
                          absl::Duration most, double unit) {
  const double factor = std::ldexp(1.0, std::clamp(failures, 0, 30));
  return std::min(first * factor, most) * unit;
}

}  // namespace reprise::evolution
