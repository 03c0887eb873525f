// The child process of ExecutorClient: maps memory, loads modules, runs
// launches, one request at a time.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "replay/base/fault_point.h"
#include "replay/base/file_util.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/abi.h"
#include "replay/device/cpu/executor/channel.h"
#include "replay/device/cpu/executor/launch_check.h"
#include "replay/device/cpu/executor/module_loader.h"
#include "replay/device/cpu/executor_client.h"
#include "replay/device/cpu/runtime/fault.h"
#include "replay/device/cpu/runtime/grid.h"
#include "replay/device/cpu/runtime/shadow.h"

namespace reprise {
namespace cpu {
namespace {

struct Flags {
  std::string endpoint;
  int memory_fd = -1;
  int fault_fd = -1;
  int life_fd = -1;
  int threads = 0;
};

absl::StatusOr<Flags> ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    const auto& [name, value] = parts;
    int* number = name == "--memory-fd"  ? &flags.memory_fd
                  : name == "--fault-fd" ? &flags.fault_fd
                  : name == "--life-fd"  ? &flags.life_fd
                  : name == "--threads"  ? &flags.threads
                                         : nullptr;
    if (name == "--endpoint") {
      flags.endpoint = value;
    } else if (number == nullptr || !absl::SimpleAtoi(value, number)) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown argument ", argument));
    }
  }
  if (flags.endpoint.empty() || flags.fault_fd < 0 || flags.life_fd < 0) {
    return absl::InvalidArgumentError(
        "an executor is started by its parent, not by hand");
  }
  return flags;
}

// Ends this process when the parent does, even in the middle of a launch.
void FollowParent(int life_fd) {
  std::thread([life_fd] {
    pollfd poll_for = {life_fd, POLLIN, 0};
    while (poll(&poll_for, 1, -1) < 0 && errno == EINTR) {
    }
    _exit(0);
  }).detach();
}

// The line of /proc/self/maps that overlaps [begin, end).
std::string WhatIsAt(uint64_t begin, uint64_t end) {
  auto maps = ReadFile("/proc/self/maps");
  if (!maps.ok()) return "something";
  for (const auto& line : absl::StrSplit(*maps, '\n')) {
    unsigned long low = 0;
    unsigned long high = 0;
    if (std::sscanf(std::string(line).c_str(), "%lx-%lx", &low, &high) == 2 &&
        low < end && begin < high) {
      return std::string(line);
    }
  }
  return "something";
}

class Executor {
 public:
  Executor(Flags flags, std::unique_ptr<ModuleLoader> loader)
      : flags_(std::move(flags)),
        loader_(std::move(loader)),
        grid_(GridRunner::Create(flags_.threads)) {}

  // To be called when the reply is on its way.
  void TidyUp(const v1::ExecutorRequest& request) {
    if (request.has_launch()) grid_->Scrub();
  }

  absl::Status Handle(const v1::ExecutorRequest& request,
                      v1::ExecutorReply* reply) {
    switch (request.request_case()) {
      case v1::ExecutorRequest::kMapMemory:
        return MapMemory(request.map_memory());
      case v1::ExecutorRequest::kLoadModule:
        return loader_->Load(request.load_module());
      case v1::ExecutorRequest::kUnloadModule:
        return loader_->Unload(request.unload_module().module());
      case v1::ExecutorRequest::kLaunch:
        return Launch(request.launch(), reply->mutable_launch());
      default:
        return absl::InvalidArgumentError("the request asks for nothing");
    }
  }

 private:
  absl::Status MapMemory(const v1::MapMemoryRequest& request);
  absl::Status Launch(const v1::LaunchRequest& request, v1::LaunchReply* reply);

  const Flags flags_;
  std::unique_ptr<ModuleLoader> loader_;
  std::unique_ptr<GridRunner> grid_;
  std::vector<v1::MemoryMapping> mappings_;
};

absl::Status Executor::MapMemory(const v1::MapMemoryRequest& request) {
  for (const v1::MemoryMapping& mapping : mappings_) {
    munmap(reinterpret_cast<void*>(mapping.address()), mapping.bytes());
  }
  mappings_.clear();
  for (const v1::MemoryMapping& mapping : request.mappings()) {
    void* wanted = reinterpret_cast<void*>(mapping.address());
    const int protection =
        mapping.writable() ? PROT_READ | PROT_WRITE : PROT_READ;
    void* got = mmap(wanted, mapping.bytes(), protection,
                     MAP_SHARED | MAP_FIXED_NOREPLACE, flags_.memory_fd,
                     static_cast<off_t>(mapping.file_offset()));
    if (got == wanted) {
      mappings_.push_back(mapping);
      continue;
    }
    const int error = errno;
    if (got != MAP_FAILED) munmap(got, mapping.bytes());
    const std::string range = absl::StrCat("0x", absl::Hex(mapping.address()),
                                           " + ", mapping.bytes(), " bytes");
    if (got != MAP_FAILED || error == EEXIST) {
      return absl::AlreadyExistsError(absl::StrCat(
          "cannot map ", range, ": the executor has there ",
          WhatIsAt(mapping.address(), mapping.address() + mapping.bytes())));
    }
    return ErrnoToStatus(error, absl::StrCat("cannot map ", range));
  }
  return absl::OkStatus();
}

