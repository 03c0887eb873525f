// Results of benchmark programs, kept in docs/benchmarks/NAME.json: an array of
// objects {metric, value, unit, target, command, environment, date}, one per
// metric and sorted by it.
//
// A benchmark prints its results and, asked by --report FILE, keeps them there.
// Thread-safe; several processes may update one file.
#ifndef REPRISE_TESTS_BENCHMARKS_BENCHMARK_REPORT_H_
#define REPRISE_TESTS_BENCHMARKS_BENCHMARK_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace reprise {

struct BenchmarkResult {
  std::string metric;  // "unit.read_gb_s": what is measured, unit last
  double value = 0;
  std::string unit;     // "GB/s"
  std::string target;   // ">= 5", or empty
  std::string command;  // what a reader runs to measure it again
};

// The machine and the build: "AMD EPYC, 2 cores, 23 GiB, Linux 6.1, Clang 22,
// optimized".
std::string BenchmarkEnvironment();

// Replaces the entries of these metrics, with BenchmarkEnvironment() plus
// `remark` and today's date, and keeps all others. The file and its directory
// are made where they are missing. INVALID_ARGUMENT where the file is something
// else.
absl::Status UpdateBenchmarkReport(const std::string& path,
                                   const std::vector<BenchmarkResult>& results,
                                   const std::string& remark = "");

// One line per result, for standard output.
std::string FormatBenchmarkResults(const std::vector<BenchmarkResult>& results);

// The middle one (the lower of two); `values` is not empty.
double Median(std::vector<double> values);
// The one that this share (0 to 1) of the others does not exceed; `values` is
// not empty.
double Quantile(std::vector<double> values, double quantile);

}  // namespace reprise

#endif  // REPRISE_TESTS_BENCHMARKS_BENCHMARK_REPORT_H_
