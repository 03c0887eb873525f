#include "tests/benchmarks/benchmark_report.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "replay/base/check.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

using nlohmann::ordered_json;

// The value of the first line "key : value" of a file under /proc.
std::string ProcValue(const std::string& path, const std::string& key) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return "unknown";
  for (absl::string_view line : absl::StrSplit(*text, '\n')) {
    if (!absl::StartsWith(line, key)) continue;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    return std::string(absl::StripAsciiWhitespace(parts.second));
  }
  return "unknown";
}

std::string Build() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "with a sanitizer";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return "with a sanitizer";
#endif
#endif
#ifdef __OPTIMIZE__
  return "optimized";
#else
  return "not optimized";
#endif
}

std::string Compiler() {
#ifdef __clang__
  return absl::StrCat("Clang ", __clang_major__);
#else
  return absl::StrCat("GCC ", __GNUC__);
#endif
}

// What is in the file by metric; an absent file has nothing.
absl::StatusOr<std::map<std::string, ordered_json>> ReadReport(
    const std::string& path) {
  std::map<std::string, ordered_json> entries;
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (absl::IsNotFound(text.status())) return entries;
  if (!text.ok()) return text.status();
  const ordered_json report =
      ordered_json::parse(*text, nullptr, /*allow_exceptions=*/false);
  bool sound = report.is_array();
  for (const ordered_json& entry : report) {
    sound = sound && entry.is_object() && entry.contains("metric") &&
            entry["metric"].is_string();
    if (!sound) break;
    entries[entry["metric"].get<std::string>()] = entry;
  }
  if (!sound) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        " is no benchmark report, expected an array of objects with a "
        "field \"metric\""));
  }
  return entries;
}

}  // namespace

std::string BenchmarkEnvironment() {
  utsname system = {};
  CHECK(uname(&system) == 0);
  const double kib =
      std::strtod(ProcValue("/proc/meminfo", "MemTotal").c_str(), nullptr);
  return absl::StrFormat("%s, %d cores, %.0f GiB, %s %s, %s, %s",
                         ProcValue("/proc/cpuinfo", "model name"),
                         std::thread::hardware_concurrency(), kib / (1 << 20),
                         system.sysname, system.release, Compiler(), Build());
}

absl::Status UpdateBenchmarkReport(const std::string& path,
                                   const std::vector<BenchmarkResult>& results,
                                   const std::string& remark) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  RETURN_IF_ERROR(MakeDirectories(folder));
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoToStatus(errno, absl::StrCat("cannot open ", folder));
  absl::Cleanup closer = [fd] { close(fd); };
  if (flock(fd, LOCK_EX) != 0)
    return ErrnoToStatus(errno, absl::StrCat("cannot lock ", folder));

  ASSIGN_OR_RETURN(auto entries, ReadReport(path));
  std::string environment = BenchmarkEnvironment();
  if (!remark.empty()) absl::StrAppend(&environment, ", ", remark);
  const std::string date =
      absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone());
  for (const BenchmarkResult& result : results) {
    entries[result.metric] = {{"metric", result.metric},
                              {"value", result.value},
                              {"unit", result.unit},
                              {"target", result.target},
                              {"command", result.command},
                              {"environment", environment},
                              {"date", date}};
  }
  ordered_json report = ordered_json::array();
  for (auto& [metric, entry] : entries) report.push_back(std::move(entry));
  return WriteFileAtomically(path, report.dump(2) + "\n");
}

std::string FormatBenchmarkResults(
    const std::vector<BenchmarkResult>& results) {
  size_t width = 0;
  for (const BenchmarkResult& result : results)
    width = std::max(width, result.metric.size());
  std::string text;
  for (const BenchmarkResult& result : results) {
    absl::StrAppend(
        &text, absl::StrFormat("%-*s  %10.4g %s%s%s\n", static_cast<int>(width),
                               result.metric, result.value, result.unit,
                               result.target.empty() ? "" : "   target ",
                               result.target));
  }
  return text;
}

double Median(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

double Quantile(std::vector<double> values, double quantile) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(quantile *
                                    static_cast<double>(values.size() - 1))];
}

}  // namespace reprise
