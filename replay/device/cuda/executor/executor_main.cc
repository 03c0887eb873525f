// The child process of a CUDA device: owns the context of one GPU and serves
// one request at a time until its parent goes or the context is lost.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/executor/channel.h"
#include "replay/device/cuda/executor/executor.h"
#include "replay/device/cuda/executor_client.h"
#include "replay/device/cuda/transfer_window.h"

namespace reprise {
namespace cuda {
namespace {

struct Flags {
  std::string endpoint;
  std::string cuda_home;
  int device = -1;
  int window_fd = -1;
  int life_fd = -1;
  int count = 0;
};

absl::StatusOr<Flags> ParseFlags(int argc, char** argv) {
  Flags flags;
  for (int i = 0; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    const auto& [name, value] = parts;
    int* number = name == "--device"      ? &flags.device
                  : name == "--window-fd" ? &flags.window_fd
                  : name == "--life-fd"   ? &flags.life_fd
                  : name == "--count"     ? &flags.count
                                          : nullptr;
    if (name == "--endpoint") {
      flags.endpoint = value;
    } else if (name == "--cuda-home") {
      flags.cuda_home = value;
    } else if (number == nullptr || !absl::SimpleAtoi(value, number)) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown argument ", argument));
    }
  }
  const bool serves = !flags.endpoint.empty() && flags.device >= 0 &&
                      flags.window_fd >= 0 && flags.life_fd >= 0;
  if (!serves && flags.count == 0) {
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

absl::Status Serve(const Flags& flags) {
  FollowParent(flags.life_fd);
  // A Ctrl-C in the terminal is the parent's to handle.
  signal(SIGINT, SIG_IGN);
  ASSIGN_OR_RETURN(auto channel, cpu::Channel::Connect(flags.endpoint));
  ASSIGN_OR_RETURN(auto output, OutputCapture::Begin());
  ASSIGN_OR_RETURN(auto window, TransferWindow::Open(flags.window_fd));
  std::unique_ptr<Executor> executor;
  auto gpu = Gpu::Create(flags.device);
  const absl::Status no_gpu = gpu.status();
  if (no_gpu.ok()) {
    executor = std::make_unique<Executor>(*std::move(gpu), std::move(output),
                                          std::move(window), flags.cuda_home);
  }
  while (true) {
    v1::CudaExecutorRequest request;
    RETURN_IF_ERROR(channel->Receive(&request));
    v1::CudaExecutorReply reply;
    reply.set_sequence(request.sequence());
    const absl::Status status =
        no_gpu.ok() ? executor->Handle(request, &reply) : no_gpu;
    reply.set_error(std::string(status.message()));
    reply.set_error_code(static_cast<int>(status.code()));
    // Where something lies at a unit's addresses, another process may have
    // them.
    if (!status.ok() && (executor == nullptr || absl::IsAlreadyExists(status) ||
                         executor->ContextIsLost()))
      reply.set_context_lost(true);
    RETURN_IF_ERROR(
        channel->Send(reply, -1, absl::InfiniteDuration()).status());
  }
}

// Prints how many devices there are.
absl::Status PrintCount() {
  ASSIGN_OR_RETURN(const auto driver, Driver::Load());
  int count = 0;
  const CUresult result = driver->Init(0);
  if (result != CUDA_ERROR_NO_DEVICE) {
    RETURN_IF_ERROR(driver->Check(result, "cuInit"));
    CUDA_RETURN_IF_ERROR(*driver, DeviceGetCount, (&count));
  }
  std::printf("%d\n", count);
  return absl::OkStatus();
}

}  // namespace
}  // namespace cuda

int CudaExecutorMain(int argc, char** argv) {
  auto flags = cuda::ParseFlags(argc, argv);
  absl::Status status = flags.status();
  if (status.ok())
    status = flags->count != 0 ? cuda::PrintCount() : cuda::Serve(*flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "cuda-executor: %s\n",
               std::string(status.message()).c_str());
  return flags.ok() ? 1 : 2;
}

}  // namespace reprise
