// What judging a variant costs on a CUDA device, from request to outcome, and
// whether the measuring can be believed: units of a store, recorded before.
//
// Source variants are the unit's main file with one more unused function each,
// so that every one goes through the front end; pipeline variants are
// default<O3> with a random sequence after it. Many of those end in the same
// PTX, which is assembled once. Source variants, and the pipeline variants of
// "new code", have a register cap of their own that binds nothing, so that
// every one is assembled. Contenders: at least ten pairs are timed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/compile_pool.h"
#include "replay/device/cuda/cuda_device.h"
#include "replay/engine/evaluator.h"
#include "replay/unit/unit_store.h"
#include "tests/benchmarks/benchmark_report.h"
#include "tests/benchmarks/equivalent_source.h"
#include "tests/benchmarks/random_pipeline.h"

namespace reprise {
namespace {

struct Settings {
  std::string reprise;
  std::string store;
  std::string cuda_home;
  std::vector<std::string> units;
  int ordinal = 0;
  int workers = 16;
  int variants = 40;
  int comparisons = 0;
  uint64_t seed = 1;
  std::string metric = "cuda";
  std::string report;
};

constexpr int kContenderPairs = 10;
constexpr int kMostVariants = 60;  // register caps that bind nothing

// Latencies of one kind of variant.
struct Latencies {
  std::vector<double> total, compile, load, verify, time;
  std::vector<double> frontend, pipeline, codegen, link;
  std::map<std::string, int> kinds;
  std::set<std::string> codes;

  // What compiling consisted of.
  void AddParts(const v1::CompileReply& code) {
    frontend.push_back(code.frontend_ms());
    pipeline.push_back(code.pipeline_ms());
    codegen.push_back(code.codegen_ms());
    link.push_back(code.link_ms());
  }

  void Add(double ms, const v1::Outcome& outcome) {
    ++kinds[v1::OutcomeKind_Name(outcome.kind())];
    if (outcome.kind() != v1::OUTCOME_KIND_OK) return;
    total.push_back(ms);
    compile.push_back(outcome.stages().compile_ms());
    load.push_back(outcome.stages().load_ms());
    verify.push_back(outcome.stages().verify_ms());
    time.push_back(outcome.stages().time_ms());
    codes.insert(outcome.machine_code_sha256());
  }
  std::string Describe() const {
    std::string text;
    if (!total.empty()) {
      text = absl::StrFormat(
          "p50 %.1f ms, p95 %.1f ms (compile %.1f, load %.1f, verify %.1f, "
          "time %.1f; of compile: front end %.1f, passes %.1f, codegen %.1f, "
          "ptxas %.1f)",
          Median(total), Quantile(total, 0.95), Median(compile), Median(load),
          Median(verify), Median(time), Median(frontend), Median(pipeline),
          Median(codegen), Median(link));
    }
    for (const auto& [kind, count] : kinds)
      absl::StrAppend(&text, "; ", count, " ", kind);
    absl::StrAppend(&text, ", ", codes.size(), " machine codes");
    return text;
  }
};

class Bench {
 public:
  explicit Bench(Settings settings)
      : settings_(std::move(settings)), random_(settings_.seed) {}

  absl::Status Run() {
    CompilePool::Options pool;
    pool.executable = settings_.reprise;
    pool.workers = settings_.workers;
    pool.cuda_home = settings_.cuda_home;
    ASSIGN_OR_RETURN(pool_, CompilePool::Create(pool));
    CudaDeviceOptions device;
    device.ordinal = settings_.ordinal;
    device.executor_executable = settings_.reprise;
    ASSIGN_OR_RETURN(device_, CreateCudaDevice(device));
    ASSIGN_OR_RETURN(store_, UnitStore::Open({.directory = settings_.store,
                                              .create = false}));
    if (settings_.units.empty()) {
      ASSIGN_OR_RETURN(const auto units, store_->List());
      for (const UnitListing& unit : units) settings_.units.push_back(unit.id);
    }
    for (const std::string& id : settings_.units) {
      const absl::Status status = Measure(id);
      if (!status.ok())
        absl::PrintF("%s: %s\n", id, std::string(status.message()));
      std::fflush(stdout);
    }
    Conclude();
    if (settings_.report.empty()) return absl::OkStatus();
    return UpdateBenchmarkReport(settings_.report, results_,
                                 device_->facts().name);
  }

 private:
  absl::Status Measure(const std::string& id);
  absl::Status MeasureThroughput(const UnitReader& unit, Evaluator& evaluator);
  absl::Status Compare(const UnitReader& unit);
  void Conclude();

