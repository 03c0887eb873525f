// Random pass sequences over the kernels of tests/apps, for every target: what
// a search over pipelines does to the compile pool, at its worst.
//
// Exit code 0: every job was answered, and afterwards the same workers build
// every kernel as before (which is also the test that no job leaves a trace in
// LLVM's global options). 1: not so. 2: bad usage.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/compile_pool.h"
#include "tests/benchmarks/app_units.h"
#include "tests/benchmarks/benchmark_report.h"
#include "tests/benchmarks/random_pipeline.h"

namespace reprise {
namespace {

struct Settings {
  std::string apps_directory = DefaultAppsDirectory();
  std::vector<std::string> apps;
  int sequences = 5000;
  int max_passes = 24;
  int workers = 2;
  int timeout_s = 60;
  uint64_t seed = 1;
  std::string report;
  bool verbose = false;
};

constexpr v1::CompileTarget kTargets[] = {
    v1::COMPILE_TARGET_PTX, v1::COMPILE_TARGET_CPU, v1::COMPILE_TARGET_CUBIN};

// What came of jobs, by kind, with an example of each.
class Tally {
 public:
  void Add(const std::string& kind, const std::string& example) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Entry& entry = entries_[kind];
    ++entry.count;
    if (entry.example.empty()) entry.example = example;
  }
  int Count(const std::string& kind) const {
    const auto found = entries_.find(kind);
    return found == entries_.end() ? 0 : found->second.count;
  }
  int CountWithPrefix(const std::string& prefix) const {
    int count = 0;
    for (const auto& [kind, entry] : entries_)
      count += absl::StartsWith(kind, prefix) ? entry.count : 0;
    return count;
  }
  void Print(bool verbose) const {
    for (const auto& [kind, entry] : entries_) {
      absl::PrintF("%6d  %s\n", entry.count, kind);
      if (verbose && !entry.example.empty())
        absl::PrintF("        e.g. %s\n", entry.example);
    }
  }

 private:
  struct Entry {
    int count = 0;
    std::string example;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

std::string FirstLine(const std::string& text) {
  return text.substr(0, std::min(text.find('\n'), size_t{160}));
}

// "lost in pass GVNPass", "invalid IR", "refused by the back end" ...
std::string KindOf(const v1::CompileReply& reply) {
  const std::string& text = reply.diagnostics();
  if (reply.kind() == v1::OUTCOME_KIND_OK) return "built";
  if (reply.kind() != v1::OUTCOME_KIND_COMPILE_ERROR)
    return "error of this machine: " + FirstLine(text);
  if (absl::StartsWith(text, "the compiler ")) {
    std::string line = FirstLine(text);
    const size_t on = line.find(" on ");
    return "lost: " + line.substr(13, on == std::string::npos ? on : on - 13);
  }
  if (absl::StrContains(text, "left invalid IR")) return "invalid IR";
  if (absl::StrContains(text, "the pipeline removed")) return "kernel removed";
  if (absl::StrContains(text, "the pipeline made")) return "variable renamed";
  if (absl::StrContains(text, "cpu device cannot run"))
    return "refused by the cpu device";
  return "refused: " + FirstLine(text).substr(0, 60);
}

struct Soak {
  const Settings& settings;
  CompilePool& pool;
  const std::vector<AppKernel>& kernels;
  Tally tally;
  std::atomic<int> next{0};

