#include "replay/device/cuda/executor_client.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/file_util.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/executor/channel.h"
#include "replay/device/cpu/executor/child_process.h"
#include "replay/device/cuda/executor/watchdog.h"
#include "replay/device/cuda/transfer_window.h"
#include "replay/device/cuda/unit_stream.h"

namespace reprise {
namespace {

using cpu::Channel;
using cpu::ChildProcess;

// Of what runs no recorded code; only bounds a hang.
constexpr absl::Duration kServiceTimeout = absl::Minutes(5);
// What a launch may take beside the kernel: restoring, poisoning, another unit
// to be put in place.
constexpr absl::Duration kLaunchSlack = absl::Seconds(20);

// Children that are tried where something lies at a unit's addresses: each
// process has its own mappings elsewhere.
constexpr int kMostLayouts = 5;

std::string CudaHome(const std::string& chosen) {
  if (!chosen.empty()) return chosen;
  const char* variable = std::getenv("CUDA_HOME");
  return variable != nullptr && *variable != '\0' ? variable
                                                  : "/usr/local/cuda";
}

class ClientImpl : public CudaExecutorClient {
 public:
  ClientImpl(Options options, TemporaryDirectory directory)
      : options_(std::move(options)), directory_(std::move(directory)) {}

  absl::Status Initialize();
  const v1::CudaDeviceFacts& facts() const override { return facts_; }
  absl::StatusOr<uint64_t> LoadUnit(
      std::unique_ptr<cuda::UnitImage> image) override;
  void UnloadUnit(uint64_t unit) override;
  void MakeAllWritable(uint64_t unit) override;
  absl::StatusOr<uint64_t> LoadModule(
      v1::LoadCudaModuleRequest request) override;
  void UnloadModule(uint64_t module) override;
  absl::Status Prepare(const v1::PrepareCudaRequest& request) override;
  absl::StatusOr<LaunchReport> Launch(const v1::LaunchCudaRequest& request,
                                      absl::Duration timeout) override;
  absl::StatusOr<v1::CudaVerdict> Verify(
      const v1::VerifyCudaRequest& request) override;
  absl::Status AdoptReference(uint64_t unit) override;
  absl::StatusOr<v1::CudaMeasurement> Measure(
      const v1::MeasureCudaRequest& request) override;
  absl::StatusOr<v1::Counters> Count(const v1::LaunchCudaRequest& request,
                                     absl::Duration timeout) override;
  absl::StatusOr<v1::DeviceCeilings> MeasureCeilings() override;
  uint64_t restarts() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return starts_ - 1;
  }

 private:
  enum class Result { kDone, kDied, kTimeout };
  struct Unit {
    std::unique_ptr<cuda::UnitImage> image;
    bool loaded = false;     // in the present child
    bool has_state = false;  // what a preparation or launch left is still there
    // Of that state, with this tolerance.
    std::optional<std::pair<std::string, v1::CudaVerdict>> verdict;
    uint64_t last_use = 0;
  };
  struct Module {
    v1::LoadCudaModuleRequest request;
    bool loaded = false;
  };

  absl::Status EnsureChild();
  void LoseChild(bool kill_first);
  // A request and its reply. Requests may be sent before earlier ones have
  // their replies; those come in the same order.
  absl::StatusOr<Result> Send(v1::CudaExecutorRequest& request);
  absl::StatusOr<Result> TrySend(v1::CudaExecutorRequest& request);
  absl::StatusOr<Result> Receive(absl::Duration timeout,
                                 v1::CudaExecutorReply* reply);
  absl::StatusOr<Result> TryReceive(absl::Duration timeout,
                                    v1::CudaExecutorReply* reply);
  // The same for requests that run no recorded code.
  absl::Status Post(v1::CudaExecutorRequest& request);
  absl::StatusOr<v1::CudaExecutorReply> Collect();
  absl::StatusOr<v1::CudaExecutorReply> Serve(v1::CudaExecutorRequest& request);
  bool TimedOut(Result result) const;
  absl::Status StatusOf(Result result) const;
  absl::StatusOr<Unit*> EnsureUnit(uint64_t id);
  absl::Status SendUnit(Unit& unit);
  absl::Status StreamUnit(Unit& unit, std::vector<v1::CudaAddressWord>* words);
  absl::StatusOr<std::vector<cuda::AdoptedPiece>> ReadReference(
      uint64_t id, const v1::CudaExecutorReply& adoption);
  absl::Status TakeFromChild(Unit& unit);
  bool UnloadOldest(uint64_t except);
  absl::Status EnsureModule(uint64_t id);
  absl::Status CheckState(uint64_t id);