  v1::Variant SourceVariant(const UnitReader& unit, const std::string& text,
                            int number) {
    v1::Variant variant;
    v1::SourceOverlay* overlay = variant.add_sources();
    overlay->set_path(unit.manifest().translation_units(0).main_file());
    overlay->set_content(WithUnusedFunction(text, number));
    return Assembled(variant, number);
  }
  v1::Variant PipelineVariant() {
    v1::Variant variant;
    variant.set_pipeline(
        absl::StrCat("default<O3>,", RandomPipeline(random_, 6)));
    return variant;
  }
  // With PTX of its own.
  static v1::Variant Assembled(v1::Variant variant, int number) {
    constexpr uint32_t kMostRegisters = 255;
    variant.mutable_codegen()->set_max_registers(kMostRegisters -
                                                 static_cast<uint32_t>(number));
    return variant;
  }
  static absl::StatusOr<std::string> MainFile(const UnitReader& unit) {
    const v1::TranslationUnit& own = unit.manifest().translation_units(0);
    for (const auto& file : own.files()) {
      if (file.path() == own.main_file())
        return unit.chunks().GetString(file.content());
    }
    return absl::NotFoundError("the unit does not hold its main file");
  }
  void Add(const std::string& metric, double value, const std::string& unit,
           const std::string& target) {
    results_.push_back({metric, value, unit, target,
                        "replay_benchmark --store build/gpu-units --reprise "
                        "build/release/bin/reprise"});
    absl::PrintF("%-36s %10.3f %s\n", metric, value, unit);
  }