absl::Status Executor::Launch(const v1::LaunchRequest& request,
                              v1::LaunchReply* reply) {
  ASSIGN_OR_RETURN(const void* entry,
                   loader_->Find(request.module(), request.entry()));
  ASSIGN_OR_RETURN(
      const void* facts_address,
      loader_->Find(request.module(), request.entry() + kFactsSuffix));
  const auto& facts = *static_cast<const KernelFacts*>(facts_address);
  const std::string problem = CheckLaunch(facts, request);
  if (!problem.empty()) {
    reply->set_kind(v1::OUTCOME_KIND_INVALID_LAUNCH);
    reply->set_diagnostics(problem);
    return absl::OkStatus();
  }
  std::unique_ptr<Shadow> shadow;
  if (request.instrumented()) {
    std::vector<AddressRange> ranges;
    for (const v1::MemoryMapping& mapping : mappings_) {
      ranges.push_back(
          {mapping.address(), mapping.address() + mapping.bytes()});
    }
    ASSIGN_OR_RETURN(shadow, Shadow::Create(std::move(ranges)));
  }
  // The entry may count on alignment and on whole vectors being readable.
  constexpr size_t kAlignment = 64;
  std::vector<char> buffer(request.arguments().size() + 2 * kAlignment);
  char* arguments = reinterpret_cast<char*>(
      (reinterpret_cast<uint64_t>(buffer.data()) + kAlignment - 1) /
      kAlignment * kAlignment);
  std::memcpy(arguments, request.arguments().data(),
              request.arguments().size());
  GridLaunch launch;
  launch.entry = reinterpret_cast<BlockEntry>(const_cast<void*>(entry));
  const v1::LaunchConfig& config = request.launch();
  const v1::Dim3* dims[] = {&config.grid(), &config.block()};
  uint32_t* targets[] = {launch.grid, launch.block};
  for (int i = 0; i < 2; ++i) {
    targets[i][0] = dims[i]->x();
    targets[i][1] = dims[i]->y();
    targets[i][2] = dims[i]->z();
  }
  launch.static_shared_bytes = facts.static_shared_bytes;
  launch.dynamic_shared_bytes = config.dynamic_shared_bytes();
  launch.uses_fibers = facts.uses_fibers != 0;
  launch.cooperative = config.cooperative();
  launch.arguments = arguments;
  launch.poison_shared = request.poison_shared();
  launch.poison_byte = static_cast<uint8_t>(request.poison_byte());
  launch.shadow = shadow.get();
  PassFaultPoint("launch");
  GridResult result = grid_->Run(launch);
  reply->set_kind(v1::OUTCOME_KIND_OK);
  reply->set_duration_ns(result.duration_ns);
  reply->set_printf_output(std::move(result.printf_output));
  if (shadow != nullptr) *reply->mutable_accesses() = shadow->Report();
  return absl::OkStatus();
}

absl::Status Serve(const Flags& flags) {
  void* fault_page = mmap(nullptr, kFaultPageBytes, PROT_READ | PROT_WRITE,
                          MAP_SHARED, flags.fault_fd, 0);
  if (fault_page == MAP_FAILED) {
    return ErrnoToStatus(errno, "cannot map the fault page");
  }
  SetFaultRecord(static_cast<FaultRecord*>(fault_page));
  InstallFaultHandlers();
  FollowParent(flags.life_fd);
  // A Ctrl-C in the terminal is the parent's to handle.
  signal(SIGINT, SIG_IGN);
  ASSIGN_OR_RETURN(auto loader, ModuleLoader::Create());
  Executor executor(flags, std::move(loader));
  ASSIGN_OR_RETURN(auto channel, Channel::Connect(flags.endpoint));
  while (true) {
    v1::ExecutorRequest request;
    RETURN_IF_ERROR(channel->Receive(&request));
    v1::ExecutorReply reply;
    reply.set_sequence(request.sequence());
    const bool stop = request.request_case() == v1::ExecutorRequest::kShutdown;
    if (!stop) {
      const absl::Status status = executor.Handle(request, &reply);
      reply.set_error(std::string(status.message()));
      reply.set_error_code(static_cast<int>(status.code()));
      RETURN_IF_ERROR(
          channel->Send(reply, -1, absl::InfiniteDuration()).status());
      executor.TidyUp(request);
    }
    if (stop) return absl::OkStatus();
  }
}

}  // namespace
}  // namespace cpu

int ExecutorMain(int argc, char** argv) {
  auto flags = cpu::ParseFlags(argc, argv);
  absl::Status status = flags.status();
  if (status.ok()) status = cpu::Serve(*flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "executor: %s\n", std::string(status.message()).c_str());
  return flags.ok() ? 1 : 2;
}

}  // namespace reprise
