// Front ends side by side, over every kernel of tests/apps: how long a source
// variant takes by Clang and by NVIDIA's compiler, and which of these it was.
//
// Each kernel is compiled as it is (first), then `--runs` times with another
// text at the end of its file; times are medians, in one process.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
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
  AppUnitOptions apps;
  int runs = 3;
  bool details = false;
};

struct Measured {
  std::string error;  // empty: built
  std::string note;
  double first_ms = 0;
  double edited_ms = 0;
};

v1::Variant Edited(const std::string& path, const std::string& text, int run,
                   const std::string& frontend) {
  v1::Variant variant;
  variant.set_frontend(frontend);
  v1::SourceOverlay* overlay = variant.add_sources();
  overlay->set_path(path);
  overlay->set_content(absl::StrCat(text, "\n// run ", run, "\n"));
  return variant;
}

Measured Measure(Compiler& compiler, const AppKernel& kernel,
                 const std::string& text, const std::string& frontend,
                 int runs) {
  Measured measured;
  v1::Variant variant;
  variant.set_frontend(frontend);
  std::vector<double> times;
  for (int run = 0; run <= runs; ++run) {
    if (run > 0) variant = Edited(kernel.main_file, text, run, frontend);
    const absl::Time start = absl::Now();
    const v1::CompileReply reply = compiler.Compile(
        kernel.input->key(), variant, v1::COMPILE_TARGET_CUBIN);
    const double ms = absl::ToDoubleMilliseconds(absl::Now() - start);
    if (reply.kind() != v1::OUTCOME_KIND_OK) {
      measured.error = reply.diagnostics();
      return measured;
    }
    measured.note = reply.diagnostics();
    if (run == 0) {
      measured.first_ms = ms;
    } else {
      times.push_back(ms);
    }
  }
  measured.edited_ms = Median(times);
  return measured;
}

std::string Word(const Measured& measured) {
  if (!measured.error.empty()) return "refused";
  return measured.note.empty() ? "nvrtc" : "nvcc";
}

absl::Status Run(const Settings& settings) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CompilePool> pool,
                   CompilePool::Create({}));
  ASSIGN_OR_RETURN(const std::vector<AppKernel> kernels,
                   LoadAppKernels(*pool, settings.apps));
  std::printf(
      "app\tclang first\tclang edited\tnvidia\tnvidia first\tnvidia "
      "edited\tkernel\n");
  std::vector<double> by_clang, by_nvrtc, by_nvcc;
  for (const AppKernel& kernel : kernels) {
    // As a worker has it: what is built once is built for this unit.
    Compiler::Options options;
    options.tools = FindToolchain("");
    const std::unique_ptr<Compiler> compiler = Compiler::Create(options);
    compiler->Remember(*kernel.input);
    ASSIGN_OR_RETURN(const std::string text, ReadFile(kernel.main_file));
    const Measured clang =
        Measure(*compiler, kernel, text, "clang", settings.runs);
    const Measured nvidia =
        Measure(*compiler, kernel, text, "nvrtc", settings.runs);
    std::printf("%s\t%.0f\t%.0f\t%s\t%.0f\t%.0f\t%s\n", kernel.app.c_str(),
                clang.first_ms, clang.edited_ms, Word(nvidia).c_str(),
                nvidia.first_ms, nvidia.edited_ms,
                kernel.input->kernels(0).c_str());
    if (settings.details && !clang.error.empty())
      std::printf("  clang: %s\n", clang.error.c_str());
    if (settings.details && !nvidia.error.empty())
      std::printf("  nvidia: %s\n", nvidia.error.c_str());
    if (settings.details && !nvidia.note.empty())
      std::printf("  %s\n", nvidia.note.c_str());
    std::fflush(stdout);
    if (clang.error.empty()) by_clang.push_back(clang.edited_ms);
    if (Word(nvidia) == "nvrtc") by_nvrtc.push_back(nvidia.edited_ms);
    if (Word(nvidia) == "nvcc") by_nvcc.push_back(nvidia.edited_ms);
  }
  for (const auto& [name, times] :
       {std::pair("clang", by_clang), std::pair("nvrtc", by_nvrtc),
        std::pair("nvcc", by_nvcc)}) {
    if (!times.empty())
      std::printf("%s: %zu kernels, median %.0f ms\n", name, times.size(),
                  Median(times));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "compile-worker")
    return reprise::CompileWorkerMain(argc - 2, argv + 2);
  CLI::App app("how long front ends take for the kernels of tests/apps");
  reprise::Settings settings;
  settings.apps.apps_directory = reprise::DefaultAppsDirectory();
  settings.apps.without_ir = true;
  std::string only;
  app.add_option("--apps-directory", settings.apps.apps_directory);
  app.add_option("--table", settings.apps.table);
  app.add_option("--apps", only, "names, separated by commas");
  app.add_option("--runs", settings.runs)->capture_default_str();
  app.add_flag("--details", settings.details, "also what compilers say");
  CLI11_PARSE(app, argc, argv);
  if (!only.empty()) settings.apps.only = absl::StrSplit(only, ',');
  const absl::Status status = reprise::Run(settings);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
