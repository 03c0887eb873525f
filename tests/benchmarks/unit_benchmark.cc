// Speed and memory of the unit store.
//
//   unit_benchmark [--directory DIR] [--mib 512] [--stream-gib 10] [--runs 5]
//                  [--report docs/benchmarks/cpu.json]
//
// unit.{write,read}_gb_s      a blob of --mib MiB put as a stream, then read
//                             into memory; half of it compresses
// ...compressible, ...incompressible
//                             the same with one kind of data
// unit.stream_peak_rss_mib    a process of its own puts --stream-gib GiB as a
//                             stream and reads them through a sink
//
// Rates are of content, medians over the runs; what is read has just been
// written and is in the page cache. Stores stay until the end (ext4 is slow to
// give out inodes just after many were freed) and are synced between runs, so
// that no run is throttled for the pages of another.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/unit/unit_store.h"
#include "tests/benchmarks/benchmark_report.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

enum class Data { kMixed, kCompressible, kIncompressible };

struct Settings {
  std::string directory;
  uint64_t mib = 512;
  uint64_t stream_gib = 10;
  int runs = 5;
  std::string report;
};

// An endless image, made from a pool of chunks. Each chunk begins with its
// number, so that no two are equal.
class Image {
 public:
  explicit Image(Data data) {
    for (size_t i = 0; i < kPoolChunks; ++i) {
      const bool smooth =
          data == Data::kCompressible || (data == Data::kMixed && i % 2 == 0);
      if (smooth) {
        AppendSmooth();
      } else {
        AppendNoise();
      }
    }
  }

  // Whole chunks only: `capacity` is what the store asks for.
  size_t Fill(char* buffer, size_t capacity) {
    std::memcpy(buffer, &pool_[next_ % kPoolChunks * kChunkBytes], capacity);
    std::memcpy(buffer, &next_, sizeof(next_));
    ++next_;
    return capacity;
  }

 private:
  static constexpr size_t kPoolChunks = 16;

  uint64_t Random() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

  // A field of float as a simulation keeps it: smooth, with a few noisy bits.
  void AppendSmooth() {
    for (size_t i = 0; i < kChunkBytes / sizeof(float); ++i) {
      const double wave = 100 * std::sin(static_cast<double>(i) * 1e-4);
      const auto value = static_cast<float>(
          (std::round(wave * 8) + static_cast<double>(Random() % 4)) / 64);
      pool_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }

  void AppendNoise() {
    for (size_t i = 0; i < kChunkBytes / sizeof(uint64_t); ++i) {
      const uint64_t value = Random();
      pool_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }

  std::string pool_;
  uint64_t state_ = 88172645463325252u;
  uint64_t next_ = 0;
};

absl::StatusOr<v1::Blob> Write(ChunkStore& store, Data data, uint64_t bytes) {
  Image image(data);
  uint64_t left = bytes;
  return store.PutStream([&](char* buffer, size_t capacity) -> size_t {
    if (left == 0) return 0;
    left -= capacity;
    return image.Fill(buffer, capacity);
  });
}

double GbPerSecond(uint64_t bytes, Clock::time_point begin) {
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  return static_cast<double>(bytes) / 1e9 / seconds.count();
}

struct Rates {
  double write_gb_s;
  double read_gb_s;
  double stored_share;
};

uint64_t BytesUnder(const std::string& directory) {
  uint64_t sum = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) sum += entry.file_size();
  return sum;
}

absl::StatusOr<Rates> MeasureOnce(const Settings& settings, Data data,
                                  const TemporaryDirectory& directory) {
  ASSIGN_OR_RETURN(const auto store,
                   ChunkStore::Open({.directory = directory.path()}));
  const uint64_t bytes = settings.mib << 20;
  Rates rates{};
  Clock::time_point begin = Clock::now();
  ASSIGN_OR_RETURN(const v1::Blob blob, Write(*store, data, bytes));
  rates.write_gb_s = GbPerSecond(bytes, begin);
  rates.stored_share = static_cast<double>(BytesUnder(directory.path())) /
                       static_cast<double>(bytes);
  // Memory that is there already, as the arena of a replay.
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED)
    return ErrnoToStatus(errno, absl::StrCat("cannot map ", bytes, " bytes"));
  begin = Clock::now();
  const absl::Status status = store->GetInto(blob, static_cast<char*>(memory));
  rates.read_gb_s = GbPerSecond(bytes, begin);
  munmap(memory, bytes);
  if (!status.ok()) return status;
  return rates;
}

