// How long a variant takes to compile: with and without the front end, through
// precompiled headers and without, in this process and through the pool.
//
// frontend.* and compile.* times are medians over runs that differ in their
// text or options, so that nothing comes from a cache.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "replay/base/file_util.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/compile_pool.h"
#include "replay/compiler/compiler.h"
#include "tests/benchmarks/app_units.h"
#include "tests/benchmarks/benchmark_report.h"

namespace reprise {
namespace {

struct Settings {
  std::string apps_directory = DefaultAppsDirectory();
  std::string app = "sigmoid";
  int runs = 30;
  std::string report;
};

// A variant whose kernel's file says something new near its end, after all
// kernels; every run has another text.
v1::Variant Edit(const std::string& path, const std::string& text, int run) {
  v1::Variant variant;
  v1::SourceOverlay* overlay = variant.add_sources();
  overlay->set_path(path);
  overlay->set_content(absl::StrCat(text, "\n// run ", run, "\n"));
  return variant;
}

// A cap of registers that binds nothing makes PTX another than before, which
// would come out of a cache.
v1::Variant Assembled(v1::Variant variant, int run) {
  variant.mutable_codegen()->set_max_registers(
      255 - static_cast<uint32_t>(run) % 100);
  return variant;
}

// A variant without a source edit that no run before had.
v1::Variant Tuned(int run, v1::CompileTarget target) {
  v1::Variant variant;
  variant.mutable_codegen()->set_unroll_threshold(200 +
                                                  static_cast<uint32_t>(run));
  return target == v1::COMPILE_TARGET_CUBIN ? Assembled(variant, run) : variant;
}

absl::Status CheckBuilt(const v1::CompileReply& reply) {
  if (reply.kind() == v1::OUTCOME_KIND_OK) return absl::OkStatus();
  return absl::InternalError(reply.diagnostics());
}

double ElapsedMs(absl::Time start) {
  return absl::ToDoubleMilliseconds(absl::Now() - start);
}

class Benchmark {
 public:
  Benchmark(const Settings& settings, const AppKernel& kernel,
            std::string main_text)
      : settings_(settings),
        kernel_(kernel),
        main_text_(std::move(main_text)) {}

  absl::Status MeasureFrontend();
  absl::Status MeasureBackend();
  absl::Status MeasurePool(CompilePool& pool);
  const std::vector<BenchmarkResult>& results() const { return results_; }

 private:
  static std::unique_ptr<Compiler> NewCompiler(bool use_pch) {
    Compiler::Options options;
    options.tools = FindToolchain("");
    options.use_pch = use_pch;
    return Compiler::Create(std::move(options));
  }
  void Add(const std::string& metric, std::vector<double> values,
           const std::string& target = "") {
    results_.push_back(
        {metric, Median(std::move(values)), "ms", target,
         absl::StrCat("compile_benchmark --app ", settings_.app)});
  }

