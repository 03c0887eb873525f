#include "replay/recorder/session/session.h"

#include <signal.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/compile_pool.h"
#include "replay/device/cuda/driver.h"
#include "replay/recorder/preload/protocol.h"
#include "replay/recorder/session/app_process.h"
#include "replay/recorder/session/app_server.h"
#include "replay/recorder/session/connection.h"
#include "replay/recorder/session/gpu_session.h"
#include "replay/recorder/session/preload_library.h"

namespace reprise {
namespace {

constexpr char kLibrary[] = "libreprise_cudart.so";
constexpr uint64_t kGlobalsBytes = uint64_t{4} << 30;
// Address space beside what may be allocated: pinned memory, and room between
// pieces.
constexpr uint64_t kSpareBytes = uint64_t{64} << 30;
constexpr uint64_t kGranularity = 2 << 20;

// Half of what this process may use.
uint64_t DefaultDeviceMemory() {
  struct sysinfo info{};
  sysinfo(&info);
  uint64_t bytes = uint64_t{info.totalram} * info.mem_unit;
  const absl::StatusOr<std::string> limit =
      ReadFile("/sys/fs/cgroup/memory.max");
  uint64_t limit_bytes = 0;
  if (limit.ok() &&
      absl::SimpleAtoi(absl::StripSuffix(*limit, "\n"), &limit_bytes))
    bytes = std::min(bytes, limit_bytes);
  return bytes / 2 / kGranularity * kGranularity;
}

// Everything that serves a run, in the order it is taken down again.
struct Session {
  std::unique_ptr<CompilePool> pool;
  std::unique_ptr<ProgramCatalog> catalog;
  std::unique_ptr<UnitStore> store;
  std::unique_ptr<LaunchLedger> ledger;
  std::unique_ptr<LaunchRecorder> recorder;
  std::unique_ptr<Substitutions> substitutions;
  std::mutex mutex;
  std::set<std::string> static_programs;
  std::atomic<bool> used_cuda = false;
  // The application has ended: nobody waits for launches that still run.
  std::atomic<bool> ended = false;
};

absl::Status SetUp(const RecordOptions& options,
                   const std::vector<std::string>& argv,
                   const ExecutorClient::Options& executor, Session* session) {
  const bool record = !options.store_directory.empty();
  ASSIGN_OR_RETURN(session->ledger,
                   LaunchLedger::Create({record, options.kernel_regex,
                                         options.kernel_symbols, options.skip,
                                         options.count}));
  if (record) {
    ASSIGN_OR_RETURN(session->store,
                     UnitStore::Open({.directory = options.store_directory}));
  }
  ASSIGN_OR_RETURN(session->pool, CreateRecordingPool(options));
  ASSIGN_OR_RETURN(
      session->catalog,
      ProgramCatalog::Create({options.registry_directory,
                              options.compile_commands, options.cuda_home},
                             session->pool.get()));
  if (record) {
    session->recorder = std::make_unique<LaunchRecorder>(
        LaunchRecorder::Options{options.max_unit_bytes, options.launch_timeout,
                                executor, argv},
        session->store.get(), session->ledger.get());
  }
  session->substitutions =
      std::make_unique<Substitutions>(options.substitutions);
  return absl::OkStatus();
}

ConnectionOptions MakeConnectionOptions(const RecordOptions& options,
                                        const ExecutorClient::Options& executor,
                                        Session* session) {
  ConnectionOptions connection;
  connection.device_memory_bytes = options.device_memory_bytes != 0
                                       ? options.device_memory_bytes
                                       : DefaultDeviceMemory();
  connection.device_name = "Reprise cpu";
  AppDevice::Shared& shared = connection.shared;
  shared.arena.base = options.arena_base;
  shared.arena.globals_bytes = kGlobalsBytes;
  shared.arena.bytes =
      kGlobalsBytes + 2 * connection.device_memory_bytes + kSpareBytes;
  shared.arena.bytes -= shared.arena.bytes % kGranularity;
  shared.executor = executor;
  shared.launch_timeout = options.launch_timeout;
  shared.catalog = session->catalog.get();
  shared.ledger = session->ledger.get();
  shared.recorder = session->recorder.get();
  shared.substitutions = session->substitutions.get();
  connection.on_static_runtime = [session](const std::string& path) {
    const std::lock_guard<std::mutex> lock(session->mutex);
    session->static_programs.insert(path);
  };
  connection.on_hello = [session] { session->used_cuda = true; };
  return connection;
}

// What a run without launches most often means.
void ExplainSilence(const Session& session, RecordResult* result) {
  if (!result->kernels.empty()) return;
  if (!session.static_programs.empty()) {
    result->problem = absl::StrCat(
        *session.static_programs.begin(),
        " carries its own CUDA runtime, which nothing can stand in for; link "
        "it with a shared one: nvcc -cudart shared, or clang++ with -lcudart "
        "instead of -lcudart_static");
  } else if (!session.used_cuda && !result->problem.empty()) {
    result->problem =
        "the application never called the CUDA runtime, so it launched no "
        "kernel (a statically linked program cannot be recorded)";
  }
}

// The same options with the kernels to record named.
absl::StatusOr<RecordOptions> ChooseTop(const RecordOptions& options,
                                        RecordResult seen) {
  std::erase_if(seen.kernels, [](const KernelSeen& kernel) {
    return !kernel.matched || kernel.total_ms <= 0;
  });
  if (seen.kernels.empty()) {
    return absl::NotFoundError(
        "no kernel that may be recorded ran while the application was "
        "profiled");
  }
  std::sort(seen.kernels.begin(), seen.kernels.end(),
            [](const KernelSeen& a, const KernelSeen& b) {
              return a.total_ms > b.total_ms;
            });
  if (seen.kernels.size() > static_cast<size_t>(options.top))
    seen.kernels.resize(static_cast<size_t>(options.top));
  RecordOptions chosen = options;
  chosen.top = 0;
  for (const KernelSeen& kernel : seen.kernels)
    chosen.kernel_symbols.insert(kernel.symbol);
  return chosen;
}

absl::StatusOr<RecordResult> RunTop(const RecordOptions& options,
                                    const std::vector<std::string>& argv) {
  RecordOptions profile = options;
  profile.top = 0;
  profile.profile = true;
  profile.store_directory.clear();
  ASSIGN_OR_RETURN(RecordResult seen, RunRecorded(profile, argv));
  constexpr int kStops[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  if (std::find(std::begin(kStops), std::end(kStops),
                seen.application_signal) != std::end(kStops)) {
    // Somebody stopped it: no second run.
    seen.problem = "the application was stopped while it was profiled";
    return seen;
  }
  ASSIGN_OR_RETURN(const RecordOptions chosen,
                   ChooseTop(options, std::move(seen)));
  return RunRecorded(chosen, argv);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CompilePool>> CreateRecordingPool(
    const RecordOptions& options) {
  CompilePool::Options pool;
  pool.executable = options.executable;
  pool.worker_arguments = options.worker_arguments;
  pool.workers = options.compile_workers;
  pool.cuda_home = options.cuda_home;
  pool.driver_cuda = cuda::DriverCudaVersion();
  // An application's own source compiles; on a busy machine that may take long.
  pool.job_timeout = absl::Minutes(10);
  return CompilePool::Create(std::move(pool));
}

absl::StatusOr<RecordResult> RunRecorded(const RecordOptions& options,
                                         const std::vector<std::string>& argv) {
  if (argv.empty() || argv[0].empty())
    return absl::InvalidArgumentError("no application given");
  if (options.top > 0) return RunTop(options, argv);
  if (options.open_gpu) return RunRecordedOnGpu(options, argv);
  ASSIGN_OR_RETURN(const std::string library,
                   FindPreloadLibrary(kLibrary, options.preload_library));
  ExecutorClient::Options executor;
  executor.executable = options.executable;
  executor.arguments = options.executor_arguments;
  executor.threads = options.executor_threads;

  const SignalsForApplication signals;
  Session session;
  executor.stop = &session.ended;
  RETURN_IF_ERROR(SetUp(options, argv, executor, &session));
  ASSIGN_OR_RETURN(const std::unique_ptr<AppServer> server,
                   AppServer::Start([connection = MakeConnectionOptions(
                                         options, executor, &session)](int fd) {
                     ServeConnection(fd, connection);
                   }));
  ASSIGN_OR_RETURN(const ApplicationEnd end,
                   RunApplication(argv,
                                  {{"LD_PRELOAD", PreloadList(library)},
                                   {wire::kSocketVariable, server->path()}},
                                  signals, options.profile));
  session.ended = true;
  server->Stop();

  RecordResult result;
  result.application_exit_code = end.exit_code;
  result.application_signal = end.signal;
  const absl::Status finished =
      session.ledger->Finish(session.store.get(), &result);
  ExplainSilence(session, &result);
  if (!finished.ok()) {
    result.problem = absl::StrCat("units could not be kept: ",
                                  std::string(finished.message()));
  }
  result.substitutions = session.substitutions->Counts();
  return result;
}

}  // namespace reprise