  const Options options_;
  TemporaryDirectory directory_;
  mutable std::mutex mutex_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<ChildProcess> child_;
  std::unique_ptr<cuda::TransferWindow> window_;
  v1::CudaDeviceFacts facts_;
  uint64_t starts_ = 0;
  uint64_t sequence_ = 0;
  std::deque<uint64_t> awaited_;  // of requests without a reply
  int wait_status_ = 0;
  std::map<uint64_t, Unit> units_;
  std::map<uint64_t, Module> modules_;
  uint64_t next_unit_ = 1;
  uint64_t next_module_ = 1;
};

absl::Status ClientImpl::Initialize() {
  ASSIGN_OR_RETURN(window_, cuda::TransferWindow::Create());
  RETURN_IF_ERROR(EnsureChild());
  v1::CudaExecutorRequest request;
  request.set_describe(true);
  ASSIGN_OR_RETURN(const v1::CudaExecutorReply reply, Serve(request));
  facts_ = reply.facts();
  return absl::OkStatus();
}

absl::Status ClientImpl::EnsureChild() {
  if (child_ != nullptr) return absl::OkStatus();
  const std::string endpoint =
      absl::StrCat("ipc://", directory_.path(), "/executor.", ++starts_);
  ASSIGN_OR_RETURN(channel_, Channel::Bind(endpoint));
  ChildProcess::Options options;
  options.executable = options_.executable;
  options.arguments = options_.arguments;
  options.arguments.insert(
      options.arguments.end(),
      {absl::StrCat("--endpoint=", endpoint),
       absl::StrCat("--device=", options_.ordinal),
       absl::StrCat("--cuda-home=", CudaHome(options_.cuda_home)),
       absl::StrCat("--window-fd=", ChildProcess::kMemoryFd),
       absl::StrCat("--life-fd=", ChildProcess::kLifeFd)});
  options.memory_fd = window_->fd();
  ASSIGN_OR_RETURN(child_, ChildProcess::Start(options));
  return absl::OkStatus();
}

void ClientImpl::LoseChild(bool kill_first) {
  wait_status_ = child_->Reap(kill_first);
  child_ = nullptr;
  channel_ = nullptr;
  awaited_.clear();
  for (auto& [id, unit] : units_) unit.loaded = unit.has_state = false;
  for (auto& [id, module] : modules_) module.loaded = false;
}

// A child that cannot be understood is replaced like one that died.
absl::StatusOr<ClientImpl::Result> ClientImpl::Send(
    v1::CudaExecutorRequest& request) {
  absl::StatusOr<Result> result = TrySend(request);
  if (!result.ok() && child_ != nullptr) LoseChild(/*kill_first=*/true);
  return result;
}

absl::StatusOr<ClientImpl::Result> ClientImpl::Receive(
    absl::Duration timeout, v1::CudaExecutorReply* reply) {
  absl::StatusOr<Result> result = TryReceive(timeout, reply);
  if (!result.ok() && child_ != nullptr) LoseChild(/*kill_first=*/true);
  return result;
}

absl::StatusOr<ClientImpl::Result> ClientImpl::TrySend(
    v1::CudaExecutorRequest& request) {
  if (child_ == nullptr) return Result::kDied;
  request.set_sequence(++sequence_);
  ASSIGN_OR_RETURN(
      const Channel::Event event,
      channel_->Send(request, child_->descriptor(), kServiceTimeout));
  if (event == Channel::Event::kReady) {
    awaited_.push_back(sequence_);
    return Result::kDone;
  }
  const bool timed_out = event == Channel::Event::kTimeout;
  LoseChild(/*kill_first=*/timed_out);
  return timed_out ? Result::kTimeout : Result::kDied;
}

absl::StatusOr<ClientImpl::Result> ClientImpl::TryReceive(
    absl::Duration timeout, v1::CudaExecutorReply* reply) {
  if (child_ == nullptr) return Result::kDied;
  ASSIGN_OR_RETURN(const Channel::Event event,
                   channel_->Wait(child_->descriptor(), timeout));
  if (event != Channel::Event::kReady) {
    const bool timed_out = event == Channel::Event::kTimeout;
    LoseChild(/*kill_first=*/timed_out);
    return timed_out ? Result::kTimeout : Result::kDied;
  }
  RETURN_IF_ERROR(channel_->Receive(reply));
  if (awaited_.empty() || reply->sequence() != awaited_.front()) {
    return absl::InternalError(
        absl::StrCat("got reply ", reply->sequence(), ", expected ",
                     awaited_.empty() ? 0 : awaited_.front()));
  }
  awaited_.pop_front();
  if (reply->context_lost()) LoseChild(/*kill_first=*/true);
  return Result::kDone;
}

// Whether a kernel took too long for the child's watchdog, or for this end.
bool ClientImpl::TimedOut(Result result) const {
  return result == Result::kTimeout ||
         (result == Result::kDied && WIFEXITED(wait_status_) &&
          WEXITSTATUS(wait_status_) == cuda::kTimeoutExitCode);
}

absl::Status ClientImpl::StatusOf(Result result) const {
  if (result == Result::kDone) return absl::OkStatus();
  if (result == Result::kTimeout) {
    return absl::DeadlineExceededError(
        absl::StrCat("the executor did not answer within ",
                     absl::FormatDuration(kServiceTimeout)));
  }
  return absl::UnavailableError(absl::StrCat(
      "the executor (",
      options_.executable.empty() ? "this program" : options_.executable, " ",
      options_.arguments.empty() ? "" : options_.arguments[0], ") ended with ",
      cpu::DescribeWaitStatus(wait_status_)));
}

absl::Status ClientImpl::Post(v1::CudaExecutorRequest& request) {
  ASSIGN_OR_RETURN(const Result result, Send(request));
  return StatusOf(result);
}

absl::StatusOr<v1::CudaExecutorReply> ClientImpl::Collect() {
  v1::CudaExecutorReply reply;
  ASSIGN_OR_RETURN(const Result result, Receive(kServiceTimeout, &reply));
  RETURN_IF_ERROR(StatusOf(result));
  if (reply.error_code() != 0) {
    return absl::Status(static_cast<absl::StatusCode>(reply.error_code()),
                        reply.error());
  }
  return reply;
}

absl::StatusOr<v1::CudaExecutorReply> ClientImpl::Serve(
    v1::CudaExecutorRequest& request) {
  RETURN_IF_ERROR(Post(request));
  return Collect();
}

absl::Status ClientImpl::SendUnit(Unit& unit) {
  RETURN_IF_ERROR(EnsureChild());
  std::vector<v1::CudaAddressWord> words;
  RETURN_IF_ERROR(StreamUnit(unit, &words));
  if (unit.image->AddAddressWords(std::move(words))) {
    // They decide what is writable, which nobody knew.
    RETURN_IF_ERROR(TakeFromChild(unit));
    RETURN_IF_ERROR(StreamUnit(unit, &words));
  }
  unit.loaded = true;
  return absl::OkStatus();
}

absl::Status ClientImpl::StreamUnit(Unit& unit,
                                    std::vector<v1::CudaAddressWord>* words) {
  const cuda::UnitStreamChannel channel = {
      [this](v1::CudaExecutorRequest request) { return Post(request); },
      [this] { return Collect().status(); }};
  const absl::Status status =
      cuda::StreamUnit(*unit.image, *window_, channel, words);
  if (status.ok() || child_ == nullptr) return status;
  // Part of it may be there.
  const absl::Status taken = TakeFromChild(unit);
  if (!taken.ok())
    LOG_WARNING("cannot unload a unit: {}", std::string(taken.message()));
  return status;
}

bool ClientImpl::UnloadOldest(uint64_t except) {
  Unit* oldest = nullptr;
  for (auto& [id, unit] : units_) {
    if (id == except || !unit.loaded) continue;
    if (oldest == nullptr || unit.last_use < oldest->last_use) oldest = &unit;
  }
  if (oldest == nullptr) return false;
  return TakeFromChild(*oldest).ok();
}

// It comes back when it is used.
absl::Status ClientImpl::TakeFromChild(Unit& unit) {
  const uint64_t id = unit.image->request().unit();
  unit.loaded = unit.has_state = false;
  for (auto& [module_id, module] : modules_) {
    if (module.request.unit() == id) module.loaded = false;
  }
  v1::CudaExecutorRequest request;
  request.mutable_unload_unit()->set_unit(id);
  return Serve(request).status();
}

absl::Status AddressesTaken(const absl::Status& status) {
  return absl::FailedPreconditionError(absl::StrCat(
      std::string(status.message()), ", in ", kMostLayouts,
      " processes one after the other; try again, or record with --allocator "
      "arena, whose addresses are free"));
}

absl::StatusOr<ClientImpl::Unit*> ClientImpl::EnsureUnit(uint64_t id) {
  const auto found = units_.find(id);
  if (found == units_.end())
    return absl::NotFoundError(absl::StrCat("unit ", id, " is not loaded"));
  Unit& unit = found->second;
  unit.last_use = ++sequence_;
  int layouts = 1;
  while (!unit.loaded) {
    const absl::Status status = SendUnit(unit);
    if (absl::IsResourceExhausted(status) && UnloadOldest(id)) continue;
    if (absl::IsAlreadyExists(status)) {
      if (layouts++ == kMostLayouts) return AddressesTaken(status);
      continue;
    }
    RETURN_IF_ERROR(status);
  }
  return &unit;
}

absl::Status ClientImpl::EnsureModule(uint64_t id) {
  const auto found = modules_.find(id);
  if (found == modules_.end())
    return absl::NotFoundError(absl::StrCat("module ", id, " is not loaded"));
  if (found->second.loaded) return absl::OkStatus();
  v1::CudaExecutorRequest request;
  *request.mutable_load_module() = found->second.request;
  RETURN_IF_ERROR(Serve(request).status());
  found->second.loaded = true;
  return absl::OkStatus();
}

absl::Status ClientImpl::CheckState(uint64_t id) {
  const auto found = units_.find(id);
  if (found == units_.end())
    return absl::NotFoundError(absl::StrCat("unit ", id, " is not loaded"));
  if (found->second.has_state) return absl::OkStatus();
  return absl::UnavailableError(
      "what the launch wrote is gone: the executor was started again since");
}

absl::StatusOr<uint64_t> ClientImpl::LoadUnit(
    std::unique_ptr<cuda::UnitImage> image) {
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t id = next_unit_++;
  image->set_unit(id);
  units_[id].image = std::move(image);
  const absl::Status status = EnsureUnit(id).status();
  if (!status.ok()) {
    units_.erase(id);
    return status;
  }
  return id;
}

void ClientImpl::UnloadUnit(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = units_.find(id);
  if (found == units_.end()) return;
  const bool loaded = found->second.loaded;
  units_.erase(found);
  std::erase_if(modules_, [id](const auto& module) {
    return module.second.request.unit() == id;
  });
  if (!loaded || child_ == nullptr) return;
  v1::CudaExecutorRequest request;
  request.mutable_unload_unit()->set_unit(id);
  const absl::Status status = Serve(request).status();
  if (!status.ok())
    LOG_WARNING("cannot unload a unit: {}", std::string(status.message()));
}

void ClientImpl::MakeAllWritable(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = units_.find(id);
  if (found == units_.end()) return;
  found->second.image->MakeAllWritable();
  if (!found->second.loaded || child_ == nullptr) return;
  const absl::Status status = TakeFromChild(found->second);
  if (!status.ok())
    LOG_WARNING("cannot unload a unit: {}", std::string(status.message()));
}

absl::StatusOr<uint64_t> ClientImpl::LoadModule(
    v1::LoadCudaModuleRequest request) {
  std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(EnsureUnit(request.unit()).status());
  const uint64_t id = next_module_++;
  request.set_module(id);
  modules_[id].request = std::move(request);
  const absl::Status status = EnsureModule(id);
  if (!status.ok()) {
    modules_.erase(id);
    return status;
  }
  return id;
}

void ClientImpl::UnloadModule(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = modules_.find(id);
  if (found == modules_.end()) return;
  const bool loaded = found->second.loaded;
  modules_.erase(found);
  if (!loaded || child_ == nullptr) return;
  v1::CudaExecutorRequest request;
  request.mutable_unload_module()->set_module(id);
  const absl::Status status = Serve(request).status();
  if (!status.ok())
    LOG_DEBUG("cannot unload module {}: {}", id, std::string(status.message()));
}

absl::Status ClientImpl::Prepare(const v1::PrepareCudaRequest& prepare) {
  std::lock_guard<std::mutex> lock(mutex_);
  ASSIGN_OR_RETURN(Unit * unit, EnsureUnit(prepare.unit()));
  v1::CudaExecutorRequest request;
  *request.mutable_prepare() = prepare;
  unit->verdict.reset();
  RETURN_IF_ERROR(Serve(request).status());
  unit->has_state = true;
  return absl::OkStatus();
}

absl::StatusOr<LaunchReport> ClientImpl::Launch(
    const v1::LaunchCudaRequest& launch, absl::Duration timeout) {
  std::lock_guard<std::mutex> lock(mutex_);
  ASSIGN_OR_RETURN(Unit * unit, EnsureUnit(launch.unit()));
  RETURN_IF_ERROR(EnsureModule(launch.module()));
  v1::CudaExecutorRequest request;
  unit->verdict.reset();
  *request.mutable_launch() = launch;
  request.mutable_launch()->set_timeout_ms(absl::ToDoubleMilliseconds(timeout));
  v1::CudaExecutorReply reply;
  ASSIGN_OR_RETURN(Result result, Send(request));
  if (result == Result::kDone) {
    ASSIGN_OR_RETURN(result, Receive(timeout + kLaunchSlack, &reply));
  }
  LaunchReport report;
  const bool timed_out = TimedOut(result);
  if (result == Result::kDied && !timed_out) {
    // Device code cannot end a process; the driver or a person did.
    return absl::UnavailableError(absl::StrCat(
        "the executor ended with ", cpu::DescribeWaitStatus(wait_status_)));
  }
  if (result == Result::kDone && reply.error_code() != 0) {
    return absl::Status(static_cast<absl::StatusCode>(reply.error_code()),
                        reply.error());
  }
  if (result == Result::kDone) {
    report.kind = reply.launch().kind();
    report.diagnostics = reply.launch().diagnostics();
    report.device_time = absl::Nanoseconds(reply.launch().duration_ns());
    report.wall_time = absl::Nanoseconds(reply.launch().wall_ns());
    if (reply.launch().has_clocks()) report.clocks = reply.launch().clocks();
    report.printf_output = reply.launch().printf_output();
    report.accesses = std::move(*reply.mutable_launch()->mutable_accesses());
    unit->has_state = !reply.context_lost();
    if (reply.has_verdict()) {
      unit->verdict.emplace(launch.verify_tolerance().SerializeAsString(),
                            std::move(*reply.mutable_verdict()));
    }
  }
  if (timed_out) {
    report.kind = v1::OUTCOME_KIND_TIMEOUT;
    report.diagnostics = absl::StrCat("the kernel did not end within ",
                                      absl::FormatDuration(timeout));
  }
  return report;
}

absl::StatusOr<v1::CudaVerdict> ClientImpl::Verify(
    const v1::VerifyCudaRequest& verify) {
  std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(CheckState(verify.unit()));
  const auto& known = units_[verify.unit()].verdict;
  if (known.has_value() &&
      known->first == verify.default_tolerance().SerializeAsString())
    return known->second;
  v1::CudaExecutorRequest request;
  *request.mutable_verify() = verify;
  ASSIGN_OR_RETURN(v1::CudaExecutorReply reply, Serve(request));
  return std::move(*reply.mutable_verdict());
}

absl::Status ClientImpl::AdoptReference(uint64_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(CheckState(id));
  v1::CudaExecutorRequest request;
  request.mutable_adopt_reference()->set_unit(id);
  units_[id].verdict.reset();
  ASSIGN_OR_RETURN(const v1::CudaExecutorReply reply, Serve(request));
  ASSIGN_OR_RETURN(std::vector<cuda::AdoptedPiece> pieces,
                   ReadReference(id, reply));
  return units_[id].image->Adopt(std::move(pieces));
}

// A slot's bytes at a time.
absl::StatusOr<std::vector<cuda::AdoptedPiece>> ClientImpl::ReadReference(
    uint64_t id, const v1::CudaExecutorReply& adoption) {
  std::vector<cuda::AdoptedPiece> pieces;
  v1::ReadCudaReferenceRequest wanted;
  uint64_t used = 0;
  const auto read = [&]() -> absl::Status {
    wanted.set_unit(id);
    v1::CudaExecutorRequest request;
    *request.mutable_read_reference() = wanted;
    RETURN_IF_ERROR(Serve(request).status());
    for (const v1::CudaPiece& piece : wanted.pieces()) {
      pieces.push_back({piece.range(), piece.offset(),
                        std::string(window_->bytes() + piece.window_offset(),
                                    piece.bytes())});
    }
    std::memset(window_->bytes(), 0, used);
    wanted.Clear();
    used = 0;
    return absl::OkStatus();
  };
  for (const v1::CudaPiece& span : adoption.adopted()) {
    for (uint64_t at = 0; at < span.bytes();) {
      v1::CudaPiece* piece = wanted.add_pieces();
      piece->set_range(span.range());
      piece->set_offset(span.offset() + at);
      piece->set_bytes(std::min(span.bytes() - at, cuda::kSlotBytes - used));
      piece->set_window_offset(used);
      used += piece->bytes();
      at += piece->bytes();
      if (used == cuda::kSlotBytes) RETURN_IF_ERROR(read());
    }
  }
  if (used != 0) RETURN_IF_ERROR(read());
  return pieces;
}

absl::StatusOr<v1::CudaMeasurement> ClientImpl::Measure(
    const v1::MeasureCudaRequest& measure) {
  std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(EnsureUnit(measure.unit()).status());
  v1::CudaExecutorRequest request;
  *request.mutable_measure() = measure;
  units_[measure.unit()].verdict.reset();
  ASSIGN_OR_RETURN(const v1::CudaExecutorReply reply, Serve(request));
  return reply.measurement();
}

absl::StatusOr<v1::Counters> ClientImpl::Count(
    const v1::LaunchCudaRequest& launch, absl::Duration timeout) {
  std::lock_guard<std::mutex> lock(mutex_);
  ASSIGN_OR_RETURN(Unit * unit, EnsureUnit(launch.unit()));
  RETURN_IF_ERROR(EnsureModule(launch.module()));
  unit->verdict.reset();
  unit->has_state = false;
  v1::CudaExecutorRequest request;
  *request.mutable_count()->mutable_launch() = launch;
  request.mutable_count()->mutable_launch()->set_timeout_ms(
      absl::ToDoubleMilliseconds(timeout));
  RETURN_IF_ERROR(Post(request));
  v1::CudaExecutorReply reply;
  ASSIGN_OR_RETURN(const Result result,
                   Receive(timeout + kServiceTimeout, &reply));
  if (TimedOut(result)) {
    v1::Counters none;
    none.set_absent(absl::StrCat("the counted launch did not end within ",
                                 absl::FormatDuration(timeout)));
    return none;
  }
  RETURN_IF_ERROR(StatusOf(result));
  if (reply.error_code() != 0) {
    return absl::Status(static_cast<absl::StatusCode>(reply.error_code()),
                        reply.error());
  }
  return std::move(*reply.mutable_counters());
}

absl::StatusOr<v1::DeviceCeilings> ClientImpl::MeasureCeilings() {
  std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(EnsureChild());
  v1::CudaExecutorRequest request;
  request.set_measure_ceilings(true);
  ASSIGN_OR_RETURN(const v1::CudaExecutorReply reply, Serve(request));
  return reply.ceilings();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaExecutorClient>> CudaExecutorClient::Start(
    Options options) {
  ASSIGN_OR_RETURN(TemporaryDirectory directory,
                   TemporaryDirectory::Create("reprise-cuda"));
  auto client =
      std::make_unique<ClientImpl>(std::move(options), std::move(directory));
  RETURN_IF_ERROR(client->Initialize());
  return client;
}

}  // namespace reprise
