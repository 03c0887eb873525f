// What every launch on a CUDA device costs beside the kernel: restoring,
// poisoning, verifying, mapping, loading, asking.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "replay/base/file_util.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/device/cuda/executor_client.h"
#include "replay/device/cuda/unit_image.h"
#include "replay/unit/blob.h"
#include "replay/unit/unit_store.h"
#include "tests/benchmarks/benchmark_report.h"

namespace reprise {
namespace {

constexpr uint64_t kArena = 0x200000000000;
// Each thread of the second writes 16 bytes.
constexpr char kKernels[] = R"(.version 7.0
.target sm_75
.address_size 64
.visible .entry nothing(.param .u64 nothing_0)
{
  ret;
}
.visible .entry zeros(.param .u64 zeros_0)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [zeros_0];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %rd2, %r4, 16;
  add.s64 %rd3, %rd1, %rd2;
  mov.b32 %r5, 0;
  st.global.v4.b32 [%rd3], {%r5, %r5, %r5, %r5};
  ret;
}
)";
constexpr uint64_t kSmallBytes = 16 << 20;
constexpr uint32_t kZerosBlock = 256;

struct Options {
  int ordinal = 0;
  uint32_t rounds = 21;
  double gib = 1;        // of the unit that is restored and verified
  double large_gib = 8;  // of two units that want the same addresses
  std::string report;
};

struct Bench {
  explicit Bench(Options chosen) : options(std::move(chosen)) {}

  absl::Status Start() {
    CudaExecutorClient::Options client_options;
    client_options.ordinal = options.ordinal;
    ASSIGN_OR_RETURN(client, CudaExecutorClient::Start(client_options));
    ASSIGN_OR_RETURN(store, ChunkStore::Open({.directory = directory.path()}));
    return absl::OkStatus();
  }

  // One range that is written, all of it or every other 4 KiB, and one that is
  // only read. Prologue and epilogue are equal.
  absl::StatusOr<UnitReader> MakeUnit(uint64_t bytes, bool random,
                                      bool scattered) {
    v1::Unit unit;
    uint64_t address = kArena;
    for (const bool written : {true, false}) {
      v1::MemoryRange* range = unit.add_memory();
      range->set_address(address);
      range->set_bytes(bytes / 2);
      range->set_element_type(v1::ELEMENT_TYPE_F32);
      range->set_origin(v1::MEMORY_ORIGIN_DEVICE);
      address += bytes / 2;
      ASSIGN_OR_RETURN(*range->mutable_prologue(), Contents(bytes / 2, random));
      IntervalSet writes;
      for (uint64_t at = 0; written && at < bytes / 2; at += 8192)
        writes.Add(at, at + (scattered ? 4096 : 8192));
      ASSIGN_OR_RETURN(*range->mutable_write_set(),
                       StoreIntervals(*store, writes));
      ASSIGN_OR_RETURN(*range->mutable_read_before_write_set(),
                       StoreIntervals(*store, IntervalSet()));
    }
    return UnitReader("benchmark", std::move(unit), store);
  }

  absl::StatusOr<v1::Blob> Contents(uint64_t bytes, bool random) {
    uint64_t left = bytes, state = 88172645463325252u;
    return store->PutStream([&](char* buffer,
                                size_t capacity) -> absl::StatusOr<size_t> {
      const size_t piece = std::min<uint64_t>(capacity, left);
      std::memset(buffer, 0, piece);
      for (size_t i = 0; random && i + 8 <= piece; i += 8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Finite floats.
        const uint64_t word = (state & 0x3fffffff3fffffff) | 0x1000000010000000;
        std::memcpy(buffer + i, &word, sizeof(word));
      }
      left -= piece;
      return piece;
    });
  }

