#include "services/coordinator/counters_report.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace reprise {
namespace {

using nlohmann::ordered_json;

// 1234567 as "1,234,567".
std::string Grouped(double value) {
  std::string digits = absl::StrFormat("%.0f", value);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

std::string ValueText(const v1::Counter* counter) {
  if (counter == nullptr || !counter->absent().empty()) return "-";
  const bool whole =
      counter->unit() != "%" && counter->unit() != "per multiprocessor";
  return whole ? Grouped(counter->value())
               : absl::StrFormat("%.2f", counter->value());
}

const v1::Counter* Find(const v1::Counters& counters, const std::string& name) {
  for (const v1::Counter& counter : counters.values()) {
    if (counter.name() == name) return &counter;
  }
  return nullptr;
}

std::string Row(const std::string& name, const std::string& baseline,
                const std::optional<std::string>& variant,
                const std::string& unit) {
  std::string row = absl::StrFormat("    %-24s%18s", name, baseline);
  if (variant.has_value()) absl::StrAppendFormat(&row, "%18s", *variant);
  return absl::StrCat(row, "  ", unit, "\n");
}

std::string SizeText(double bytes) {
  if (bytes >= 1 << 20) return absl::StrFormat("%.1f MiB", bytes / (1 << 20));
  if (bytes >= 1 << 10) return absl::StrFormat("%.1f KiB", bytes / (1 << 10));
  return absl::StrFormat("%.0f bytes", bytes);
}

// Of billions in a second.
std::string FlopRateText(double gflops) {
  return absl::StrFormat("%.1f Tflop/s", gflops / 1e3);
}

// "memory 0.131 ms (512.0 MiB: ...; at 4098 GB/s)", or why not.
std::string MemoryText(const Roofline& roofline) {
  if (!roofline.no_memory.empty())
    return absl::StrCat("memory not known: ", roofline.no_memory);
  return absl::StrFormat("memory %.4g ms (%s: %s; at %.0f GB/s)",
                         roofline.memory_ns / 1e6,
                         SizeText(static_cast<double>(roofline.memory_bytes)),
                         roofline.bytes_from, roofline.memory_gb_s);
}

std::string ComputeText(const Roofline& roofline) {
  if (!roofline.no_compute.empty())
    return absl::StrCat("operations not known: ", roofline.no_compute);
  return absl::StrFormat("operations %.4g ms (%s flops: %s; at %s)",
                         roofline.compute_ns / 1e6, Grouped(roofline.flops),
                         roofline.flops_from, FlopRateText(roofline.gflops));
}

ordered_json RooflineJson(const Roofline& roofline,
                          std::optional<double> cold_ns) {
  ordered_json json;
  if (roofline.known()) {
    json["bound_by"] = roofline.by_memory() ? "memory" : "operations";
    json["bound_ms"] = roofline.ns() / 1e6;
    if (cold_ns.has_value()) json["baseline_share"] = roofline.ns() / *cold_ns;
  }
  json["memory"] = roofline.no_memory.empty()
                       ? ordered_json{{"ms", roofline.memory_ns / 1e6},
                                      {"bytes", roofline.memory_bytes},
                                      {"bytes_from", roofline.bytes_from},
                                      {"ceiling_gb_s", roofline.memory_gb_s}}
                       : ordered_json{{"absent", roofline.no_memory}};
  json["operations"] = roofline.no_compute.empty()
                           ? ordered_json{{"ms", roofline.compute_ns / 1e6},
                                          {"flops", roofline.flops},
                                          {"flops_from", roofline.flops_from},
                                          {"ceiling_gflops", roofline.gflops}}
                           : ordered_json{{"absent", roofline.no_compute}};
  return json;
}

ordered_json CeilingsJson(const v1::DeviceCeilings& ceilings) {
  return {{"dram_read_gb_s", ceilings.dram_read_gb_s()},
          {"dram_write_gb_s", ceilings.dram_write_gb_s()},
          {"l2_write_gb_s", ceilings.l2_write_gb_s()},
          {"f32_gflops", ceilings.f32_gflops()},
          {"f64_gflops", ceilings.f64_gflops()},
          {"l2_bytes", ceilings.l2_bytes()}};
}

}  // namespace

ordered_json CountersJson(const v1::Counters& counters) {
  if (!counters.absent().empty()) return {{"absent", counters.absent()}};
  ordered_json json = {{"passes", counters.passes()}};
  for (const v1::Counter& counter : counters.values()) {
    if (counter.absent().empty()) {
      json[counter.name()] = {{"value", counter.value()},
                              {"unit", counter.unit()},
                              {"metric", counter.metric()}};
    } else {
      json[counter.name()] = {{"absent", counter.absent()}};
    }
  }
  return json;
}

std::string CountersTable(const v1::Counters& baseline,
                          const std::optional<v1::Counters>& variant) {
  const bool any = baseline.absent().empty() ||
                   (variant.has_value() && variant->absent().empty());
  std::string text;
  std::vector<std::string> remarks;
  const auto remark = [&](const std::string& what, const std::string& why) {
    if (!why.empty()) remarks.push_back(absl::StrCat(what, ": ", why));
  };
  remark(any ? "the baseline was not counted" : "none", baseline.absent());
  if (any && variant.has_value())
    remark("the variant was not counted", variant->absent());
  if (!any) return absl::StrCat("counters   ", remarks[0], "\n");
  const v1::Counters& full = baseline.absent().empty() ? baseline : *variant;
  absl::StrAppend(&text, "counters   in ", full.passes(),
                  " more launches each, outside of anything timed\n");
  std::optional<std::string> cell;
  if (variant.has_value()) cell = "variant";
  absl::StrAppend(&text, Row("", "baseline", cell, ""));
  for (const v1::Counter& counter : full.values()) {
    if (variant.has_value()) cell = ValueText(Find(*variant, counter.name()));
    absl::StrAppend(
        &text, Row(counter.name(), ValueText(Find(baseline, counter.name())),
                   cell, counter.unit()));
    remark(counter.name(), counter.absent());
  }
  for (const std::string& line : remarks)
    absl::StrAppend(&text, "    ", line, "\n");
  return text;
}

std::string CountersLine(const v1::Counters& counters) {
  std::vector<std::string> parts;
  if (const auto value = CounterValue(counters, "achieved_occupancy"))
    parts.push_back(absl::StrFormat("occupancy %.1f %%", *value));
  if (const auto value = CounterValue(counters, "instruction_throughput"))
    parts.push_back(absl::StrFormat("instruction throughput %.1f %%", *value));
  if (const auto value = CounterValue(counters, "shared_bank_conflicts"))
    parts.push_back(absl::StrCat(Grouped(*value), " bank conflicts"));
  if (const auto value = CounterValue(counters, "dram_bytes_read"))
    parts.push_back(absl::StrCat(SizeText(*value), " read from memory"));
  if (const auto value = CounterValue(counters, "dram_bytes_written"))
    parts.push_back(absl::StrCat(SizeText(*value), " written to memory"));
  return absl::StrJoin(parts, ", ");
}

BoundsReport BoundsOf(const LaunchWork& work, const v1::Counters& baseline,
                      const absl::StatusOr<v1::DeviceCeilings>& ceilings,
                      std::optional<double> cold_ns) {
  BoundsReport report;
  report.ceilings = ceilings;
  report.cold_ns = cold_ns;
  if (!ceilings.ok()) return report;
  report.roofline = RooflineOf(work, baseline, *ceilings);
  report.floor = WriteFloorOf(work, *ceilings);
  return report;
}

ordered_json BoundsJson(const BoundsReport& bounds) {
  if (!bounds.ceilings.ok()) {
    const ordered_json absent = {
        {"absent", std::string(bounds.ceilings.status().message())}};
    return {{"roofline", absent}, {"ceilings", absent}};
  }
  ordered_json json = {
      {"roofline", RooflineJson(bounds.roofline, bounds.cold_ns)},
      {"ceilings", CeilingsJson(*bounds.ceilings)}};
  if (bounds.floor.has_value()) {
    json["write_floor"] = {
        {"ms", bounds.floor->ns / 1e6},
        {"bytes", bounds.floor->bytes},
        {"into", bounds.floor->ceiling},
        {"ceiling_gb_s", bounds.floor->gb_s},
        {"rejected_below_ms", bounds.floor->ns * (1 - kCeilingError) / 1e6}};
  }
  return json;
}

std::string BoundsText(const BoundsReport& bounds) {
  if (!bounds.ceilings.ok()) {
    return absl::StrCat("roofline   none: ",
                        std::string(bounds.ceilings.status().message()), "\n");
  }
  const Roofline& roofline = bounds.roofline;
  std::string text = "roofline   ";
  if (roofline.known()) {
    absl::StrAppendFormat(
        &text, "%.4g ms, bound by %s; %s\n", roofline.ns() / 1e6,
        roofline.by_memory() ? "memory" : "operations",
        bounds.cold_ns.has_value()
            ? absl::StrFormat("the baseline reaches %.0f %%",
                              100 * roofline.ns() / *bounds.cold_ns)
            : "of a cold L2 cache, which these replays did not begin with");
  } else {
    absl::StrAppend(&text, "none\n");
  }
  absl::StrAppend(&text, "    ", MemoryText(roofline), "\n    ",
                  ComputeText(roofline), "\n");
  if (bounds.floor.has_value()) {
    absl::StrAppendFormat(
        &text,
        "floor      %.4g ms to write %s into %s: below %.4g ms nothing is "
        "believed\n",
        bounds.floor->ns / 1e6,
        SizeText(static_cast<double>(bounds.floor->bytes)),
        bounds.floor->ceiling, bounds.floor->ns * (1 - kCeilingError) / 1e6);
  }
  const v1::DeviceCeilings& c = *bounds.ceilings;
  absl::StrAppendFormat(
      &text,
      "ceilings   memory %.0f GB/s read, %.0f GB/s written; L2 cache %.0f "
      "GB/s written; %s of 32 bits, %s of 64 (measured now)\n",
      c.dram_read_gb_s(), c.dram_write_gb_s(), c.l2_write_gb_s(),
      FlopRateText(c.f32_gflops()), FlopRateText(c.f64_gflops()));
  return text;
}

}  // namespace reprise
