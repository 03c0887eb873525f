#include "replay/recorder/session/gpu_session.h"

#include <atomic>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/compile_pool.h"
#include "replay/device/device.h"
#include "replay/recorder/driver/protocol.h"
#include "replay/recorder/session/app_process.h"
#include "replay/recorder/session/app_server.h"
#include "replay/recorder/session/driver_connection.h"
#include "replay/recorder/session/preload_library.h"
#include "replay/recorder/session/recording_finisher.h"

namespace reprise {
namespace {

constexpr char kLibrary[] = "libreprise_cuda.so";
// Of address space, for each device.
constexpr uint64_t kArenaStride = uint64_t{1} << 40;

// Everything that serves a run, in the order it is taken down again.
struct GpuSession {
  std::unique_ptr<CompilePool> pool;
  std::unique_ptr<ProgramCatalog> catalog;
  std::unique_ptr<UnitStore> store;
  std::unique_ptr<LaunchLedger> ledger;
  std::unique_ptr<Substitutions> substitutions;
  CaptureList captures;
  std::atomic<bool> used_cuda = false;
};

absl::Status SetUp(const RecordOptions& options, GpuSession* session) {
  const bool record = !options.store_directory.empty();
  ASSIGN_OR_RETURN(session->ledger,
                   LaunchLedger::Create({record, options.kernel_regex,
                                         options.kernel_symbols, options.skip,
                                         options.count}));
  if (record) {
    ASSIGN_OR_RETURN(session->store,
                     UnitStore::Open({.directory = options.store_directory}));
  }
  session->substitutions =
      std::make_unique<Substitutions>(options.substitutions);
  ASSIGN_OR_RETURN(session->pool, CreateRecordingPool(options));
  ProgramCatalog::Options catalog;
  catalog.registry_directory = options.registry_directory;
  catalog.compile_commands = options.compile_commands;
  catalog.cuda_home = options.cuda_home;
  catalog.host_code = false;
  ASSIGN_OR_RETURN(session->catalog,
                   ProgramCatalog::Create(catalog, session->pool.get()));
  return absl::OkStatus();
}

DriverConnectionOptions MakeConnectionOptions(const RecordOptions& options,
                                              GpuSession* session) {
  DriverConnectionOptions connection;
  connection.arena_base = options.arena_base;
  connection.arena_stride = kArenaStride;
  connection.max_unit_bytes = options.max_unit_bytes;
  connection.patience = options.stall_timeout;
  if (options.profile) connection.flags |= driver_wire::kFlagProfile;
  if (options.native_allocator)
    connection.flags |= driver_wire::kFlagNativeAllocator;
  connection.catalog = session->catalog.get();
  connection.ledger = session->ledger.get();
  connection.substitutions = session->substitutions.get();
  connection.captures = &session->captures;
  connection.on_hello = [session] { session->used_cuda = true; };
  return connection;
}

// The devices that captures come from, opened when first needed.
class Finishers {
 public:
  Finishers(const RecordOptions& options, const std::vector<std::string>& argv,
            GpuSession* session)
      : options_(options), session_(session) {
    finisher_.max_unit_bytes = options.max_unit_bytes;
    finisher_.launch_timeout = options.launch_timeout;
    finisher_.command = argv;
  }

  absl::Status Finish(const CapturedLaunch& captured) {
    Finisher& finisher = finishers_[captured.device];
    if (finisher.device == nullptr) {
      ASSIGN_OR_RETURN(finisher.device, options_.open_gpu(captured.device));
      finisher.finisher = std::make_unique<RecordingFinisher>(
          finisher_, finisher.device.get(), session_->store.get(),
          session_->ledger.get());
    }
    return finisher.finisher->Finish(captured);
  }

 private:
  struct Finisher {
    std::unique_ptr<Device> device;
    std::unique_ptr<RecordingFinisher> finisher;
  };

  const RecordOptions& options_;
  GpuSession* const session_;
  RecordingFinisher::Options finisher_;
  std::map<uint32_t, Finisher> finishers_;
};

void FinishCaptures(const RecordOptions& options,
                    const std::vector<std::string>& argv, GpuSession* session,
                    RecordResult* result) {
  Finishers finishers(options, argv, session);
  for (CapturedLaunch& taken : session->captures.Take()) {
    // Its memory goes as soon as it is a unit.
    const CapturedLaunch captured = std::move(taken);
    result->captures.push_back({captured.kernel.symbol(),
                                captured.memory->image_bytes(),
                                captured.copy_time});
    const absl::Status status = finishers.Finish(captured);
    if (!status.ok()) {
      session->ledger->NoteProblem(captured.ticket,
                                   std::string(status.message()));
    } else if (!captured.sources.empty()) {
      session->ledger->NoteProblem(
          captured.ticket,
          absl::StrCat("recorded without IR: only NVIDIA's compiler can build "
                       "its variants (front end nvrtc), and passes cannot be "
                       "tuned: ",
                       captured.no_source));
    } else if (captured.program == nullptr) {
      session->ledger->NoteProblem(
          captured.ticket,
          absl::StrCat("recorded as machine code only, which replays but "
                       "cannot be remixed: ",
                       captured.no_source));
    }
  }
}

}  // namespace

absl::StatusOr<RecordResult> RunRecordedOnGpu(
    const RecordOptions& options, const std::vector<std::string>& argv) {
  ASSIGN_OR_RETURN(const std::string library,
                   FindPreloadLibrary(kLibrary, options.preload_library));
  GpuSession session;
  ApplicationEnd end;
  {
    const SignalsForApplication signals;
    RETURN_IF_ERROR(SetUp(options, &session));
    ASSIGN_OR_RETURN(const std::unique_ptr<AppServer> server,
                     AppServer::Start([connection = MakeConnectionOptions(
                                           options, &session)](int fd) {
                       ServeDriverConnection(fd, connection);
                     }));
    ASSIGN_OR_RETURN(
        end, RunApplication(argv,
                            {{"LD_PRELOAD", PreloadList(library)},
                             {driver_wire::kSocketVariable, server->path()}},
                            signals, options.profile));
    server->Stop();
  }
  RecordResult result;
  FinishCaptures(options, argv, &session, &result);
  result.application_exit_code = end.exit_code;
  result.application_signal = end.signal;
  result.substitutions = session.substitutions->Counts();
  const absl::Status finished =
      session.ledger->Finish(session.store.get(), &result);
  if (!session.used_cuda && result.kernels.empty()) {
    result.problem =
        "the application never called the CUDA driver, so it launched no "
        "kernel (a statically linked program cannot be recorded, nor one in "
        "which "
        "another preloaded library answers for the driver)";
  }
  if (!finished.ok()) {
    result.problem = absl::StrCat("units could not be kept: ",
                                  std::string(finished.message()));
  }
  return result;
}

}  // namespace reprise
