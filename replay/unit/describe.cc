#include "replay/unit/describe.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "replay/base/sha256.h"
#include "replay/unit/blob.h"
#include "replay/unit/unit_json.h"

namespace reprise {
namespace {

constexpr int kMaxRangesShown = 40;
constexpr size_t kMaxKernelColumn = 40;

// Nothing where there is nothing to say.
std::string Row(const char* name, const std::string& value) {
  if (value.empty()) return "";
  return absl::StrFormat("  %-15s%s\n", name, value);
}

std::string Dim(const v1::Dim3& dim) {
  return absl::StrCat(dim.x(), "x", dim.y(), "x", dim.z());
}

std::string Launch(const v1::LaunchConfig& launch) {
  std::string text = absl::StrCat("grid ", Dim(launch.grid()), ", block ",
                                  Dim(launch.block()));
  if (launch.has_cluster())
    absl::StrAppend(&text, ", cluster ", Dim(launch.cluster()));
  if (launch.dynamic_shared_bytes() > 0) {
    absl::StrAppend(&text, ", ", FormatBytes(launch.dynamic_shared_bytes()),
                    " dynamic shared memory");
  }
  if (launch.cooperative()) absl::StrAppend(&text, ", cooperative");
  return text;
}

std::string EnumText(const google::protobuf::Message& message,
                     const char* field) {
  const nlohmann::ordered_json json = MessageToJson(message);
  const nlohmann::ordered_json& value = json[field];
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// A number of up to 8 bytes in hex, the size of anything larger.
std::string ArgumentValue(const v1::Unit& unit,
                          const v1::KernelParameter& parameter) {
  if (parameter.bytes() == 0 || parameter.bytes() > 8 ||
      uint64_t{parameter.offset()} + parameter.bytes() >
          unit.arguments().size()) {
    return FormatBytes(parameter.bytes());
  }
  uint64_t value = 0;
  for (uint32_t i = 0; i < parameter.bytes(); ++i) {
    const auto byte =
        static_cast<unsigned char>(unit.arguments()[parameter.offset() + i]);
    value |= uint64_t{byte} << (8 * i);
  }
  return absl::StrCat("0x", absl::Hex(value));
}

std::string Arguments(const v1::Unit& unit) {
  std::vector<std::string> parts;
  for (const v1::KernelParameter& parameter : unit.kernel().parameters()) {
    const std::string name = parameter.name().empty()
                                 ? absl::StrCat("#", parts.size())
                                 : parameter.name();
    parts.push_back(absl::StrCat(name, "=", ArgumentValue(unit, parameter)));
  }
  if (parts.empty()) return FormatBytes(unit.arguments().size());
  return absl::StrJoin(parts, " ");
}

// "12 %" of the range, "-" where nothing is known.
std::string Share(const UnitReader& unit, bool known, const v1::Blob& blob,
                  uint64_t bytes) {
  if (!known) return "-";
  const absl::StatusOr<IntervalSet> set =
      LoadIntervals(unit.chunks(), blob, bytes);
  if (!set.ok()) return "damaged";
  const double percent =
      100.0 * static_cast<double>(set->bytes()) / static_cast<double>(bytes);
  if (percent > 0 && percent < 0.1) return "<0.1 %";
  return absl::StrFormat("%.*f %%", percent > 0 && percent < 10 ? 1 : 0,
                         percent);
}

std::string Ranges(const UnitReader& unit) {
  const v1::Unit& manifest = unit.manifest();
  if (manifest.memory_size() == 0) return "";
  std::string text = absl::StrFormat(
      "    %-16s %10s  %-11s %-7s %10s %8s %8s  %s\n", "address", "bytes",
      "origin", "type", "zero", "read", "written", "symbol");
  const int shown = std::min(manifest.memory_size(), kMaxRangesShown);
  for (int i = 0; i < shown; ++i) {
    const v1::MemoryRange& range = manifest.memory(i);
    std::string line = absl::StrFormat(
        "    0x%-14x %10s  %-11s %-7s %10s %8s %8s  %s", range.address(),
        FormatBytes(range.bytes()), EnumText(range, "origin"),
        EnumText(range, "element_type"),
        FormatBytes(ZeroBytes(range.prologue())),
        Share(unit, range.has_read_set(), range.read_set(), range.bytes()),
        Share(unit, range.has_write_set(), range.write_set(), range.bytes()),
        range.symbol());
    line.resize(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  if (shown < manifest.memory_size()) {
    absl::StrAppend(&text, "    and ", manifest.memory_size() - shown,
                    " more ranges\n");
  }
  return text;
}

std::string Code(const v1::Unit& unit) {
  std::vector<std::string> parts;
  uint64_t ir_bytes = 0;
  int files = 0;
  uint64_t file_bytes = 0;
  for (const v1::TranslationUnit& source : unit.translation_units()) {
    ir_bytes += source.ir().bytes();
    files += source.files_size();
    for (const v1::SourceFile& file : source.files())
      file_bytes += file.content().bytes();
  }
  if (ir_bytes > 0)
    parts.push_back(absl::StrCat("LLVM IR ", FormatBytes(ir_bytes)));
  if (unit.machine_code().bytes() > 0) {
    parts.push_back(absl::StrCat("machine code ",
                                 FormatBytes(unit.machine_code().bytes())));
  }
  if (files > 0) {
    parts.push_back(
        absl::StrCat(files, files == 1 ? " source file, " : " source files, ",
                     FormatBytes(file_bytes)));
  }
  if (parts.empty()) parts.push_back("none");
  return absl::StrCat(unit.architecture(),
                      unit.architecture().empty() ? "" : ": ",
                      absl::StrJoin(parts, "; "));
}

std::string When(uint64_t unix_seconds) {
  return absl::FormatTime(
      "%Y-%m-%d %H:%M:%S UTC",
      absl::FromUnixSeconds(static_cast<int64_t>(unix_seconds)),
      absl::UTCTimeZone());
}

std::string Recorded(const v1::Provenance& from) {
  std::string text = from.recorded_unix_seconds() > 0
                         ? When(from.recorded_unix_seconds())
                         : "";
  if (!from.device().empty()) {
    absl::StrAppend(&text, " on ", from.device());
    if (!from.device_name().empty())
      absl::StrAppend(&text, " (", from.device_name(), ")");
  }
  if (!from.recorder_version().empty())
    absl::StrAppend(&text, " by Reprise ", from.recorder_version());
  return text;
}

std::string Occurrence(const v1::Provenance& from) {
  std::string text = absl::StrCat("launch ", from.occurrence() + 1, " of ",
                                  from.occurrence_count(), " of this kernel");
  if (from.same_shape_count() > 0) {
    absl::StrAppend(&text, ", ", from.same_shape_count(),
                    " of them with this shape");
  }
  if (from.duration_ms() > 0)
    absl::StrAppend(&text, absl::StrFormat("; %.4g ms", from.duration_ms()));
  if (from.total_kernel_ms() > 0) {
    absl::StrAppend(
        &text, absl::StrFormat(" of %.4g ms in all", from.total_kernel_ms()));
  }
  return text;
}

std::string Work(const v1::WorkFacts& work) {
  return absl::StrFormat("%.4g FLOP, %s read, %s written",
                         static_cast<double>(work.flops()),
                         FormatBytes(work.global_bytes_read()),
                         FormatBytes(work.global_bytes_written()));
}

}  // namespace

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB",
                                           "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string KernelName(const v1::Kernel& kernel) {
  return kernel.display_name().empty() ? kernel.symbol()
                                       : kernel.display_name();
}

std::string RangeName(const v1::Unit& unit, const v1::MemoryRange& range) {
  if (!range.symbol().empty()) return range.symbol();
  for (int i = 0; i < unit.kernel().parameters_size(); ++i) {
    const v1::KernelParameter& parameter = unit.kernel().parameters(i);
    uint64_t value = 0;
    if (parameter.bytes() != sizeof(value) ||
        parameter.offset() + sizeof(value) > unit.arguments().size())
      continue;
    std::memcpy(&value, unit.arguments().data() + parameter.offset(),
                sizeof(value));
    if (value < range.address() || value >= range.address() + range.bytes())
      continue;
    const std::string argument = parameter.name().empty()
                                     ? absl::StrCat("argument ", i)
                                     : parameter.name();
    return value == range.address() ? argument
                                    : absl::StrFormat("%s (-0x%x)", argument,
                                                      value - range.address());
  }
  return absl::StrFormat("memory at 0x%x", range.address());
}

uint64_t MemoryBytes(const v1::Unit& unit) {
  uint64_t sum = 0;
  for (const v1::MemoryRange& range : unit.memory()) sum += range.bytes();
  return sum;
}

uint64_t ZeroBytes(const v1::Blob& blob) {
  uint64_t sum = 0;
  for (const v1::Chunk& chunk : blob.chunks())
    if (chunk.sha256().empty()) sum += chunk.bytes();
  return sum;
}

std::string DescribeUnit(const UnitReader& unit) {
  const v1::Unit& manifest = unit.manifest();
  const v1::Kernel& kernel = manifest.kernel();
  const v1::Provenance& from = manifest.provenance();
  std::string text = absl::StrCat(unit.id(), "\n");
  absl::StrAppend(&text, Row("kernel", KernelName(kernel)));
  if (kernel.symbol() != KernelName(kernel))
    absl::StrAppend(&text, Row("symbol", kernel.symbol()));
  if (!kernel.source_path().empty()) {
    absl::StrAppend(&text, Row("source", absl::StrCat(kernel.source_path(), ":",
                                                      kernel.source_line())));
  }
  absl::StrAppend(&text, Row("launch", Launch(manifest.launch())));
  absl::StrAppend(&text, Row("arguments", Arguments(manifest)));
  absl::StrAppend(&text, Row("code", Code(manifest)));
  absl::StrAppend(
      &text,
      Row("memory",
          absl::StrCat(FormatBytes(MemoryBytes(manifest)), " in ",
                       manifest.memory_size(),
                       manifest.memory_size() == 1 ? " range" : " ranges")));
  absl::StrAppend(&text, Ranges(unit));
  if (manifest.has_work())
    absl::StrAppend(&text, Row("work", Work(manifest.work())));
  if (manifest.has_provenance()) {
    absl::StrAppend(&text, Row("recorded", Recorded(from)));
    absl::StrAppend(&text, Row("occurrence", Occurrence(from)));
    absl::StrAppend(&text, Row("command", absl::StrJoin(from.command(), " ")));
    absl::StrAppend(&text, Row("directory", from.directory()));
  }
  absl::StrAppend(&text,
                  Row("deterministic",
                      manifest.deterministic() ? "yes" : "not known to be"));
  absl::StrAppend(&text,
                  Row("instance", HexEncode(manifest.instance_sha256())));
  return text;
}

std::string UnitTable(const std::vector<UnitListing>& listings) {
  size_t id_width = 4;
  size_t kernel_width = 6;
  for (const UnitListing& listing : listings) {
    id_width = std::max(id_width, listing.id.size());
    kernel_width =
        std::max(kernel_width, KernelName(listing.manifest.kernel()).size());
  }
  kernel_width = std::min(kernel_width, kMaxKernelColumn);
  const int ids = static_cast<int>(id_width);
  const int kernels = static_cast<int>(kernel_width);
  std::string text = absl::StrFormat(
      "%-*s  %-*s  %-14s  %-12s  %10s  %9s  %s\n", ids, "unit", kernels,
      "kernel", "grid", "block", "memory", "ms", "from");
  for (const UnitListing& listing : listings) {
    if (!listing.status.ok()) {
      absl::StrAppend(&text, absl::StrFormat("%-*s  ", ids, listing.id),
                      "broken: ", std::string(listing.status.message()), "\n");
      continue;
    }
    const v1::Unit& unit = listing.manifest;
    std::string kernel = KernelName(unit.kernel());
    if (absl::StartsWith(kernel, "void ")) kernel.erase(0, 5);
    if (kernel.size() > kMaxKernelColumn)
      kernel = kernel.substr(0, kMaxKernelColumn - 3) + "...";
    absl::StrAppend(
        &text,
        absl::StrFormat(
            "%-*s  %-*s  %-14s  %-12s  %10s  %9.4g  %s\n", ids, listing.id,
            kernels, kernel, Dim(unit.launch().grid()),
            Dim(unit.launch().block()), FormatBytes(MemoryBytes(unit)),
            unit.provenance().duration_ms(), unit.provenance().device()));
  }
  return text;
}

}  // namespace reprise