  Settings settings_;
  std::unique_ptr<CompilePool> pool_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<UnitStore> store_;
  std::mt19937_64 random_;
  Latencies source_, pipeline_, new_code_;
  std::vector<double> trials_per_s_;
  std::vector<double> over_own_code_;
  int comparisons_ = 0, false_positives_ = 0;
  std::vector<BenchmarkResult> results_;
};

absl::Status Bench::Measure(const std::string& id) {
  ASSIGN_OR_RETURN(const UnitReader unit, store_->Open(id));
  if (unit.manifest().translation_units_size() == 0)
    return absl::FailedPreconditionError("machine code only");
  random_.seed(settings_.seed);
  EvaluatorOptions options;
  options.stopping.minimum_pairs = kContenderPairs;
  options.stopping.maximum_pairs = kContenderPairs;
  ASSIGN_OR_RETURN(const auto evaluator,
                   Evaluator::Create(unit, *device_, *pool_, options));
  evaluator->ExpectSourceVariants();
  const v1::Outcome rebuilt = evaluator->Evaluate(v1::Variant());
  ASSIGN_OR_RETURN(const std::string text, MainFile(unit));
  Latencies source, pipeline, new_code;
  for (int i = 0; i < settings_.variants; ++i) {
    const auto measure = [&](const v1::Variant& variant, Latencies* here,
                             Latencies* all) {
      const absl::Time start = absl::Now();
      const v1::Outcome outcome = evaluator->Evaluate(variant);
      const double ms = absl::ToDoubleMilliseconds(absl::Now() - start);
      here->Add(ms, outcome);
      all->Add(ms, outcome);
      // Out of the cache.
      if (const auto code = evaluator->Compile(variant); code.ok())
        here->AddParts(*code);
    };
    measure(SourceVariant(unit, text, i), &source, &source_);
    measure(PipelineVariant(), &pipeline, &pipeline_);
    measure(Assembled(PipelineVariant(), kMostVariants + i), &new_code,
            &new_code_);
  }
  const double kernel_us =
      absl::ToDoubleMicroseconds(evaluator->baseline().median_time);
  absl::PrintF(
      "%s: kernel %.1f us\n  source   %s\n  pipeline %s\n  new code %s\n", id,
      kernel_us, source.Describe(), pipeline.Describe(), new_code.Describe());
  if (rebuilt.kind() == v1::OUTCOME_KIND_OK && rebuilt.has_speedup() &&
      evaluator->baseline().kind == v1::BASELINE_KIND_APPLICATION_CODE) {
    over_own_code_.push_back(1 / rebuilt.speedup().ratio());
    absl::PrintF("  rebuilt IR takes %.3f of the application's own code\n",
                 over_own_code_.back());
  }
  RETURN_IF_ERROR(MeasureThroughput(unit, *evaluator));
  return settings_.comparisons > 0 ? Compare(unit) : absl::OkStatus();
}

// Pipeline variants as a search asks for them: compiled by all workers while
// the device judges others; losers stop early.
absl::Status Bench::MeasureThroughput(const UnitReader& unit,
                                      Evaluator& evaluator) {
  const absl::Duration limit = EvaluatorOptions().time_per_variant;
  std::vector<double> pairs;
  const int count = 4 * settings_.variants;
  std::vector<v1::Variant> variants;
  for (int i = 0; i < count; ++i) variants.push_back(PipelineVariant());
  std::atomic<int> next = 0;
  std::vector<std::atomic<bool>> ready(static_cast<size_t>(count));
  const absl::Time start = absl::Now();
  std::vector<std::thread> compilers;
  for (int i = 0; i < settings_.workers; ++i) {
    compilers.emplace_back([&] {
      for (int at = next++; at < count; at = next++) {
        (void)evaluator.Compile(variants[static_cast<size_t>(at)]);
        ready[static_cast<size_t>(at)] = true;
        ready[static_cast<size_t>(at)].notify_one();
      }
    });
  }
  for (int i = 0; i < count; ++i) {
    ready[static_cast<size_t>(i)].wait(false);
    const v1::Outcome outcome = evaluator.EvaluateWith(
        variants[static_cast<size_t>(i)], SearchStopping(), limit);
    pairs.push_back(outcome.speedup().pairs());
  }
  for (std::thread& compiler : compilers) compiler.join();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  trials_per_s_.push_back(count / seconds);
  absl::PrintF("  %.1f trials/s, %.0f pairs each (median)\n",
               trials_per_s_.back(), Median(pairs));
  return absl::OkStatus();
}

// The same machine code against itself, as any variant against the baseline.
absl::Status Bench::Compare(const UnitReader& unit) {
  EvaluatorOptions options;
  options.compare_equal_code = true;
  ASSIGN_OR_RETURN(const auto evaluator,
                   Evaluator::Create(unit, *device_, *pool_, options));
  int wrong = 0;
  for (int i = 0; i < settings_.comparisons; ++i) {
    const v1::Outcome outcome = evaluator->Evaluate(v1::Variant());
    if (outcome.kind() == v1::OUTCOME_KIND_REJECTED) {
      absl::PrintF("  A/A: %s\n", outcome.diagnostics());
      ++wrong;
      continue;
    }
    if (outcome.kind() != v1::OUTCOME_KIND_OK)
      return absl::InternalError(outcome.diagnostics());
    const v1::Speedup& speedup = outcome.speedup();
    const bool differs = speedup.ci95_low() > 1 || speedup.ci95_high() < 1;
    if (differs && std::abs(speedup.ratio() - 1) > 0.01) ++wrong;
  }
  absl::PrintF("  A/A: %d of %d call a difference above 1 %%\n", wrong,
               settings_.comparisons);
  comparisons_ += settings_.comparisons;
  false_positives_ += wrong;
  return absl::OkStatus();
}

void Bench::Conclude() {
  const std::string& metric = settings_.metric;
  const auto latency = [&](const Latencies& latencies, const std::string& name,
                           const std::string& target) {
    if (latencies.total.empty()) return;
    Add(absl::StrCat(metric, ".", name, "_variant_p50_ms"),
        Median(latencies.total), "ms", target);
    Add(absl::StrCat(metric, ".", name, "_variant_p95_ms"),
        Quantile(latencies.total, 0.95), "ms", "");
  };
  if (absl::EndsWith(metric, "big_unit")) {
    if (source_.total.empty()) return;
    Add(metric + "_variant_p50_ms", Median(source_.total), "ms", "<= 1000");
    Add(metric + "_variant_p95_ms", Quantile(source_.total, 0.95), "ms", "");
    return;
  }
  latency(source_, "source", "<= 150");
  latency(pipeline_, "pipeline", "<= 50");
  latency(new_code_, "new_code", "");
  if (!trials_per_s_.empty())
    Add(metric + ".trials_per_s", Median(trials_per_s_), "trials/s", ">= 50");
  if (!over_own_code_.empty()) {
    Add(metric + ".clang_over_nvcc.median", Median(over_own_code_), "ratio",
        "");
    Add(metric + ".clang_over_nvcc.min", Quantile(over_own_code_, 0), "ratio",
        "");
    Add(metric + ".clang_over_nvcc.max", Quantile(over_own_code_, 1), "ratio",
        "");
  }
  if (comparisons_ > 0) {
    Add("timing.aa_comparisons", comparisons_, "comparisons", "");
    Add("timing.aa_false_positives", false_positives_, "comparisons",
        "<= 2 of 200");
  }
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  reprise::InitializeLogging();
  reprise::Settings settings;
  CLI::App app("measures what judging a variant costs on a CUDA device");
  app.add_option("--reprise", settings.reprise, "the program whose workers run")
      ->required();
  app.add_option("--store", settings.store, "recorded units")->required();
  app.add_option("--cuda-home", settings.cuda_home, "CUDA toolkit");
  app.add_option("--units", settings.units, "which units; default: all")
      ->delimiter(',');
  app.add_option("--device", settings.ordinal, "number of the device");
  app.add_option("--workers", settings.workers, "compile processes");
  app.add_option("--variants", settings.variants, "of each kind, per unit")
      ->check(CLI::Range(1, reprise::kMostVariants));
  app.add_option("--comparisons", settings.comparisons,
                 "A/A comparisons per unit");
  app.add_option("--seed", settings.seed);
  app.add_option("--metric", settings.metric, "beginning of metrics' names");
  app.add_option("--report", settings.report,
                 "JSON file that keeps the results");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = reprise::Bench(settings).Run();
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "replay_benchmark: %s\n", status.ToString());
  return 1;
}
