// Null campaigns: campaigns in which nothing better can be found, since every
// variant comes out as the baseline's own machine code. A sound campaign ends
// with nothing better; a win is a false one.
//
// Everything from proposal to verdict is the campaign's own
// (services/coordinator/local_campaign.h). Only the sources come from here: the
// unit's main file with one more unused function each, so that every one goes
// through the compiler and nothing knows that the code is the same. The
// baseline is the recorded IR, rebuilt.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/compile_pool.h"
#include "replay/device/cpu/cpu_device.h"
#include "replay/device/cuda/cuda_device.h"
#include "replay/engine/clock_watch.h"
#include "replay/engine/evaluator.h"
#include "replay/unit/unit_store.h"
#include "services/coordinator/local_campaign.h"
#include "tests/benchmarks/benchmark_report.h"
#include "tests/benchmarks/equivalent_source.h"

namespace reprise {
namespace {

struct Settings {
  std::string reprise;
  std::string store;
  std::string cuda_home;
  std::vector<std::string> units;
  std::string device = "cuda:0";
  bool warm_l2 = false;
  int workers = 16;
  int campaigns = 20;
  int variants = 200;
  double limit_s = 170;
  uint64_t seed = 1;
  std::string report;
};

// More than the variants take; the number of trials is the limit.
constexpr absl::Duration kBudget = absl::Minutes(4);

// Proposes the main file with an unused function, `count` times.
class EquivalentSources : public evolution::Emitter {
 public:
  EquivalentSources(std::string path, std::string text, int count)
      : path_(std::move(path)), text_(std::move(text)), count_(count) {}
  std::string name() const override { return "equivalent"; }

 private:
  absl::StatusOr<std::vector<evolution::Proposal>> DoAsk(
      const evolution::Archive&, int n) override {
    std::vector<evolution::Proposal> proposals;
    for (; n > 0 && next_ < count_; --n, ++next_) {
      evolution::Proposal& proposal = proposals.emplace_back();
      proposal.description = absl::StrCat("unused function ", next_);
      proposal.files[path_] = WithUnusedFunction(text_, next_);
    }
    return proposals;
  }
  void DoTell(const evolution::Proposal&,
              const evolution::Evaluation&) override {}

  const std::string path_, text_;
  const int count_;
  int next_ = 0;
};

absl::StatusOr<ProposedSources> ProposeEquivalent(const v1::CompileInput& input,
                                                  int count) {
  const v1::CompileTranslationUnit& own = input.translation_units(0);
  for (const v1::CompileFile& file : own.files()) {
    if (file.path() != own.main_file()) continue;
    ProposedSources proposed;
    proposed.emitter =
        std::make_unique<EquivalentSources>(file.path(), file.content(), count);
    return proposed;
  }
  return absl::NotFoundError("the unit does not hold its main file");
}

// What came of all trials so far.
struct Trials {
  std::map<std::string, int> kinds;
  int count = 0;
  int above_1_percent = 0;  // with an interval that says so
  int other_code = 0;
  int64_t discarded_pairs = 0, doubtful_pairs = 0;

  void Add(const v1::Outcome& outcome, const std::string& code_sha256) {
    ++count;
    ++kinds[OutcomeName(outcome.kind())];
    if (outcome.machine_code_sha256() != code_sha256) ++other_code;
    if (outcome.speedup().ci95_low() > 1 && outcome.speedup().ratio() > 1.01)
      ++above_1_percent;
    discarded_pairs += outcome.timing().discarded_pairs_size();
    doubtful_pairs += outcome.timing().doubtful_pairs();
  }
};

class NullCampaigns {
 public:
  explicit NullCampaigns(Settings settings) : settings_(std::move(settings)) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Start());
    const absl::Time start = absl::Now();
    int campaigns = 0;
    for (; campaigns < settings_.campaigns; ++campaigns) {
      if (absl::Now() - start > absl::Seconds(settings_.limit_s)) break;
      RETURN_IF_ERROR(RunOne(campaigns));
      std::fflush(stdout);
    }
    return Conclude(campaigns, absl::ToDoubleSeconds(absl::Now() - start));
  }

 private:
  absl::Status Start();
  absl::StatusOr<std::unique_ptr<Device>> MakeDevice() const;
  absl::Status RunOne(int number);
  absl::Status Conclude(int campaigns, double seconds);

  Settings settings_;
  std::unique_ptr<CompilePool> pool_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<UnitStore> store_;
  Trials trials_;
  int wins_ = 0;
};

absl::StatusOr<std::unique_ptr<Device>> NullCampaigns::MakeDevice() const {
  if (settings_.device == "cpu") {
    CpuDeviceOptions options;
    options.executor_executable = settings_.reprise;
    return CreateCpuDevice(options);
  }
  CudaDeviceOptions options;
  options.executor_executable = settings_.reprise;
  options.warm_l2 = settings_.warm_l2;
  if (!absl::StartsWith(settings_.device, "cuda:") ||
      !absl::SimpleAtoi(settings_.device.substr(5), &options.ordinal)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "got device '", settings_.device, "', expected cpu or cuda:N"));
  }
  return CreateCudaDevice(options);
}

absl::Status NullCampaigns::Start() {
  CompilePool::Options pool;
  pool.executable = settings_.reprise;
  pool.workers = settings_.workers;
  pool.cuda_home = settings_.cuda_home;
  ASSIGN_OR_RETURN(pool_, CompilePool::Create(pool));
  ASSIGN_OR_RETURN(device_, MakeDevice());
  ASSIGN_OR_RETURN(
      store_, UnitStore::Open({.directory = settings_.store, .create = false}));
  if (!settings_.units.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto units, store_->List());
  for (const UnitListing& unit : units) settings_.units.push_back(unit.id);
  return settings_.units.empty()
             ? absl::NotFoundError(settings_.store + " holds no unit")
             : absl::OkStatus();
}