  void RunShare() {
    for (int i = next.fetch_add(1); i < settings.sequences;
         i = next.fetch_add(1)) {
      std::mt19937_64 random(settings.seed * 1000003 +
                             static_cast<uint64_t>(i));
      const AppKernel& kernel = kernels[random() % kernels.size()];
      const v1::CompileTarget target = kTargets[random() % 3];
      v1::Variant variant;
      variant.set_pipeline(RandomPipeline(random, settings.max_passes));
      const absl::StatusOr<v1::CompileReply> reply =
          pool.Compile(kernel.input, variant, target);
      const std::string what =
          absl::StrCat(kernel.app, " ", kernel.input->kernels(0), " ",
                       v1::CompileTarget_Name(target), " ", variant.pipeline());
      if (!reply.ok()) {
        tally.Add(
            absl::StrCat("not answered: ",
                         FirstLine(std::string(reply.status().message()))),
            what);
      } else {
        const std::string kind = KindOf(*reply);
        tally.Add(kind, kind == "built" ? "" : what);
      }
      if (i % 500 == 499)
        absl::FPrintF(stderr, "%d of %d\n", i + 1, settings.sequences);
    }
  }
};

// Hashes of every kernel's code for every target, by the default pipeline;
// `round` keeps results of the cache apart.
absl::StatusOr<std::map<std::string, std::string>> DefaultCode(
    CompilePool& pool, const std::vector<AppKernel>& kernels,
    const std::string& round) {
  std::map<std::string, std::string> hashes;
  for (const AppKernel& kernel : kernels) {
    auto input = std::make_shared<v1::CompileInput>(*kernel.input);
    input->set_key(absl::StrCat(round, input->key()));
    for (const v1::CompileTarget target : kTargets) {
      ASSIGN_OR_RETURN(const v1::CompileReply reply,
                       pool.Compile(input, v1::Variant(), target));
      hashes[absl::StrCat(kernel.input->key(), " ",
                          v1::CompileTarget_Name(target))] =
          reply.kind() == v1::OUTCOME_KIND_OK ? reply.code_sha256()
                                              : reply.diagnostics();
    }
  }
  return hashes;
}

absl::Status Report(const Settings& settings, const Soak& soak,
                    uint64_t workers_lost, absl::Duration took) {
  const std::string command = absl::StrCat(
      "pass_soak --sequences ", settings.sequences, " --seed ", settings.seed);
  return UpdateBenchmarkReport(
      settings.report,
      {{"compile.soak_sequences", static_cast<double>(settings.sequences),
        "jobs", ">= 5000", command},
       {"compile.soak_unanswered",
        static_cast<double>(soak.tally.CountWithPrefix("not answered")), "jobs",
        "0", command},
       {"compile.soak_workers_lost", static_cast<double>(workers_lost),
        "workers", "", command},
       {"compile.soak_invalid_ir",
        static_cast<double>(soak.tally.Count("invalid IR")), "jobs", "",
        command},
       {"compile.soak_jobs_per_s",
        settings.sequences / absl::ToDoubleSeconds(took), "1/s", "", command}});
}

absl::Status Run(const Settings& settings) {
  CompilePool::Options options;
  options.workers = settings.workers;
  options.job_timeout = absl::Seconds(settings.timeout_s);
  ASSIGN_OR_RETURN(const std::unique_ptr<CompilePool> pool,
                   CompilePool::Create(options));
  ASSIGN_OR_RETURN(
      const std::vector<AppKernel> kernels,
      LoadAppKernels(*pool, settings.apps_directory, settings.apps));
  ASSIGN_OR_RETURN(const auto before, DefaultCode(*pool, kernels, "before "));
  Soak soak{settings, *pool, kernels, {}, {}};
  const absl::Time start = absl::Now();
  std::vector<std::thread> threads;
  for (int i = 0; i < settings.workers; ++i)
    threads.emplace_back([&soak] { soak.RunShare(); });
  for (std::thread& thread : threads) thread.join();
  const absl::Duration took = absl::Now() - start;
  ASSIGN_OR_RETURN(const auto after, DefaultCode(*pool, kernels, "after "));
  const uint64_t lost = pool->statistics().workers_lost;
  absl::PrintF("%d sequences over %d kernels in %s, seed %d\n",
               settings.sequences, kernels.size(), absl::FormatDuration(took),
               settings.seed);
  soak.tally.Print(settings.verbose);
  absl::PrintF("%6d  workers lost and replaced\n", lost);
  int different = 0;
  for (const auto& [what, hash] : before) {
    if (after.at(what) == hash) continue;
    ++different;
    absl::PrintF("changed by the soak: %s\n", what);
  }
  const int unanswered = soak.tally.CountWithPrefix("not answered");
  absl::PrintF(
      "pool alive: %d of %d default builds as before, %d jobs "
      "without an answer\n",
      before.size() - different, before.size(), unanswered);
  if (!settings.report.empty())
    RETURN_IF_ERROR(Report(settings, soak, lost, took));
  if (different > 0 || unanswered > 0 || soak.tally.Count("built") == 0)
    return absl::InternalError("the soak failed");
  return absl::OkStatus();
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "compile-worker") == 0)
    return reprise::CompileWorkerMain(argc - 2, argv + 2);
  reprise::InitializeLogging();
  reprise::Settings settings;
  CLI::App app("Random pass sequences over the kernels of tests/apps");
  app.add_option("--apps-directory", settings.apps_directory);
  app.add_option("--apps", settings.apps, "names; default: all")
      ->delimiter(',');
  app.add_option("--sequences", settings.sequences)
      ->check(CLI::Range(1, 1000000));
  app.add_option("--max-passes", settings.max_passes)
      ->check(CLI::Range(1, 1000));
  app.add_option("--workers", settings.workers)->check(CLI::Range(1, 256));
  app.add_option("--timeout", settings.timeout_s, "seconds for one job")
      ->check(CLI::Range(1, 3600));
  app.add_option("--seed", settings.seed);
  app.add_option("--report", settings.report, "JSON file to keep results in");
  app.add_flag("--verbose", settings.verbose, "an example of each failure");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = reprise::Run(settings);
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "pass_soak: %s\n", status.ToString());
  return 1;
}