  // From the store to the device.
  absl::StatusOr<uint64_t> Load(const UnitReader& unit,
                                double* seconds = nullptr) {
    const absl::Time start = absl::Now();
    ASSIGN_OR_RETURN(auto image, cuda::UnitImage::Create(unit, {}));
    ASSIGN_OR_RETURN(const uint64_t id, client->LoadUnit(std::move(image)));
    if (seconds != nullptr)
      *seconds = absl::ToDoubleSeconds(absl::Now() - start);
    return id;
  }

  absl::StatusOr<double> MedianUs(const std::function<absl::Status()>& body) {
    std::vector<double> times;
    for (uint32_t i = 0; i < options.rounds; ++i) {
      const absl::Time start = absl::Now();
      RETURN_IF_ERROR(body());
      times.push_back(absl::ToDoubleMicroseconds(absl::Now() - start));
    }
    return Median(times);
  }

  void Add(const std::string& metric, double value, const std::string& unit,
           const std::string& target = "") {
    results.push_back({metric, value, unit, target,
                       "cuda_device_benchmark --report "
                       "docs/benchmarks/h200-record.json"});
    std::fprintf(stderr, "%-36s %12.3f %s\n", metric.c_str(), value,
                 unit.c_str());
  }

  absl::Status MeasureMemory();
  absl::Status MeasureScattered();
  absl::Status MeasureRemap();
  absl::Status MeasureSmallLoad();
  absl::Status MeasureLaunch();
  absl::Status MeasureJudgedLaunch();
  absl::StatusOr<v1::LaunchCudaRequest> MakeLaunch(uint64_t unit,
                                                   const std::string& kernel,
                                                   uint32_t grid,
                                                   uint32_t block);
  absl::Status RunOnce(const v1::LaunchCudaRequest& launch,
                       absl::Duration* kernel = nullptr);

  const Options options;
  TemporaryDirectory directory = *TemporaryDirectory::Create("cuda-benchmark");
  std::shared_ptr<ChunkStore> store;
  std::unique_ptr<CudaExecutorClient> client;
  std::vector<BenchmarkResult> results;
};

absl::Status Bench::MeasureMemory() {
  const auto bytes = static_cast<uint64_t>(options.gib * 0x1p30);
  ASSIGN_OR_RETURN(const UnitReader unit, MakeUnit(bytes, true, false));
  double seconds = 0;
  for (int i = 0; i < 2; ++i) {  // the first one fills the page cache
    ASSIGN_OR_RETURN(const uint64_t id, Load(unit, &seconds));
    if (i == 0) {
      client->UnloadUnit(id);
      continue;
    }
    Add("cuda.unit_load_gb_s", static_cast<double>(bytes) / seconds / 1e9,
        "GB/s", ">= 5");
    v1::MeasureCudaRequest request;
    request.set_unit(id);
    request.set_rounds(options.rounds);
    request.set_copy_bytes(bytes / 2);
    ASSIGN_OR_RETURN(const v1::CudaMeasurement m, client->Measure(request));
    Add("cuda.copy_gb_s", m.copy_gb_s(), "GB/s");
    Add("cuda.restore_gb_s", m.restore_gb_s(), "GB/s");
    Add("cuda.restore_ratio", m.copy_gb_s() / m.restore_gb_s(),
        "copy bandwidth over restore bandwidth", "<= 1.3");
    Add("cuda.poison_gb_s", m.poison_gb_s(), "GB/s");
    Add("cuda.verify_gb_s", m.verify_gb_s(), "GB/s");
    Add("cuda.golden_unmap_map_us", m.unmap_map_us(), "us");
    Add("cuda.activate_us", m.activate_us(), "us");
    client->UnloadUnit(id);
  }
  return absl::OkStatus();
}