  const Settings& settings_;
  const AppKernel& kernel_;
  const std::string main_text_;
  std::vector<BenchmarkResult> results_;
};

absl::Status Benchmark::MeasureFrontend() {
  for (const bool use_pch : {true, false}) {
    const std::unique_ptr<Compiler> compiler = NewCompiler(use_pch);
    compiler->Remember(*kernel_.input);
    std::vector<double> times;
    // The first compile builds the precompiled header.
    for (int run = -1; run < (use_pch ? settings_.runs : 5); ++run) {
      const v1::CompileReply reply = compiler->Compile(
          kernel_.input->key(), Edit(kernel_.main_file, main_text_, run),
          v1::COMPILE_TARGET_DEVICE_IR);
      RETURN_IF_ERROR(CheckBuilt(reply));
      if (use_pch && !reply.used_pch())
        return absl::InternalError("no precompiled header was used");
      if (run >= 0) {
        times.push_back(reply.frontend_ms());
      } else if (use_pch) {
        Add("frontend.first_with_pch_ms", {reply.frontend_ms()});
      }
    }
    Add(use_pch ? "frontend.pch_ms" : "frontend.no_pch_ms", std::move(times),
        use_pch ? "<= 80" : "");
  }
  return absl::OkStatus();
}

absl::Status Benchmark::MeasureBackend() {
  const std::unique_ptr<Compiler> compiler = NewCompiler(true);
  compiler->Remember(*kernel_.input);
  for (const v1::CompileTarget target :
       {v1::COMPILE_TARGET_CUBIN, v1::COMPILE_TARGET_CPU}) {
    std::vector<double> times, reads, pipelines, codegens, links;
    for (int run = -1; run < settings_.runs; ++run) {
      const absl::Time start = absl::Now();
      const v1::CompileReply reply =
          compiler->Compile(kernel_.input->key(), Tuned(run, target), target);
      RETURN_IF_ERROR(CheckBuilt(reply));
      if (run < 0) continue;
      times.push_back(ElapsedMs(start));
      reads.push_back(reply.frontend_ms());
      pipelines.push_back(reply.pipeline_ms());
      codegens.push_back(reply.codegen_ms());
      links.push_back(reply.link_ms());
    }
    const bool cubin = target == v1::COMPILE_TARGET_CUBIN;
    Add(cubin ? "compile.pipeline_to_cubin_ms"
              : "compile.pipeline_to_object_ms",
        std::move(times), cubin ? "<= 40" : "");
    const std::string stages =
        cubin ? "compile.cubin_stage." : "compile.object_stage.";
    Add(stages + "read_ir_ms", std::move(reads));
    Add(stages + "pipeline_ms", std::move(pipelines));
    Add(stages + "codegen_ms", std::move(codegens));
    if (cubin) Add(stages + "nvjitlink_ms", std::move(links));
  }
  return absl::OkStatus();
}

absl::Status Benchmark::MeasurePool(CompilePool& pool) {
  for (const bool source : {true, false}) {
    std::vector<double> times;
    for (int run = -1; run < settings_.runs; ++run) {
      const absl::Time start = absl::Now();
      ASSIGN_OR_RETURN(const v1::CompileReply reply,
                       pool.Compile(kernel_.input,
                                    Assembled(source ? Edit(kernel_.main_file,
                                                            main_text_, run)
                                                     : v1::Variant(),
                                              run),
                                    v1::COMPILE_TARGET_CUBIN));
      RETURN_IF_ERROR(CheckBuilt(reply));
      if (run >= 0) times.push_back(ElapsedMs(start));
    }
    Add(source ? "compile.pool_source_to_cubin_ms"
               : "compile.pool_pipeline_to_cubin_ms",
        std::move(times));
  }
  return absl::OkStatus();
}

absl::Status Run(const Settings& settings) {
  CompilePool::Options options;
  options.workers = 1;
  ASSIGN_OR_RETURN(const std::unique_ptr<CompilePool> pool,
                   CompilePool::Create(options));
  ASSIGN_OR_RETURN(
      const std::vector<AppKernel> kernels,
      LoadAppKernels(*pool, settings.apps_directory, {settings.app}));
  const AppKernel& kernel = kernels.at(0);
  ASSIGN_OR_RETURN(std::string text, ReadFile(kernel.main_file));
  Benchmark benchmark(settings, kernel, std::move(text));
  RETURN_IF_ERROR(benchmark.MeasureFrontend());
  RETURN_IF_ERROR(benchmark.MeasureBackend());
  RETURN_IF_ERROR(benchmark.MeasurePool(*pool));
  std::fputs(FormatBenchmarkResults(benchmark.results()).c_str(), stdout);
  if (settings.report.empty()) return absl::OkStatus();
  return UpdateBenchmarkReport(settings.report, benchmark.results());
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "compile-worker") == 0)
    return reprise::CompileWorkerMain(argc - 2, argv + 2);
  reprise::InitializeLogging();
  reprise::Settings settings;
  CLI::App app("Times of the compiler for one kernel of tests/apps");
  app.add_option("--apps-directory", settings.apps_directory);
  app.add_option("--app", settings.app, "the application");
  app.add_option("--runs", settings.runs)->check(CLI::Range(1, 10000));
  app.add_option("--report", settings.report, "JSON file to keep results in");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = reprise::Run(settings);
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "compile_benchmark: %s\n", status.ToString());
  return 1;
}
