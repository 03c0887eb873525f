// Runs optimizers over measured spaces and scores them.
//
//   tuner_sim --spaces DIR [--sampler default,random] [--seeds 25] [--batch 8]
//             [--noise 3] [--synthetic] [--only SUBSTRING] [--jobs 2]
//             [--json docs/benchmarks/bayesopt.json]
//   tuner_sim --spaces DIR --traces FILE      beside other programs'
//   tuner_sim --spaces DIR --proposal-time    ms per proposal, one at a time
//   tuner_sim --spaces DIR --warm-start       from another device's fastest
//
// Per space: P (score.h) with its 95 % interval over seeds, the mean share of
// the optimum after 50, 100 and 220 evaluations, the median number of
// evaluations to 95 % of it, the share that failed, also after evaluation 50
// ("late"), and ms per proposal. Of several methods, how they compare; the
// first named is ours. A search that fails or repeats itself ends the program.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "tests/benchmarks/benchmark_report.h"
#include "tests/benchmarks/tuner_sim/cache_file.h"
#include "tests/benchmarks/tuner_sim/campaign.h"
#include "tests/benchmarks/tuner_sim/comparison.h"
#include "tests/benchmarks/tuner_sim/report.h"
#include "tests/benchmarks/tuner_sim/samplers.h"
#include "tests/benchmarks/tuner_sim/synthetic_spaces.h"
#include "tests/benchmarks/tuner_sim/traces.h"
#include "tests/benchmarks/tuner_sim/warm_start.h"