absl::Status NullCampaigns::RunOne(int number) {
  const std::string& id =
      settings_.units[static_cast<size_t>(number) % settings_.units.size()];
  ASSIGN_OR_RETURN(const UnitReader unit, store_->Open(id));
  CampaignOptions options;
  options.budget = kBudget;
  options.max_trials = static_cast<uint64_t>(settings_.variants);
  options.seed = settings_.seed + static_cast<uint64_t>(number);
  options.batch = settings_.workers;
  options.frontends = {"clang"};
  options.compare_equal_code = true;
  options.tune = false;
  options.sources = [this](const UnitReader&, const v1::CompileInput& input,
                           const SourceOptions&) {
    return ProposeEquivalent(input, settings_.variants);
  };
  std::vector<v1::Outcome> outcomes;
  CampaignObserver observer;
  observer.trial = [&](const TrialRecord& trial) {
    outcomes.push_back(trial.outcome);
  };
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(
      const v1::Result result,
      LocalCampaign(unit, *device_, *pool_, options, observer).Run());
  for (const v1::Outcome& outcome : outcomes)
    trials_.Add(outcome, result.code().code_sha256());
  if (result.better()) ++wins_;
  absl::PrintF(
      "campaign %2d  %s  kernel %.4g ms  %d trials  %d measured again  %s  "
      "%.1f s  %s\n",
      number + 1, id, result.baseline_ms(), result.trials(),
      result.remeasurements_size(),
      result.better()
          ? absl::StrFormat("WIN %.4fx", result.outcome().speedup().ratio())
          : "nothing better",
      absl::ToDoubleSeconds(absl::Now() - start),
      ClocksText(result.baseline_clocks()));
  return absl::OkStatus();
}

absl::Status NullCampaigns::Conclude(int campaigns, double seconds) {
  std::string kinds;
  for (const auto& [kind, count] : trials_.kinds)
    absl::StrAppend(&kinds, kinds.empty() ? "" : ", ", count, " ", kind);
  absl::PrintF(
      "%d of %d campaigns, %d trials (%s) in %.1f s: %d wins; %d trials alone "
      "looked more than 1 %% faster; %d of other machine code; %d pairs "
      "measured again, %d doubtful\n",
      campaigns, settings_.campaigns, trials_.count, kinds, seconds, wins_,
      trials_.above_1_percent, trials_.other_code, trials_.discarded_pairs,
      trials_.doubtful_pairs);
  if (trials_.other_code > 0) {
    return absl::InternalError(
        "variants came out as other machine code than the baseline's, so this "
        "was no null campaign");
  }
  if (campaigns == 0) return absl::DeadlineExceededError("no time for any");
  const std::string command = absl::StrCat(
      "null_campaigns --store build/gpu-units --reprise "
      "build/release/bin/reprise --device ",
      settings_.device, settings_.warm_l2 ? " --l2 warm" : "");
  const std::vector<BenchmarkResult> results = {
      {"timing.null_campaigns", static_cast<double>(campaigns), "campaigns",
       "20", command},
      {"timing.null_campaign_wins", static_cast<double>(wins_), "campaigns",
       "<= 1 of 20", command},
      {"timing.null_variants_per_campaign",
       static_cast<double>(trials_.count) / campaigns, "variants", "200",
       command},
      {"timing.null_trials_above_1_percent",
       static_cast<double>(trials_.above_1_percent), "trials", "", command},
      {"timing.null_rejections", static_cast<double>(trials_.kinds["REJECTED"]),
       "trials", "0", command},
      {"timing.null_campaign_s", seconds / campaigns, "s", "", command}};
  absl::PrintF("%s", FormatBenchmarkResults(results));
  if (settings_.report.empty()) return absl::OkStatus();
  return UpdateBenchmarkReport(
      settings_.report, results,
      absl::StrCat(device_->facts().name,
                   settings_.warm_l2 ? ", warm L2" : ""));
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  reprise::InitializeLogging();
  reprise::Settings settings;
  std::string l2 = "cold";
  CLI::App app("runs campaigns in which nothing better can be found");
  app.add_option("--reprise", settings.reprise, "the program whose workers run")
      ->required();
  app.add_option("--store", settings.store, "recorded units")->required();
  app.add_option("--units", settings.units,
                 "which, in turns; default: all of the store")
      ->delimiter(',');
  app.add_option("--device", settings.device, "cuda:N or cpu")
      ->capture_default_str();
  app.add_option("--l2", l2, "of a GPU: cold or warm")
      ->check(CLI::IsMember({"cold", "warm"}))
      ->capture_default_str();
  app.add_option("--cuda-home", settings.cuda_home, "CUDA toolkit");
  app.add_option("--workers", settings.workers, "compile processes")
      ->capture_default_str();
  app.add_option("--campaigns", settings.campaigns)->capture_default_str();
  app.add_option("--variants", settings.variants, "per campaign")
      ->capture_default_str();
  app.add_option("--limit", settings.limit_s,
                 "seconds after which no campaign begins")
      ->capture_default_str();
  app.add_option("--seed", settings.seed)->capture_default_str();
  app.add_option("--report", settings.report,
                 "JSON file that keeps the results");
  CLI11_PARSE(app, argc, argv);
  settings.warm_l2 = l2 == "warm";
  // Workers start elsewhere.
  settings.reprise = std::filesystem::absolute(settings.reprise);
  const absl::Status status = reprise::NullCampaigns(settings).Run();
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "null_campaigns: %s\n", status.ToString());
  return 1;
}
