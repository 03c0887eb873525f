#include "replay/device/cpu/executor_client.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "replay/base/file_util.h"
#include "replay/base/log.h"
#include "replay/base/shared_memory.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/executor/channel.h"
#include "replay/device/cpu/executor/child_process.h"
#include "replay/device/cpu/executor/fault_text.h"
#include "replay/device/cpu/runtime/fault.h"

namespace reprise {
namespace {

using cpu::Channel;
using cpu::ChildProcess;

// Loading a module or mapping memory is never slow; this only bounds a hang.
constexpr absl::Duration kServiceTimeout = absl::Seconds(60);
// How often a wait looks whether it was stopped.
constexpr absl::Duration kStopInterval = absl::Milliseconds(50);

// The page that a dying executor writes its last words to.
class FaultPage {
 public:
  ~FaultPage() {
    if (record_ != nullptr) munmap(record_, cpu::kFaultPageBytes);
    if (fd_ >= 0) close(fd_);
  }
  absl::Status Create() {
    ASSIGN_OR_RETURN(fd_,
                     CreateSharedMemory("reprise-fault", cpu::kFaultPageBytes));
    void* page = mmap(nullptr, cpu::kFaultPageBytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd_, 0);
    if (page == MAP_FAILED) {
      return ErrnoToStatus(errno, "cannot map the fault page");
    }
    record_ = static_cast<cpu::FaultRecord*>(page);
    return absl::OkStatus();
  }
  void Clear() {
    std::memset(static_cast<void*>(record_), 0, cpu::kFaultPageBytes);
  }
  // The child is not trusted to have ended its message.
  const cpu::FaultRecord& record() {
    record_->message[sizeof(record_->message) - 1] = 0;
    return *record_;
  }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  cpu::FaultRecord* record_ = nullptr;
};

class ExecutorClientImpl : public ExecutorClient {
 public:
  explicit ExecutorClientImpl(Options options, TemporaryDirectory directory)
      : options_(std::move(options)), directory_(std::move(directory)) {}
  ~ExecutorClientImpl() override = default;

  absl::Status Initialize();
  absl::Status MapMemory(
      const std::vector<v1::MemoryMapping>& mappings) override;
  absl::Status LoadModule(const v1::LoadModuleRequest& request) override;
  absl::Status UnloadModule(uint64_t module) override;
  absl::StatusOr<LaunchReport> Launch(const v1::LaunchRequest& request,
                                      absl::Duration timeout) override;
  uint64_t restarts() const override { return restarts_; }

 private:
  enum class Result { kReply, kDied, kTimeout };

  bool Stopped() const {
    return options_.stop != nullptr && options_.stop->load();
  }
  absl::StatusOr<Channel::Event> WaitUnlessStopped(int child,
                                                   absl::Duration timeout);
  absl::Status EnsureChild();
  absl::Status StartChild();
  absl::Status SendMappings();
  absl::StatusOr<Result> Exchange(v1::ExecutorRequest& request,
                                  absl::Duration timeout,
                                  v1::ExecutorReply* reply);
  absl::Status Serve(v1::ExecutorRequest& request);
  absl::StatusOr<LaunchReport> Died();