namespace reprise::tuner_sim {
namespace {

struct Settings {
  std::string spaces;
  bool synthetic = false;
  std::vector<std::string> only;
  std::vector<std::string> held_out = {"convolution_milo/A6000",
                                       "pnpoly/RTX_3090"};
  std::vector<std::string> samplers = {"default"};
  int seeds = 25;
  uint64_t first_seed = 1;
  int batch = 1;
  int noise_samples = 0;
  int jobs = 1;
  bool proposal_time = false;
  bool warm_start = false;
  std::string traces;
  std::string write_traces;
  std::string json;
  std::string command;
};

bool Wanted(const Settings& settings, const std::string& name) {
  if (settings.only.empty()) return true;
  return std::any_of(settings.only.begin(), settings.only.end(),
                     [&](const std::string& part) {
                       return name.find(part) != std::string::npos;
                     });
}

Group GroupOf(const Settings& settings, const std::string& name) {
  return std::find(settings.held_out.begin(), settings.held_out.end(), name) ==
                 settings.held_out.end()
             ? Group::kMeasured
             : Group::kHeldOut;
}

absl::StatusOr<std::vector<TestSpace>> LoadSpaces(const Settings& settings) {
  std::vector<TestSpace> spaces;
  if (!settings.spaces.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> files,
                     ListCacheFiles(settings.spaces));
    for (const std::string& file : files) {
      if (!Wanted(settings, file)) continue;
      ASSIGN_OR_RETURN(auto measured, ReadMeasuredSpace(file));
      const Group group = GroupOf(settings, measured->name());
      spaces.push_back({std::move(measured), group});
    }
  }
  if (settings.synthetic) {
    ASSIGN_OR_RETURN(const auto synthetic, SyntheticSpaces());
    for (const auto& measured : synthetic) {
      if (!Wanted(settings, measured->name())) continue;
      spaces.push_back({measured, Group::kSynthetic});
    }
  }
  if (spaces.empty()) {
    return absl::InvalidArgumentError(
        "got no space; name a directory of cache files with --spaces, or ask "
        "for --synthetic");
  }
  return spaces;
}

std::string Variant(const Settings& settings) {
  return absl::StrCat(
      settings.batch == 1 ? "" : absl::StrCat("batch", settings.batch, "_"),
      settings.noise_samples == 0 ? "" : "noisy_");
}

SimulationOptions OptionsOf(const Settings& settings,
                            const std::string& sampler) {
  SimulationOptions options;
  options.sampler = sampler;
  options.batch = settings.batch;
  options.noise_samples = settings.noise_samples;
  return options;
}

absl::Status RunSamplers(const Settings& settings,
                         const std::vector<TestSpace>& spaces,
                         std::vector<MethodResults>* methods) {
  std::string traces;
  for (const std::string& sampler : settings.samplers) {
    const SimulationOptions options = OptionsOf(settings, sampler);
    std::vector<std::vector<Simulation>> simulations;
    MethodResults& method = methods->emplace_back();
    method.method = sampler;
    ASSIGN_OR_RETURN(
        method.results,
        RunCampaign(spaces, options, settings.seeds, settings.first_seed,
                    settings.jobs, &simulations));
    std::puts(FormatTable(sampler, method.results).c_str());
    std::fflush(stdout);
    for (size_t i = 0; i < spaces.size(); ++i) {
      absl::StrAppend(&traces,
                      FormatTraces(sampler, spaces[i].measured->name(),
                                   settings.first_seed, simulations[i]));
    }
  }
  if (settings.write_traces.empty()) return absl::OkStatus();
  return WriteFileAtomically(settings.write_traces, traces);
}

absl::Status ScoreTraces(const Settings& settings,
                         const std::vector<TestSpace>& spaces,
                         std::vector<MethodResults>* methods) {
  ASSIGN_OR_RETURN(const Traces traces, ReadTraces(settings.traces));
  for (const auto& [name, of_method] : traces) {
    MethodResults method{name, {}};
    for (const TestSpace& space : spaces) {
      const auto found = of_method.find(space.measured->name());
      if (found == of_method.end()) continue;
      method.results.push_back(Summarize(space, found->second));
    }
    if (method.results.empty()) continue;
    std::puts(FormatTable(name, method.results).c_str());
    methods->push_back(std::move(method));
  }
  return absl::OkStatus();
}

absl::Status RunSearches(const Settings& settings,
                         const std::vector<TestSpace>& spaces,
                         std::vector<BenchmarkResult>* metrics) {
  std::vector<MethodResults> methods;
  if (settings.samplers != std::vector<std::string>{"none"}) {
    RETURN_IF_ERROR(RunSamplers(settings, spaces, &methods));
  }
  if (!settings.traces.empty()) {
    RETURN_IF_ERROR(ScoreTraces(settings, spaces, &methods));
  }
  for (const MethodResults& method : methods) {
    for (BenchmarkResult& metric : Metrics(method.method, Variant(settings),
                                           settings.command, method.results)) {
      metrics->push_back(std::move(metric));
    }
  }
  if (methods.size() < 2) return absl::OkStatus();
  std::puts(FormatComparison(methods).c_str());
  for (BenchmarkResult& metric : ComparisonMetrics(settings.command, methods)) {
    metrics->push_back(std::move(metric));
  }
  return absl::OkStatus();
}

// On the largest space that was loaded.
absl::Status TimeProposals(const Settings& settings,
                           const std::vector<TestSpace>& spaces,
                           std::vector<BenchmarkResult>* metrics) {
  const TestSpace& largest = *std::max_element(
      spaces.begin(), spaces.end(), [](const TestSpace& a, const TestSpace& b) {
        return a.measured->size() < b.measured->size();
      });
  for (const std::string& sampler : settings.samplers) {
    for (const int observations : {200, 2000}) {
      ASSIGN_OR_RETURN(const double ms,
                       ProposalMs(*largest.measured, sampler, observations));
      metrics->push_back(Metric(sampler,
                                absl::StrCat("proposal_ms_", observations), ms,
                                "ms", settings.command));
    }
  }
  return absl::OkStatus();
}

absl::Status RunWarm(const Settings& settings,
                     const std::vector<TestSpace>& spaces,
                     std::vector<BenchmarkResult>* metrics) {
  for (const std::string& sampler : settings.samplers) {
    ASSIGN_OR_RETURN(
        const std::vector<WarmStart> pairs,
        RunWarmStarts(spaces, OptionsOf(settings, sampler), settings.seeds,
                      settings.first_seed, settings.jobs));
    std::puts(FormatWarmStarts(sampler, pairs).c_str());
    for (BenchmarkResult& metric :
         WarmStartMetrics(sampler, settings.command, pairs)) {
      metrics->push_back(std::move(metric));
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const Settings& settings) {
  ASSIGN_OR_RETURN(const std::vector<TestSpace> spaces, LoadSpaces(settings));
  std::vector<BenchmarkResult> metrics;
  if (settings.proposal_time) {
    RETURN_IF_ERROR(TimeProposals(settings, spaces, &metrics));
    std::fputs(FormatBenchmarkResults(metrics).c_str(), stdout);
  } else if (settings.warm_start) {
    RETURN_IF_ERROR(RunWarm(settings, spaces, &metrics));
  } else {
    RETURN_IF_ERROR(RunSearches(settings, spaces, &metrics));
  }
  if (settings.json.empty()) return absl::OkStatus();
  return UpdateBenchmarkReport(settings.json, metrics);
}

}  // namespace
}  // namespace reprise::tuner_sim

int main(int argc, char** argv) {
  reprise::tuner_sim::Settings settings;
  CLI::App app("Runs optimizers over measured spaces and scores them");
  app.add_option("--spaces", settings.spaces,
                 "directory of Kernel Tuner caches or T4 files");
  app.add_flag("--synthetic", settings.synthetic, "made-up spaces too");
  app.add_option("--only", settings.only,
                 "spaces whose name holds any of these")
      ->delimiter(',');
  app.add_option("--held-out", settings.held_out,
                 "spaces that are reported apart")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option(
         "--sampler", settings.samplers,
         absl::StrCat("any of ",
                      absl::StrJoin(reprise::tuner_sim::SamplerNames(), ", ")))
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--seeds", settings.seeds, "searches per space")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--first-seed", settings.first_seed, "the others follow it")
      ->capture_default_str();
  app.add_option("--batch", settings.batch, "trials asked for together")
      ->check(CLI::Range(1, 220))
      ->capture_default_str();
  app.add_option("--noise", settings.noise_samples,
                 "recorded samples per trial instead of the recorded time, "
                 "where they agree; 0: the time")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_option("--jobs", settings.jobs, "threads")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_flag("--proposal-time", settings.proposal_time,
               "time proposals instead");
  app.add_flag("--warm-start", settings.warm_start,
               "what another device's five fastest as seeds gain instead");
  app.add_option("--traces", settings.traces,
                 "searches of other programs to score beside");
  app.add_option("--write-traces", settings.write_traces,
                 "keep the searches in this file");
  app.add_option("--json", settings.json,
                 "benchmark report to keep results in");
  CLI11_PARSE(app, argc, argv);
  settings.command = "tuner_sim";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    // Where the spaces and the report lie is the reader's own affair.
    if (i > 1 && std::string(argv[i - 1]) == "--spaces") {
      absl::StrAppend(&settings.command, " DIR");
    } else {
      absl::StrAppend(&settings.command, " ", word);
    }
  }
  const absl::Status status = reprise::tuner_sim::Run(settings);
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "tuner_sim: %s\n", status.ToString());
  return 1;
}
