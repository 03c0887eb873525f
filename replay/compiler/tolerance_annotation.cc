#include "replay/compiler/tolerance_annotation.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace reprise {
namespace {

// A number that a bound can be, as C++ may write it.
bool ParseBound(const std::string& text, double& value) {
  return absl::SimpleAtod(absl::StripSuffix(text, "f"), &value) &&
         std::isfinite(value) && value >= 0;
}

}  // namespace

std::optional<v1::Tolerance> ParseToleranceAnnotation(std::string_view text) {
  constexpr std::string_view kPrefix = "tolerance:";
  if (text.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  const std::string body(text.substr(kPrefix.size()));
  if (body.empty()) return std::nullopt;
  v1::Tolerance tolerance;
  int position = 0;
  for (const std::string& item : std::vector<std::string>(
           absl::StrSplit(body, ',', absl::SkipWhitespace()))) {
    const std::vector<std::string> parts = absl::StrSplit(item, '=');
    double value = 0;
    if (!ParseBound(parts.back(), value)) return std::nullopt;
    if (parts.size() == 1 && position == 0) {
      tolerance.set_absolute(value);
      tolerance.set_relative(value);
    } else if (parts.size() == 2 && parts[0] == "abs") {
      tolerance.set_absolute(value);
    } else if ((parts.size() == 1 && position == 1) ||
               (parts.size() == 2 && parts[0] == "rel")) {
      tolerance.set_relative(value);
    } else if (parts.size() == 2 && parts[0] == "outliers" && value <= 1) {
      tolerance.set_outlier_share(value);
    } else {
      return std::nullopt;
    }
    ++position;
  }
  return tolerance;
}

}  // namespace reprise