absl::Status MeasureRates(const Settings& settings, Data data,
                          const std::string& suffix,
                          std::vector<TemporaryDirectory>* directories,
                          std::vector<BenchmarkResult>* results) {
  std::vector<double> writes;
  std::vector<double> reads;
  std::vector<double> shares;
  for (int i = 0; i < settings.runs; ++i) {
    ASSIGN_OR_RETURN(TemporaryDirectory directory,
                     TemporaryDirectory::Create("reprise-unit-benchmark"));
    directories->push_back(std::move(directory));
    ASSIGN_OR_RETURN(const Rates rates,
                     MeasureOnce(settings, data, directories->back()));
    sync();
    writes.push_back(rates.write_gb_s);
    reads.push_back(rates.read_gb_s);
    shares.push_back(rates.stored_share);
  }
  results->push_back(
      {"unit.write_gb_s" + suffix, Median(writes), "GB/s", "", ""});
  results->push_back(
      {"unit.read_gb_s" + suffix, Median(reads), "GB/s", "", ""});
  results->push_back({"unit.stored_share" + suffix, Median(shares),
                      "bytes on disk per byte", "", ""});
  return absl::OkStatus();
}

absl::Status StreamThrough(const Settings& settings) {
  ASSIGN_OR_RETURN(const TemporaryDirectory directory,
                   TemporaryDirectory::Create("reprise-unit-benchmark"));
  ASSIGN_OR_RETURN(const auto store,
                   ChunkStore::Open({.directory = directory.path()}));
  const uint64_t bytes = settings.stream_gib << 30;
  ASSIGN_OR_RETURN(const v1::Blob blob, Write(*store, Data::kMixed, bytes));
  uint64_t got = 0;
  RETURN_IF_ERROR(store->Get(blob, [&](std::string_view piece) {
    got += piece.size();
    return absl::OkStatus();
  }));
  if (got != bytes)
    return absl::InternalError(absl::StrCat("got ", got, " of ", bytes));
  return absl::OkStatus();
}

// In a child, whose peak is nobody else's.
absl::StatusOr<double> PeakRssMib(const Settings& settings) {
  const pid_t pid = fork();
  if (pid < 0) return ErrnoToStatus(errno, "cannot fork");
  if (pid == 0) {
    const absl::Status status = StreamThrough(settings);
    if (!status.ok())
      absl::FPrintF(stderr, "unit_benchmark: %s\n", status.ToString());
    _exit(status.ok() ? 0 : 1);
  }
  int exit_status = 0;
  rusage usage = {};
  if (wait4(pid, &exit_status, 0, &usage) != pid)
    return ErrnoToStatus(errno, "cannot wait for a child");
  if (exit_status != 0) return absl::InternalError("the stream failed");
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

std::string FileSystemType(const std::string& path) {
  struct statfs info = {};
  if (statfs(path.c_str(), &info) != 0) return "unknown file system";
  switch (info.f_type) {
    case 0xEF53:
      return "ext4";
    case 0x01021994:
      return "tmpfs";
    case 0x58465342:
      return "xfs";
    case 0x9123683E:
      return "btrfs";
    case 0x794c7630:
      return "overlayfs";
    default:
      return absl::StrFormat("file system 0x%x", info.f_type);
  }
}

absl::Status Run(const Settings& settings) {
  std::vector<BenchmarkResult> results;
  if (settings.stream_gib > 0) {
    ASSIGN_OR_RETURN(const double peak, PeakRssMib(settings));
    results.push_back(
        {"unit.stream_peak_rss_mib", peak, "MiB", "< 256",
         absl::StrCat("unit_benchmark --stream-gib ", settings.stream_gib)});
  }
  if (settings.runs > 0) {
    std::vector<TemporaryDirectory> directories;
    RETURN_IF_ERROR(
        MeasureRates(settings, Data::kMixed, "", &directories, &results));
    RETURN_IF_ERROR(MeasureRates(settings, Data::kCompressible, ".compressible",
                                 &directories, &results));
    RETURN_IF_ERROR(MeasureRates(settings, Data::kIncompressible,
                                 ".incompressible", &directories, &results));
  }
  for (BenchmarkResult& result : results) {
    if (result.command.empty()) {
      result.command = absl::StrCat("unit_benchmark --mib ", settings.mib,
                                    " --runs ", settings.runs);
    }
  }
  std::fputs(FormatBenchmarkResults(results).c_str(), stdout);
  if (settings.report.empty()) return absl::OkStatus();
  return UpdateBenchmarkReport(settings.report, results,
                               FileSystemType(settings.directory));
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  reprise::Settings settings;
  CLI::App app("Speed and memory of the unit store");
  app.add_option("--directory", settings.directory,
                 "where stores are made; default: $TMPDIR or /tmp");
  app.add_option("--mib", settings.mib, "MiB per measurement of a rate")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--stream-gib", settings.stream_gib,
                 "GiB of the stream whose memory is measured; 0: not measured");
  app.add_option("--runs", settings.runs, "0: rates are not measured")
      ->check(CLI::Range(0, 1000));
  app.add_option("--report", settings.report, "JSON file to keep results in");
  CLI11_PARSE(app, argc, argv);
  if (!settings.directory.empty())
    setenv("TMPDIR", settings.directory.c_str(), 1);
  if (settings.directory.empty()) {
    const char* temporary = std::getenv("TMPDIR");
    settings.directory = temporary != nullptr ? temporary : "/tmp";
  }
  const absl::Status status = reprise::Run(settings);
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "unit_benchmark: %s\n", status.ToString());
  return 1;
}