// Half of the bytes, in pieces of 4 KiB.
absl::Status Bench::MeasureScattered() {
  const auto bytes = static_cast<uint64_t>(options.gib * 0x1p30);
  ASSIGN_OR_RETURN(const UnitReader unit, MakeUnit(bytes, false, true));
  ASSIGN_OR_RETURN(const uint64_t id, Load(unit));
  v1::MeasureCudaRequest request;
  request.set_unit(id);
  request.set_rounds(options.rounds);
  request.set_copy_bytes(bytes / 4);
  ASSIGN_OR_RETURN(const v1::CudaMeasurement m, client->Measure(request));
  Add("cuda.restore_scattered_ratio", m.copy_gb_s() / m.restore_gb_s(),
      "copy bandwidth over restore bandwidth", "<= 1.3");
  Add("cuda.poison_scattered_gb_s", m.poison_gb_s(), "GB/s");
  client->UnloadUnit(id);
  return absl::OkStatus();
}

absl::Status Bench::MeasureRemap() {
  const auto bytes = static_cast<uint64_t>(options.large_gib * 0x1p30);
  ASSIGN_OR_RETURN(const UnitReader unit, MakeUnit(bytes, false, false));
  double seconds = 0;
  ASSIGN_OR_RETURN(const uint64_t a, Load(unit, &seconds));
  Add("cuda.load_large_s", seconds, "s");
  ASSIGN_OR_RETURN(const uint64_t b, Load(unit));
  v1::PrepareCudaRequest request;
  request.set_unit(a);
  ASSIGN_OR_RETURN(const double same,
                   MedianUs([&] { return client->Prepare(request); }));
  ASSIGN_OR_RETURN(const double turns, MedianUs([&] {
                     request.set_unit(request.unit() == a ? b : a);
                     return client->Prepare(request);
                   }));
  Add("cuda.request_us", same, "us");
  Add("cuda.remap_ms", (turns - same) / 1e3, "ms", "<= 2");
  client->UnloadUnit(a);
  client->UnloadUnit(b);
  return absl::OkStatus();
}

absl::Status Bench::MeasureSmallLoad() {
  ASSIGN_OR_RETURN(const UnitReader unit, MakeUnit(kSmallBytes, true, false));
  ASSIGN_OR_RETURN(const double us, MedianUs([&]() -> absl::Status {
                     ASSIGN_OR_RETURN(const uint64_t id, Load(unit));
                     client->UnloadUnit(id);
                     return absl::OkStatus();
                   }));
  Add("cuda.load_16_mib_ms", us / 1e3, "ms");
  return absl::OkStatus();
}

absl::StatusOr<v1::LaunchCudaRequest> Bench::MakeLaunch(
    uint64_t unit, const std::string& kernel, uint32_t grid, uint32_t block) {
  v1::LoadCudaModuleRequest module;
  module.set_unit(unit);
  module.set_image(kKernels);
  module.set_kernel(kernel);
  v1::LaunchCudaRequest launch;
  launch.set_unit(unit);
  ASSIGN_OR_RETURN(const uint64_t module_id, client->LoadModule(module));
  launch.set_module(module_id);
  launch.set_arguments(
      std::string(reinterpret_cast<const char*>(&kArena), sizeof(kArena)));
  for (v1::Dim3* dim : {launch.mutable_launch()->mutable_grid(),
                        launch.mutable_launch()->mutable_block()}) {
    dim->set_x(1);
    dim->set_y(1);
    dim->set_z(1);
  }
  launch.mutable_launch()->mutable_grid()->set_x(grid);
  launch.mutable_launch()->mutable_block()->set_x(block);
  return launch;
}

absl::Status Bench::RunOnce(const v1::LaunchCudaRequest& launch,
                            absl::Duration* kernel) {
  ASSIGN_OR_RETURN(const LaunchReport report,
                   client->Launch(launch, absl::Seconds(10)));
  if (kernel != nullptr) *kernel = report.device_time;
  return report.kind == v1::OUTCOME_KIND_OK
             ? absl::OkStatus()
             : absl::InternalError(report.diagnostics);
}

