// How fast the cpu device runs kernels: those without barriers against the same
// work as a serial loop on the same number of threads (one), and the cost of a
// barrier.
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "replay/device/cpu/executor_client.h"
#include "tests/benchmarks/benchmark_report.h"
#include "tests/benchmarks/host_loops.h"
#include "tests/replay/device/device_test_util.h"

namespace reprise {
namespace {

double NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e9 + now.tv_nsec;
}

class Bench {
 public:
  explicit Bench(int runs) : machine_(1), runs_(runs) {}

  // Compiles one kernel for one launch, as a variant of a unit is.
  void Load(const std::string& kernel, const v1::LaunchConfig& launch) {
    LoweringOptions options;
    options.kernels = {kernel};
    options.launch = launch;
    const absl::Status status = machine_.Load("benchmark", options);
    if (status.ok()) return;
    std::fprintf(stderr, "%s: %s\n", kernel.c_str(),
                 std::string(status.message()).c_str());
    std::exit(1);
  }
  TestMachine& machine() { return machine_; }

  double KernelNs(const std::string& kernel, const v1::LaunchConfig& launch,
                  const Arguments& arguments) {
    return absl::ToDoubleNanoseconds(
        machine_.Run(kernel, launch, arguments).device_time);
  }

  // Loop time over kernel time, of the fastest runs: whatever else the machine
  // does can only add to them. Runs are interleaved.
  double Ratio(const std::function<double()>& kernel,
               const std::function<double()>& loop) {
    double fastest_kernel = kernel();
    double fastest_loop = loop();
    for (int i = 0; i < runs_; ++i) {
      fastest_kernel = std::min(fastest_kernel, kernel());
      fastest_loop = std::min(fastest_loop, loop());
    }
    return fastest_loop / fastest_kernel;
  }
  static double HostNs(const std::function<void()>& body) {
    const double start = NowNs();
    body();
    return NowNs() - start;
  }

 private:
  TestMachine machine_;
  int runs_;
};

struct Ratios {
  double saxpy, polynomial, stencil, sigmoid;
};

Ratios MeasureRatios(Bench& bench) {
  TestMachine& m = bench.machine();
  constexpr int kCount = 1 << 18;
  const std::vector<float> values(kCount, 0.5f);
  const uint64_t in = m.Upload(values), out = m.Upload(values);
  float* host_in = m.host<float>(in);
  float* host_out = m.host<float>(out);
  const auto line = MakeLaunch({kCount / 256}, {256});
  const Arguments unary = Arguments().Add(kCount).Add(in).Add(out);
  Ratios ratios;
  bench.Load("Saxpy", line);
  ratios.saxpy = bench.Ratio(
      [&] {
        return bench.KernelNs(
            "Saxpy", line, Arguments().Add(kCount).Add(1e-3f).Add(in).Add(out));
      },
      [&] {
        return Bench::HostNs(
            [&] { SaxpyLoop(kCount, 1e-3f, host_in, host_out); });
      });
  bench.Load("Polynomial", line);
  ratios.polynomial =
      bench.Ratio([&] { return bench.KernelNs("Polynomial", line, unary); },
                  [&] {
                    return Bench::HostNs(
                        [&] { PolynomialLoop(kCount, host_in, host_out); });
                  });
  constexpr int kSide = 512;
  const auto tiles = MakeLaunch({kSide / 64, kSide / 4}, {64, 4});
  bench.Load("Stencil", tiles);
  ratios.stencil = bench.Ratio(
      [&] {
        return bench.KernelNs(
            "Stencil", tiles,
            Arguments().Add(kSide).Add(kSide).Add(in).Add(out));
      },
      [&] {
        return Bench::HostNs(
            [&] { StencilLoop(kSide, kSide, host_in, host_out); });
      });
  bench.Load("Sigmoid", line);
  bench.Load("SigmoidLoop", MakeLaunch({1}, {1}));
  ratios.sigmoid = bench.Ratio(
      [&] { return bench.KernelNs("Sigmoid", line, unary); },
      [&] {
        return bench.KernelNs("SigmoidLoop", MakeLaunch({1}, {1}), unary);
      });
  return ratios;
}

// Nanoseconds a thread and operation, of blocks of 256 threads.
double PerThreadNs(Bench& bench, const std::string& kernel) {
  constexpr int kThreads = 256;
  constexpr int kBlocks = 8;
  constexpr int kOperations = 500;
  const uint64_t out = bench.machine().Allocate(kThreads * kBlocks * 4);
  const auto launch = MakeLaunch({kBlocks}, {kThreads});
  bench.Load(kernel, launch);
  std::vector<double> times;
  for (int i = 0; i < 9; ++i) {
    times.push_back(
        bench.KernelNs(kernel, launch, Arguments().Add(kOperations).Add(out)));
  }
  return Median(times) / (double{kThreads} * kBlocks * kOperations);
}

int Main(int argc, char** argv) {
  CLI::App app("measures the cpu device");
  int runs = 101;
  std::string report;
  app.add_option("--runs", runs, "pairs of kernel and loop");
  app.add_option("--report", report, "JSON file that keeps the results");
  CLI11_PARSE(app, argc, argv);
  Bench bench(runs);
  const Ratios r = MeasureRatios(bench);
  const double worst = std::min({r.saxpy, r.polynomial, r.stencil, r.sigmoid});
  const std::string command =
      "cpu_device_benchmark --runs " + std::to_string(runs);
  const char* unit = "serial loop's time over the kernel's";
  const std::vector<BenchmarkResult> results = {
      {"cpu.barrier_free_ratio", worst, "worst of the four", ">= 0.8", command},
      {"cpu.barrier_free_ratio.saxpy", r.saxpy, unit, "", command},
      {"cpu.barrier_free_ratio.polynomial", r.polynomial, unit, "", command},
      {"cpu.barrier_free_ratio.stencil", r.stencil, unit, "", command},
      {"cpu.barrier_free_ratio.sigmoid", r.sigmoid, unit, "", command},
      {"cpu.barrier_ns_per_thread", PerThreadNs(bench, "Barriers"), "ns", "",
       command},
      {"cpu.shuffle_ns_per_thread", PerThreadNs(bench, "Shuffles"), "ns", "",
       command},
  };
  std::fputs(FormatBenchmarkResults(results).c_str(), stdout);
  if (report.empty()) return 0;
  const absl::Status status = UpdateBenchmarkReport(report, results);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "executor") == 0) {
    return reprise::ExecutorMain(argc - 2, argv + 2);
  }
  return reprise::Main(argc, argv);
}
