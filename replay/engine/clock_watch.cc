#include "replay/engine/clock_watch.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace reprise {
namespace {

// NVBench takes a clock for another one from a quarter on; pairs are compared
// to 1 %, so less is too much here.
constexpr double kSameClock = 1.05;

// NVML's numbers.
constexpr struct {
  uint64_t bit;
  const char* name;
} kSlowdowns[] = {
    {0x4, "power cap"},          {0x8, "hardware slowdown"},
    {0x20, "thermal slowdown"},  {0x40, "hardware thermal slowdown"},
    {0x80, "power brake"},       {0x200, "board limit"},
    {0x400, "reliability limit"}};

std::string RangeText(uint32_t low, uint32_t high) {
  return low == high ? absl::StrCat(low, " MHz")
                     : absl::StrCat(low, " to ", high, " MHz");
}

}  // namespace

std::string SlowdownText(uint64_t event_reasons) {
  std::vector<std::string> names;
  for (const auto& slowdown : kSlowdowns) {
    if ((event_reasons & slowdown.bit) != 0) names.push_back(slowdown.name);
  }
  return absl::StrJoin(names, ", ");
}

void ClockWatch::Widen(const v1::ClockSample& sample) {
  const bool first = report_.samples() == 0;
  const auto low = [first](uint32_t old, uint32_t now) {
    return first ? now : std::min(old, now);
  };
  report_.set_samples(report_.samples() + 1);
  report_.set_sm_mhz_low(low(report_.sm_mhz_low(), sample.sm_mhz()));
  report_.set_sm_mhz_high(std::max(report_.sm_mhz_high(), sample.sm_mhz()));
  report_.set_memory_mhz_low(
      low(report_.memory_mhz_low(), sample.memory_mhz()));
  report_.set_memory_mhz_high(
      std::max(report_.memory_mhz_high(), sample.memory_mhz()));
  report_.set_event_reasons(report_.event_reasons() | sample.event_reasons());
  report_.set_temperature_c(
      std::max(report_.temperature_c(), sample.temperature_c()));
  report_.set_power_w(std::max(report_.power_w(), sample.power_w()));
}

void ClockWatch::Note(const std::optional<v1::ClockSample>& sample) {
  if (!sample.has_value()) return;
  report_.set_unknown(sample->unknown());
  if (!sample->unknown().empty()) return;
  Widen(*sample);
  event_reasons_ |= sample->event_reasons();
  const uint32_t before = last_sm_mhz_.value_or(sample->sm_mhz());
  if (lowest_sm_mhz_ == 0) lowest_sm_mhz_ = highest_sm_mhz_ = before;
  lowest_sm_mhz_ = std::min(lowest_sm_mhz_, sample->sm_mhz());
  highest_sm_mhz_ = std::max(highest_sm_mhz_, sample->sm_mhz());
  last_sm_mhz_ = sample->sm_mhz();
}

std::string ClockWatch::TakeObjection() {
  std::string objection = SlowdownText(event_reasons_);
  if (highest_sm_mhz_ > kSameClock * lowest_sm_mhz_) {
    absl::StrAppend(&objection, objection.empty() ? "" : ", ",
                    "the SM clock moved between ", lowest_sm_mhz_, " and ",
                    highest_sm_mhz_, " MHz");
  }
  event_reasons_ = 0;
  lowest_sm_mhz_ = highest_sm_mhz_ = 0;
  return objection;
}

std::string ClocksText(const v1::ClockReport& clocks) {
  if (!clocks.unknown().empty() || clocks.samples() == 0) {
    return absl::StrCat("clocks unknown: ", clocks.unknown().empty()
                                                ? "no launch came with them"
                                                : clocks.unknown());
  }
  std::string text =
      "SM clock " + RangeText(clocks.sm_mhz_low(), clocks.sm_mhz_high());
  if (clocks.memory_mhz_high() > 0) {
    absl::StrAppend(
        &text, ", memory ",
        RangeText(clocks.memory_mhz_low(), clocks.memory_mhz_high()));
  }
  if (clocks.temperature_c() > 0)
    absl::StrAppend(&text, ", ", clocks.temperature_c(), " C");
  if (clocks.power_w() > 0)
    absl::StrAppendFormat(&text, ", %.0f W", clocks.power_w());
  const std::string slowdown = SlowdownText(clocks.event_reasons());
  absl::StrAppend(
      &text, ", ",
      slowdown.empty() ? "not held down" : "held down at times by " + slowdown);
  return text;
}

}  // namespace reprise