// A kernel that does nothing.
absl::Status Bench::MeasureLaunch() {
  ASSIGN_OR_RETURN(const UnitReader unit, MakeUnit(kSmallBytes, false, false));
  ASSIGN_OR_RETURN(const uint64_t id, Load(unit));
  ASSIGN_OR_RETURN(v1::LaunchCudaRequest launch,
                   MakeLaunch(id, "nothing", 1, 1));
  absl::Duration kernel;
  const auto run = [&] { return RunOnce(launch, &kernel); };
  launch.set_keep_l2(true);
  launch.set_keep_mapped(true);
  ASSIGN_OR_RETURN(double us, MedianUs(run));
  Add("cuda.launch_us", us, "us");
  Add("cuda.empty_kernel_us", absl::ToDoubleMicroseconds(kernel), "us");
  launch.set_keep_l2(false);
  ASSIGN_OR_RETURN(us, MedianUs(run));
  Add("cuda.launch_flushed_us", us, "us");
  launch.set_keep_mapped(false);
  ASSIGN_OR_RETURN(us, MedianUs(run));
  Add("cuda.launch_flushed_hidden_us", us, "us");
  client->UnloadUnit(id);
  return absl::OkStatus();
}

// A kernel whose result is right, and one that leaves the poison.
absl::Status Bench::MeasureJudgedLaunch() {
  ASSIGN_OR_RETURN(const UnitReader unit, MakeUnit(kSmallBytes, false, false));
  ASSIGN_OR_RETURN(const uint64_t id, Load(unit));
  for (const bool right : {true, false}) {
    const uint32_t grid = kSmallBytes / 2 / 16 / kZerosBlock;
    ASSIGN_OR_RETURN(
        v1::LaunchCudaRequest launch,
        MakeLaunch(id, right ? "zeros" : "nothing", grid, kZerosBlock));
    launch.mutable_prepare()->set_restore(true);
    launch.mutable_prepare()->set_poison(true);
    launch.mutable_verify_tolerance();
    v1::VerifyCudaRequest verify;
    verify.set_unit(id);
    ASSIGN_OR_RETURN(const double us, MedianUs([&]() -> absl::Status {
                       RETURN_IF_ERROR(RunOnce(launch));
                       ASSIGN_OR_RETURN(const v1::CudaVerdict verdict,
                                        client->Verify(verify));
                       return verdict.equal() == right
                                  ? absl::OkStatus()
                                  : absl::InternalError(
                                        "the verdict is not what it is to be");
                     }));
    Add(right ? "cuda.judged_launch_us" : "cuda.judged_wrong_launch_us", us,
        "us");
  }
  client->UnloadUnit(id);
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  Bench bench(options);
  RETURN_IF_ERROR(bench.Start());
  std::fprintf(stderr, "%s\n", bench.client->facts().name().c_str());
  RETURN_IF_ERROR(bench.MeasureSmallLoad());
  RETURN_IF_ERROR(bench.MeasureLaunch());
  RETURN_IF_ERROR(bench.MeasureJudgedLaunch());
  RETURN_IF_ERROR(bench.MeasureMemory());
  RETURN_IF_ERROR(bench.MeasureScattered());
  RETURN_IF_ERROR(bench.MeasureRemap());
  std::fputs(FormatBenchmarkResults(bench.results).c_str(), stdout);
  if (options.report.empty()) return absl::OkStatus();
  return UpdateBenchmarkReport(options.report, bench.results,
                               bench.client->facts().name());
}

int Main(int argc, char** argv) {
  CLI::App app("measures what a launch on a CUDA device costs");
  Options options;
  app.add_option("--device", options.ordinal, "number of the device");
  app.add_option("--rounds", options.rounds, "repetitions");
  app.add_option("--gib", options.gib, "size of a unit");
  app.add_option("--large-gib", options.large_gib, "size of a large unit");
  app.add_option("--report", options.report,
                 "JSON file that keeps the results");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  reprise::InitializeLogging();
  if (argc > 1 && std::strcmp(argv[1], "cuda-executor") == 0)
    return reprise::CudaExecutorMain(argc - 2, argv + 2);
  return reprise::Main(argc, argv);
}
