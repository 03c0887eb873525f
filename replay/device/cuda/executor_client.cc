#include "replay/device/cuda/executor_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "replay/base/file_util.h"
#include "replay/base/log.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/executor/channel.h"
#include "replay/device/cpu/executor/child_process.h"
#include "replay/device/cuda/executor/watchdog.h"

namespace reprise {
namespace {

using cpu::Channel;
using cpu::ChildProcess;

// Of what runs no recorded code; only bounds a hang. Large units take seconds
// to load.
constexpr absl::Duration kServiceTimeout = absl::Minutes(5);
// What a launch may take beside the kernel: restoring, poisoning, another unit
// to be put in place.
constexpr absl::Duration kLaunchSlack = absl::Seconds(20);

// Children that are tried where something lies at a unit's addresses: each
// process has its own mappings elsewhere.
constexpr int kMostLayouts = 5;

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

absl::Status SendDescriptor(int socket, int fd) {
  char byte = 0;
  iovec vector = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  if (sendmsg(socket, &message, MSG_NOSIGNAL) != 1)
    return ErrnoToStatus(errno, "cannot hand a unit to the executor");
  return absl::OkStatus();
}

// After adoption the image holds the whole reference.
void MarkAllChunks(v1::LoadCudaUnitRequest* request) {
  for (v1::CudaUnitRange& range : *request->mutable_ranges()) {
    const uint64_t chunks =
        (range.bytes() + request->reference_chunk_bytes() - 1) /
        request->reference_chunk_bytes();
    range.set_reference_chunks(std::string((chunks + 7) / 8, '\xff'));
  }
}

class ClientImpl : public CudaExecutorClient {
 public:
  ClientImpl(Options options, TemporaryDirectory directory)
      : options_(std::move(options)), directory_(std::move(directory)) {}

  absl::Status Initialize();
  const v1::CudaDeviceFacts& facts() const override { return facts_; }
  absl::StatusOr<uint64_t> LoadUnit(v1::LoadCudaUnitRequest request,
                                    int image_fd) override;
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
  uint64_t restarts() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return starts_ - 1;
  }

 private:
  enum class Result { kReply, kDied, kTimeout };
  struct Unit {
    v1::LoadCudaUnitRequest request;
    Descriptor image;
    bool loaded = false;     // in the present child
    bool has_state = false;  // what a preparation or launch left is still there
    uint64_t last_use = 0;
  };
  struct Module {
    v1::LoadCudaModuleRequest request;
    bool loaded = false;
  };

  absl::Status EnsureChild();
  void LoseChild(bool kill_first);
  absl::StatusOr<Result> Exchange(v1::CudaExecutorRequest& request,
                                  absl::Duration timeout,
                                  v1::CudaExecutorReply* reply);
  absl::StatusOr<Result> TryExchange(v1::CudaExecutorRequest& request,
                                     absl::Duration timeout,
                                     v1::CudaExecutorReply* reply);
  absl::StatusOr<v1::CudaExecutorReply> Serve(v1::CudaExecutorRequest& request);
  absl::StatusOr<Unit*> EnsureUnit(uint64_t id);
  absl::Status SendUnit(Unit& unit);
  absl::Status TakeFromChild(Unit& unit);
  bool UnloadOldest(uint64_t except);
  absl::Status EnsureModule(uint64_t id);
  absl::Status CheckState(uint64_t id);