  const Options options_;
  TemporaryDirectory directory_;
  FaultPage fault_page_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<ChildProcess> child_;
  uint64_t starts_ = 0;
  uint64_t restarts_ = 0;
  uint64_t sequence_ = 0;
  int wait_status_ = 0;
  std::vector<v1::MemoryMapping> mappings_;
  // Without `initialize`: memory keeps its contents over a restart.
  std::map<uint64_t, v1::LoadModuleRequest> modules_;
};

absl::Status ExecutorClientImpl::Initialize() {
  RETURN_IF_ERROR(fault_page_.Create());
  return EnsureChild();
}

absl::Status ExecutorClientImpl::StartChild() {
  fault_page_.Clear();
  const std::string endpoint =
      absl::StrCat("ipc://", directory_.path(), "/executor.", ++starts_);
  ASSIGN_OR_RETURN(channel_, Channel::Bind(endpoint));
  ChildProcess::Options options;
  options.executable = options_.executable;
  options.arguments = options_.arguments;
  options.arguments.insert(options.arguments.end(),
                           {absl::StrCat("--endpoint=", endpoint),
                            absl::StrCat("--fault-fd=", ChildProcess::kFaultFd),
                            absl::StrCat("--life-fd=", ChildProcess::kLifeFd),
                            absl::StrCat("--threads=", options_.threads)});
  if (options_.memory_fd >= 0) {
    options.arguments.push_back(
        absl::StrCat("--memory-fd=", ChildProcess::kMemoryFd));
  }
  options.memory_fd = options_.memory_fd;
  options.fault_fd = fault_page_.fd();
  ASSIGN_OR_RETURN(child_, ChildProcess::Start(options));
  return absl::OkStatus();
}

absl::Status ExecutorClientImpl::EnsureChild() {
  if (child_ != nullptr) return absl::OkStatus();
  if (starts_ > 0) ++restarts_;
  RETURN_IF_ERROR(StartChild());
  RETURN_IF_ERROR(SendMappings());
  for (const auto& [id, module] : modules_) {
    v1::ExecutorRequest request;
    *request.mutable_load_module() = module;
    RETURN_IF_ERROR(Serve(request));
  }
  return absl::OkStatus();
}

// A stopped wait ends as one that took too long.
absl::StatusOr<Channel::Event> ExecutorClientImpl::WaitUnlessStopped(
    int child, absl::Duration timeout) {
  if (options_.stop == nullptr) return channel_->Wait(child, timeout);
  const absl::Time deadline = absl::Now() + timeout;
  for (;;) {
    const absl::Duration left =
        std::max(deadline - absl::Now(), absl::ZeroDuration());
    ASSIGN_OR_RETURN(const Channel::Event event,
                     channel_->Wait(child, std::min(left, kStopInterval)));
    if (event != Channel::Event::kTimeout || left <= kStopInterval || Stopped())
      return event;
  }
}

absl::StatusOr<ExecutorClientImpl::Result> ExecutorClientImpl::Exchange(
    v1::ExecutorRequest& request, absl::Duration timeout,
    v1::ExecutorReply* reply) {
  request.set_sequence(++sequence_);
  const int child = child_->descriptor();
  ASSIGN_OR_RETURN(Channel::Event event,
                   channel_->Send(request, child, kServiceTimeout));
  if (event == Channel::Event::kReady) {
    ASSIGN_OR_RETURN(event, WaitUnlessStopped(child, timeout));
  }
  if (event == Channel::Event::kReady) {
    RETURN_IF_ERROR(channel_->Receive(reply));
    if (reply->sequence() != sequence_) {
      return absl::InternalError(absl::StrCat("got reply ", reply->sequence(),
                                              ", expected ", sequence_));
    }
    return Result::kReply;
  }
  const bool timed_out = event == Channel::Event::kTimeout;
  wait_status_ = child_->Reap(/*kill_first=*/timed_out);
  child_ = nullptr;
  channel_ = nullptr;
  return timed_out ? Result::kTimeout : Result::kDied;
}

// A request that runs no device code.
absl::Status ExecutorClientImpl::Serve(v1::ExecutorRequest& request) {
  v1::ExecutorReply reply;
  ASSIGN_OR_RETURN(const Result result,
                   Exchange(request, kServiceTimeout, &reply));
  if (result == Result::kTimeout) {
    return absl::DeadlineExceededError(
        absl::StrCat("the executor did not answer within ",
                     absl::FormatDuration(kServiceTimeout)));
  }
  if (result == Result::kDied) {
    const cpu::FaultRecord& record = fault_page_.record();
    return absl::InternalError(absl::StrCat(
        "the executor (",
        options_.executable.empty() ? "this program" : options_.executable, " ",
        options_.arguments.empty() ? "" : options_.arguments[0],
        ") ended with ", cpu::DescribeWaitStatus(wait_status_),
        record.state == 2
            ? absl::StrCat(": ", cpu::DescribeFault(record, mappings_))
            : ""));
  }
  if (reply.error_code() != 0) {
    return absl::Status(static_cast<absl::StatusCode>(reply.error_code()),
                        reply.error());
  }
  return absl::OkStatus();
}

absl::Status ExecutorClientImpl::SendMappings() {
  v1::ExecutorRequest request;
  auto* map = request.mutable_map_memory();
  for (const v1::MemoryMapping& mapping : mappings_) {
    *map->add_mappings() = mapping;
  }
  return Serve(request);
}

absl::Status ExecutorClientImpl::MapMemory(
    const std::vector<v1::MemoryMapping>& mappings) {
  RETURN_IF_ERROR(EnsureChild());
  mappings_ = mappings;
  const absl::Status status = SendMappings();
  if (!status.ok()) mappings_.clear();
  return status;
}

absl::Status ExecutorClientImpl::LoadModule(
    const v1::LoadModuleRequest& module) {
  RETURN_IF_ERROR(EnsureChild());
  v1::ExecutorRequest request;
  *request.mutable_load_module() = module;
  RETURN_IF_ERROR(Serve(request));
  v1::LoadModuleRequest& kept = modules_[module.module()];
  kept = module;
  kept.clear_initialize();
  return absl::OkStatus();
}

absl::Status ExecutorClientImpl::UnloadModule(uint64_t module) {
  if (modules_.erase(module) == 0) {
    return absl::NotFoundError(
        absl::StrCat("module ", module, " is not loaded"));
  }
  // A child that is gone has forgotten it already.
  if (child_ == nullptr) return absl::OkStatus();
  v1::ExecutorRequest request;
  request.mutable_unload_module()->set_module(module);
  return Serve(request);
}

absl::StatusOr<LaunchReport> ExecutorClientImpl::Died() {
  LaunchReport report;
  report.kind = v1::OUTCOME_KIND_DEVICE_FAULT;
  const cpu::FaultRecord& record = fault_page_.record();
  if (record.state == 2) {
    report.diagnostics = cpu::DescribeFault(record, mappings_);
    return report;
  }
  const int signal = WIFSIGNALED(wait_status_) ? WTERMSIG(wait_status_) : 0;
  const bool device_codes = signal == SIGSEGV || signal == SIGBUS ||
                            signal == SIGFPE || signal == SIGILL ||
                            signal == SIGABRT;
  const std::string text = absl::StrCat("the executor ended with ",
                                        cpu::DescribeWaitStatus(wait_status_));
  if (!device_codes) {
    // Not what device code does: out of memory, or a person.
    return absl::UnavailableError(text);
  }
  report.diagnostics = text;
  return report;
}

absl::StatusOr<LaunchReport> ExecutorClientImpl::Launch(
    const v1::LaunchRequest& launch, absl::Duration timeout) {
  if (Stopped()) return absl::CancelledError("stopped before the launch");
  RETURN_IF_ERROR(EnsureChild());
  v1::ExecutorRequest request;
  *request.mutable_launch() = launch;
  v1::ExecutorReply reply;
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(const Result result, Exchange(request, timeout, &reply));
  LaunchReport report;
  if (result == Result::kDied) {
    ASSIGN_OR_RETURN(report, Died());
  } else if (result == Result::kTimeout && Stopped()) {
    return absl::CancelledError("stopped while the kernel ran");
  } else if (result == Result::kTimeout) {
    report.kind = v1::OUTCOME_KIND_TIMEOUT;
    report.diagnostics = absl::StrCat("the kernel did not end within ",
                                      absl::FormatDuration(timeout));
  } else if (reply.error_code() != 0) {
    return absl::Status(static_cast<absl::StatusCode>(reply.error_code()),
                        reply.error());
  } else {
    report.kind = reply.launch().kind();
    report.diagnostics = reply.launch().diagnostics();
    report.device_time = absl::Nanoseconds(reply.launch().duration_ns());
    report.printf_output = reply.launch().printf_output();
    report.accesses = std::move(*reply.mutable_launch()->mutable_accesses());
  }
  report.wall_time = absl::Now() - start;
  return report;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExecutorClient>> ExecutorClient::Start(
    Options options) {
  ASSIGN_OR_RETURN(TemporaryDirectory directory,
                   TemporaryDirectory::Create("reprise-executor"));
  auto client = std::make_unique<ExecutorClientImpl>(std::move(options),
                                                     std::move(directory));
  RETURN_IF_ERROR(client->Initialize());
  return client;
}

}  // namespace reprise
