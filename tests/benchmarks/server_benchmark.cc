// What a replay server gives its clients: trials per second, latencies, how
// busy its device is, and how soon it serves again after a variant that faults
// or hangs. A client of a server that runs; no test runs it.
//
// Clients ask for one variant at a time, so as many as there are are on their
// way. Variants are default<O3> with a random sequence of passes after it.
// Faulty ones are the kernel's own source with one statement more at the
// beginning of its body.
#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "replay/base/status_macros.h"
#include "reprise/v1/replay.grpc.pb.h"
#include "tests/benchmarks/benchmark_report.h"
#include "tests/benchmarks/random_pipeline.h"

namespace reprise {
namespace {

struct Settings {
  std::string server;
  std::string unit;
  std::string device;
  double seconds = 300;
  int clients = 32;
  int faults = 5;
  uint64_t seed = 1;
  std::string metric = "server";
  std::string report;
};

constexpr int kContenderPairs = 10;
constexpr int kMostMessageBytes = 64 << 20;

absl::Status ToStatus(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

class Bench {
 public:
  explicit Bench(Settings settings) : settings_(std::move(settings)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMostMessageBytes);
    channel_ = grpc::CreateCustomChannel(
        settings_.server, grpc::InsecureChannelCredentials(), arguments);
    replay_ = v1::ReplayService::NewStub(channel_);
    transfer_ = v1::UnitTransferService::NewStub(channel_);
  }

  absl::Status Run() {
    RETURN_IF_ERROR(LoadUnit());
    RETURN_IF_ERROR(MeasureThroughput());
    RETURN_IF_ERROR(MeasureRecovery("recovery",
                                    "*static_cast<volatile int*>(nullptr) = 1;",
                                    v1::OUTCOME_KIND_DEVICE_FAULT, "<= 2"));
    RETURN_IF_ERROR(MeasureRecovery(
        "hang_recovery",
        "for (volatile int forever = 1; forever != 0;) forever = 1;",
        v1::OUTCOME_KIND_TIMEOUT, ""));
    if (settings_.report.empty()) return absl::OkStatus();
    return UpdateBenchmarkReport(settings_.report, results_, device_name_);
  }

 private:
  absl::Status LoadUnit();
  absl::StatusOr<v1::Outcome> Evaluate(const v1::Variant& variant,
                                       bool contender);
  absl::StatusOr<v1::DeviceStatistics> Statistics();
  absl::Status MeasureThroughput();
  absl::StatusOr<v1::Variant> Sabotaged(const std::string& statement);
  absl::Status MeasureRecovery(const std::string& name,
                               const std::string& statement,
                               v1::OutcomeKind expected,
                               const std::string& target);
  void Add(const std::string& name, double value, const std::string& unit,
           const std::string& target) {
    const std::string metric = absl::StrCat(settings_.metric, ".", name);
    results_.push_back(
        {metric, value, unit, target,
         absl::StrCat("server_benchmark --server ADDRESS --unit ",
                      settings_.unit)});
    absl::PrintF("%-36s %10.3f %s\n", metric, value, unit);
    std::fflush(stdout);
  }

  Settings settings_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ReplayService::Stub> replay_;
  std::unique_ptr<v1::UnitTransferService::Stub> transfer_;
  std::string device_name_;
  std::vector<BenchmarkResult> results_;
};

absl::Status Bench::LoadUnit() {
  grpc::ClientContext context;
  v1::LoadUnitRequest request;
  request.set_unit_id(settings_.unit);
  request.set_device(settings_.device);
  request.set_lease_s(3600);
  v1::LoadUnitResponse response;
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(ToStatus(replay_->LoadUnit(&context, request, &response)));
  settings_.unit = response.unit().unit_id();
  settings_.device = response.unit().device();
  device_name_ = settings_.device;
  absl::PrintF("%s on %s: kernel %.4g ms, loaded in %.2f s\n", settings_.unit,
               settings_.device, response.unit().baseline().median_ms(),
               absl::ToDoubleSeconds(absl::Now() - start));
  return absl::OkStatus();
}

// A contender gets ten pairs at least.
absl::StatusOr<v1::Outcome> Bench::Evaluate(const v1::Variant& variant,
                                            bool contender) {
  grpc::ClientContext context;
  v1::EvaluateRequest request;
  request.set_unit_id(settings_.unit);
  request.set_device(settings_.device);
  *request.add_variants() = variant;
  if (contender) request.mutable_sampling()->set_minimum_pairs(kContenderPairs);
  request.set_fresh(true);
  auto reader = replay_->Evaluate(&context, request);
  v1::EvaluateResponse response;
  const bool got = reader->Read(&response);
  RETURN_IF_ERROR(ToStatus(reader->Finish()));
  if (!got) return absl::InternalError("an evaluation came without an answer");
  if (response.code() != 0)
    return absl::Status(static_cast<absl::StatusCode>(response.code()),
                        response.message());
  return response.outcome();
}

absl::StatusOr<v1::DeviceStatistics> Bench::Statistics() {
  grpc::ClientContext context;
  v1::GetStatisticsResponse response;
  RETURN_IF_ERROR(ToStatus(replay_->GetStatistics(&context, {}, &response)));
  for (const v1::DeviceStatistics& device : response.devices()) {
    if (device.device() == settings_.device) return device;
  }
  return absl::NotFoundError("the server has no statistics of its device");
}

absl::Status Bench::MeasureThroughput() {
  ASSIGN_OR_RETURN(const v1::DeviceStatistics before, Statistics());
  std::mutex mutex;
  std::vector<double> latencies_ms;
  std::map<v1::OutcomeKind, int> kinds;
  std::map<v1::OutcomeKind, std::string> first_diagnostics;
  absl::Status failed;
  const absl::Time start = absl::Now();
  const absl::Time end = start + absl::Seconds(settings_.seconds);
  std::vector<std::thread> clients;
  for (int client = 0; client < settings_.clients; ++client) {
    clients.emplace_back([&, client] {
      std::mt19937_64 random(settings_.seed * 1000 +
                             static_cast<uint64_t>(client));
      while (absl::Now() < end) {
        v1::Variant variant;
        variant.set_pipeline(
            absl::StrCat("default<O3>,", RandomPipeline(random, 6)));
        const absl::Time asked = absl::Now();
        const absl::StatusOr<v1::Outcome> outcome = Evaluate(variant, true);
        const std::lock_guard<std::mutex> lock(mutex);
        if (!outcome.ok()) {
          failed = outcome.status();
          return;
        }
        ++kinds[outcome->kind()];
        first_diagnostics.emplace(outcome->kind(), outcome->diagnostics());
        latencies_ms.push_back(absl::ToDoubleMilliseconds(absl::Now() - asked));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  RETURN_IF_ERROR(failed);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  ASSIGN_OR_RETURN(const v1::DeviceStatistics after, Statistics());
  for (const auto& [kind, count] : kinds)
    absl::PrintF("  %d %s  %s\n", count, v1::OutcomeKind_Name(kind),
                 first_diagnostics[kind]);
  Add("trials_per_s", static_cast<double>(latencies_ms.size()) / seconds,
      "trials/s", ">= 50");
  Add("measured_per_s", kinds[v1::OUTCOME_KIND_OK] / seconds, "trials/s", "");
  Add("busy_share", (after.busy_s() - before.busy_s()) / seconds, "share", "");
  Add("starved_share", (after.starved_s() - before.starved_s()) / seconds,
      "share", "");
  Add("outcome_p50_ms", Quantile(latencies_ms, 0.5), "ms", "");
  Add("outcome_p99_ms", Quantile(latencies_ms, 0.99), "ms", "");
  return absl::OkStatus();
}

absl::StatusOr<v1::Variant> Bench::Sabotaged(const std::string& statement) {
  grpc::ClientContext context;
  v1::GetUnitRequest request;
  request.set_unit_id(settings_.unit);
  v1::GetUnitResponse unit;
  RETURN_IF_ERROR(ToStatus(transfer_->GetUnit(&context, request, &unit)));
  const v1::Kernel& kernel = unit.unit().kernel();
  v1::GetChunksRequest chunks;
  for (const auto& file : unit.unit().translation_units(0).files()) {
    if (file.path() == kernel.source_path())
      *chunks.mutable_chunks() = file.content().chunks();
  }
  grpc::ClientContext reading;
  auto reader = transfer_->GetChunks(&reading, chunks);
  std::string text;
  for (v1::GetChunksResponse chunk; reader->Read(&chunk);) text += chunk.data();
  RETURN_IF_ERROR(ToStatus(reader->Finish()));
  size_t at = 0;
  for (uint32_t line = 1; line < kernel.source_line(); ++line)
    at = text.find('\n', at) + 1;
  const size_t body = text.find('{', at);
  if (text.empty() || body == std::string::npos)
    return absl::NotFoundError("the kernel's body was not found");
  v1::Variant variant;
  v1::SourceOverlay* overlay = variant.add_sources();
  overlay->set_path(kernel.source_path());
  overlay->set_content(
      absl::StrCat(text.substr(0, body + 1), statement, text.substr(body + 1)));
  return variant;
}

// From the bad outcome to the next good one.
absl::Status Bench::MeasureRecovery(const std::string& name,
                                    const std::string& statement,
                                    v1::OutcomeKind expected,
                                    const std::string& target) {
  if (settings_.faults == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::Variant bad, Sabotaged(statement));
  std::vector<double> seconds;
  for (int i = 0; i < settings_.faults; ++i) {
    ASSIGN_OR_RETURN(const v1::Outcome outcome, Evaluate(bad, false));
    if (outcome.kind() != expected) {
      return absl::InternalError(
          absl::StrCat("got ", v1::OutcomeKind_Name(outcome.kind()), " (",
                       outcome.diagnostics(), "), expected ",
                       v1::OutcomeKind_Name(expected)));
    }
    const absl::Time fault = absl::Now();
    ASSIGN_OR_RETURN(const v1::Outcome good, Evaluate(v1::Variant(), false));
    if (good.kind() != v1::OUTCOME_KIND_OK)
      return absl::InternalError(good.diagnostics());
    seconds.push_back(absl::ToDoubleSeconds(absl::Now() - fault));
  }
  Add(absl::StrCat(name, "_s"),
      *std::max_element(seconds.begin(), seconds.end()), "s", target);
  return absl::OkStatus();
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  reprise::Settings settings;
  CLI::App app("measures what a replay server gives its clients");
  app.add_option("--server", settings.server, "what `reprise serve` printed")
      ->required();
  app.add_option("--unit", settings.unit, "of its store")->required();
  app.add_option("--device", settings.device, "default: the server's first");
  app.add_option("--seconds", settings.seconds, "of throughput");
  app.add_option("--clients", settings.clients, "variants on their way");
  app.add_option("--faults", settings.faults, "of each kind");
  app.add_option("--seed", settings.seed);
  app.add_option("--metric", settings.metric, "beginning of metrics' names");
  app.add_option("--report", settings.report,
                 "JSON file that keeps the results");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = reprise::Bench(settings).Run();
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "server_benchmark: %s\n", status.ToString());
  return 1;
}