  const Options options_;
  TemporaryDirectory directory_;
  mutable std::mutex mutex_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<ChildProcess> child_;
  Descriptor image_socket_;
  v1::CudaDeviceFacts facts_;
  uint64_t starts_ = 0;
  uint64_t sequence_ = 0;
  int wait_status_ = 0;
  std::map<uint64_t, Unit> units_;
  std::map<uint64_t, Module> modules_;
  uint64_t next_unit_ = 1;
  uint64_t next_module_ = 1;
};

absl::Status ClientImpl::Initialize() {
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
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return ErrnoToStatus(errno, "cannot make a socket pair");
  image_socket_ = Descriptor(sockets[0]);
  const Descriptor theirs(sockets[1]);
  ChildProcess::Options options;
  options.executable = options_.executable;
  // The file itself, even where it was replaced since this process started.
  if (options.executable.empty()) options.executable = "/proc/self/exe";
  options.arguments = options_.arguments;
  options.arguments.insert(
      options.arguments.end(),
      {absl::StrCat("--endpoint=", endpoint),
       absl::StrCat("--device=", options_.ordinal),
       absl::StrCat("--image-fd=", ChildProcess::kMemoryFd),
       absl::StrCat("--life-fd=", ChildProcess::kLifeFd)});
  options.memory_fd = theirs.get();
  ASSIGN_OR_RETURN(child_, ChildProcess::Start(options));
  return absl::OkStatus();
}

void ClientImpl::LoseChild(bool kill_first) {
  wait_status_ = child_->Reap(kill_first);
  child_ = nullptr;
  channel_ = nullptr;
  for (auto& [id, unit] : units_) unit.loaded = unit.has_state = false;
  for (auto& [id, module] : modules_) module.loaded = false;
}

// A child that cannot be understood is replaced like one that died.
absl::StatusOr<ClientImpl::Result> ClientImpl::Exchange(
    v1::CudaExecutorRequest& request, absl::Duration timeout,
    v1::CudaExecutorReply* reply) {
  absl::StatusOr<Result> result = TryExchange(request, timeout, reply);
  if (!result.ok() && child_ != nullptr) LoseChild(/*kill_first=*/true);
  return result;
}

absl::StatusOr<ClientImpl::Result> ClientImpl::TryExchange(
    v1::CudaExecutorRequest& request, absl::Duration timeout,
    v1::CudaExecutorReply* reply) {
  request.set_sequence(++sequence_);
  const int child = child_->descriptor();
  ASSIGN_OR_RETURN(Channel::Event event,
                   channel_->Send(request, child, kServiceTimeout));
  if (event == Channel::Event::kReady) {
    ASSIGN_OR_RETURN(event, channel_->Wait(child, timeout));
  }
  if (event != Channel::Event::kReady) {
    const bool timed_out = event == Channel::Event::kTimeout;
    LoseChild(/*kill_first=*/timed_out);
    return timed_out ? Result::kTimeout : Result::kDied;
  }
  RETURN_IF_ERROR(channel_->Receive(reply));
  if (reply->sequence() != sequence_) {
    return absl::InternalError(absl::StrCat("got reply ", reply->sequence(),
                                            ", expected ", sequence_));
  }
  if (reply->context_lost()) LoseChild(/*kill_first=*/true);
  return Result::kReply;
}

// A request that runs no recorded code.
absl::StatusOr<v1::CudaExecutorReply> ClientImpl::Serve(
    v1::CudaExecutorRequest& request) {
  v1::CudaExecutorReply reply;
  ASSIGN_OR_RETURN(const Result result,
                   Exchange(request, kServiceTimeout, &reply));
  if (result == Result::kTimeout) {
    return absl::DeadlineExceededError(
        absl::StrCat("the executor did not answer within ",
                     absl::FormatDuration(kServiceTimeout)));
  }
  if (result == Result::kDied) {
    return absl::UnavailableError(absl::StrCat(
        "the executor (",
        options_.executable.empty() ? "this program" : options_.executable, " ",
        options_.arguments.empty() ? "" : options_.arguments[0],
        ") ended with ", cpu::DescribeWaitStatus(wait_status_)));
  }
  if (reply.error_code() != 0) {
    return absl::Status(static_cast<absl::StatusCode>(reply.error_code()),
                        reply.error());
  }
  return reply;
}

absl::Status ClientImpl::SendUnit(Unit& unit) {
  RETURN_IF_ERROR(EnsureChild());
  RETURN_IF_ERROR(SendDescriptor(image_socket_.get(), unit.image.get()));
  v1::CudaExecutorRequest request;
  *request.mutable_load_unit() = unit.request;
  RETURN_IF_ERROR(Serve(request).status());
  unit.loaded = true;
  return absl::OkStatus();
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
  const uint64_t id = unit.request.unit();
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
      if (child_ != nullptr) LoseChild(/*kill_first=*/true);
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

absl::StatusOr<uint64_t> ClientImpl::LoadUnit(v1::LoadCudaUnitRequest request,
                                              int image_fd) {
  std::lock_guard<std::mutex> lock(mutex_);
  const int copy = fcntl(image_fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return ErrnoToStatus(errno, "cannot duplicate a descriptor");
  const uint64_t id = next_unit_++;
  Unit& unit = units_[id];
  request.set_unit(id);
  unit.request = std::move(request);
  unit.image = Descriptor(copy);
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
  found->second.request.set_all_writable(true);
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
  *request.mutable_launch() = launch;
  request.mutable_launch()->set_timeout_ms(absl::ToDoubleMilliseconds(timeout));
  v1::CudaExecutorReply reply;
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(const Result result,
                   Exchange(request, timeout + kLaunchSlack, &reply));
  LaunchReport report;
  report.wall_time = absl::Now() - start;
  const bool timed_out = result == Result::kTimeout ||
                         (result == Result::kDied && WIFEXITED(wait_status_) &&
                          WEXITSTATUS(wait_status_) == cuda::kTimeoutExitCode);
  if (result == Result::kDied && !timed_out) {
    // Device code cannot end a process; the driver or a person did.
    return absl::UnavailableError(absl::StrCat(
        "the executor ended with ", cpu::DescribeWaitStatus(wait_status_)));
  }
  if (result == Result::kReply && reply.error_code() != 0) {
    return absl::Status(static_cast<absl::StatusCode>(reply.error_code()),
                        reply.error());
  }
  if (result == Result::kReply) {
    report.kind = reply.launch().kind();
    report.diagnostics = reply.launch().diagnostics();
    report.device_time = absl::Nanoseconds(reply.launch().duration_ns());
    report.printf_output = reply.launch().printf_output();
    report.accesses = std::move(*reply.mutable_launch()->mutable_accesses());
    unit->has_state = !reply.context_lost();
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
  RETURN_IF_ERROR(Serve(request).status());
  MarkAllChunks(&units_[id].request);
  return absl::OkStatus();
}

absl::StatusOr<v1::CudaMeasurement> ClientImpl::Measure(
    const v1::MeasureCudaRequest& measure) {
  std::lock_guard<std::mutex> lock(mutex_);
  RETURN_IF_ERROR(EnsureUnit(measure.unit()).status());
  v1::CudaExecutorRequest request;
  *request.mutable_measure() = measure;
  ASSIGN_OR_RETURN(const v1::CudaExecutorReply reply, Serve(request));
  return reply.measurement();
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
