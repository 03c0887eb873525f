// reprise serve: a replay server over gRPC.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "replay/base/status_macros.h"
#include "replay/device/cuda/cuda_device.h"
#include "services/cli/context.h"
#include "services/replay_server/server.h"

namespace reprise {
namespace {

struct ServeOptions {
  ReplayServer::Options server;
  std::string unit_bytes;
  std::string grace = "30s";
};

// Of this user alone.
std::string DefaultSocket() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string directory = runtime != nullptr && *runtime == '/'
                                    ? absl::StrCat(runtime, "/reprise")
                                    : absl::StrCat("/tmp/reprise-", getuid());
  return absl::StrCat("unix:", directory, "/serve.sock");
}

// "all", or a list of what --device takes.
absl::StatusOr<std::vector<std::string>> DeviceKinds(CliContext* context) {
  const std::string& setting = context->settings.Get("device");
  std::vector<std::string> kinds;
  if (setting == "all") {
    ASSIGN_OR_RETURN(const int gpus, CudaDeviceCount());
    for (int i = 0; i < gpus; ++i) kinds.push_back(absl::StrCat("cuda:", i));
    if (kinds.empty()) return absl::NotFoundError("this machine has no GPU");
    return kinds;
  }
  const std::vector<std::string> words = absl::StrSplit(setting, ',');
  for (const std::string& word : words) {
    RETURN_IF_ERROR(context->settings.Set("device", word, "flag --device"));
    ASSIGN_OR_RETURN(kinds.emplace_back(), context->DeviceKind());
  }
  return kinds;
}

absl::Status Serve(const ServeOptions& options, CliContext* context) {
  ASSIGN_OR_RETURN(const absl::Duration grace, ParseDuration(options.grace));
  ReplayCore::Options core;
  if (!options.unit_bytes.empty()) {
    ASSIGN_OR_RETURN(core.budget_bytes, ParseBytes(options.unit_bytes));
  }
  ASSIGN_OR_RETURN(core.compile_threads, context->CompileWorkers());
  core.evaluator.stopping = SearchStopping();
  ASSIGN_OR_RETURN(const std::unique_ptr<UnitStore> store,
                   context->OpenStore(/*create=*/true));
  ASSIGN_OR_RETURN(const std::vector<std::string> kinds, DeviceKinds(context));
  ASSIGN_OR_RETURN(const std::unique_ptr<CompilePool> pool,
                   context->MakePool());
  std::vector<std::unique_ptr<ReplayCore>> cores;
  std::vector<std::string> names;
  for (const std::string& kind : kinds) {
    ASSIGN_OR_RETURN(std::unique_ptr<Device> device, context->MakeDevice(kind));
    names.push_back(absl::StrCat(kind, " (", device->facts().name, ")"));
    cores.push_back(ReplayCore::Create(core, *store, std::move(device), *pool));
  }
  const std::atomic<bool>* const stop = InterruptFlag();
  SetWorthFinishing("what runs may end");
  ASSIGN_OR_RETURN(
      const std::unique_ptr<ReplayServer> server,
      ReplayServer::Start(options.server, *store, std::move(cores)));
  std::fprintf(stderr, "reprise: serving units of %s on %s\n",
               context->settings.Get("store").c_str(),
               absl::StrJoin(names, ", ").c_str());
  if (!server->metrics_address().empty()) {
    std::fprintf(stderr, "reprise: metrics at http://%s/metrics\n",
                 server->metrics_address().c_str());
  }
  std::printf("%s\n", server->address().c_str());
  std::fflush(stdout);
  while (!stop->load()) absl::SleepFor(absl::Milliseconds(50));
  server->Shutdown(grace);
  return absl::OkStatus();
}

}  // namespace

void AddServeVerb(CLI::App* app, CliContext* context) {
  CLI::App* verb = app->add_subcommand(
      "serve",
      "keep units resident on this machine's devices and judge variants for "
      "gRPC clients (docs/serving.md)");
  auto options = std::make_shared<ServeOptions>();
  options->server.listen = DefaultSocket();
  verb->add_option("--listen", options->server.listen,
                   "where to: unix:/PATH, HOST:PORT (0: any free one). Beyond "
                   "this host with --certs only; a loopback address serves "
                   "every user of this host, who can then run code as you. "
                   "The address is printed on standard output")
      ->capture_default_str();
  verb->add_option("--certs", options->server.certificates,
                   "directory of `reprise certs`, or ca.pem, server.pem and "
                   "server.key of one");
  verb->add_option("--unit-bytes", options->unit_bytes,
                   "budget for memory images of units that are loaded at a "
                   "time, e.g. 64GiB; without it the device's memory decides");
  verb->add_option("--grace", options->grace,
                   "after SIGTERM: how long what runs may take to end")
      ->capture_default_str();
  verb->add_option("--metrics", options->server.metrics,
                   "HOST:PORT of this host where Prometheus finds statistics, "
                   "e.g. 127.0.0.1:9464 (0: any free port)");
  verb->add_flag("--reflection", options->server.reflection,
                 "tell clients on this host what services there are");
  AddL2Option(verb, context);
  AddCommonOptions(verb, context, /*reports=*/false);
  verb->callback([options, context] {
    if (absl::Status status = Serve(*options, context); !status.ok())
      context->Fail(status);
  });
}

}  // namespace reprise
