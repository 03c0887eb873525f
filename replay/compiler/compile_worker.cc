// The child's side of the compile pool.
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "llvm/Support/ErrorHandling.h"
#include "replay/base/fault_point.h"
#include "replay/compiler/compile_pool.h"
#include "replay/compiler/compiler.h"
#include "replay/compiler/progress_page.h"
#include "replay/compiler/worker_process.h"

namespace reprise {
namespace {

struct WorkerOptions {
  std::string endpoint;
  std::string cuda_home;
  int driver_cuda = 0;
  uint64_t parent = 0;
  uint64_t memory_bytes = 0;
  bool test_faults = false;
};

bool ParseArguments(int argc, char** argv, WorkerOptions& options) {
  for (int i = 0; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--test-faults") {
      options.test_faults = true;
      continue;
    }
    if (i + 1 >= argc) return false;
    const char* value = argv[++i];
    if (flag == "--endpoint") {
      options.endpoint = value;
    } else if (flag == "--cuda-home") {
      options.cuda_home = value;
    } else if (flag == "--driver-cuda") {
      if (!absl::SimpleAtoi(value, &options.driver_cuda)) return false;
    } else if (flag == "--parent") {
      if (!absl::SimpleAtoi(value, &options.parent)) return false;
    } else if (flag == "--memory") {
      if (!absl::SimpleAtoi(value, &options.memory_bytes)) return false;
    } else {
      return false;
    }
  }
  return !options.endpoint.empty() && options.parent != 0;
}

// Where there is no memory there is none for a message either.
[[noreturn]] void OutOfMemory() {
  constexpr char kText[] = "out of memory\n";
  const ssize_t ignored = write(STDERR_FILENO, kText, sizeof(kText) - 1);
  (void)ignored;
  _exit(kOutOfMemoryExit);
}

void OutOfMemoryInLlvm(void*, const char*, bool) { OutOfMemory(); }

void LimitMemory(uint64_t bytes) {
  std::set_new_handler(OutOfMemory);
  llvm::install_bad_alloc_error_handler(OutOfMemoryInLlvm);
#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
  // Sanitizers reserve terabytes of addresses.
  if (bytes != 0) {
    const rlimit limit = {bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
  }
#endif
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

// Of this process's address space; 0 where /proc does not say.
uint64_t UsedBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long long pages = 0;
  const int fields = std::fscanf(file, "%llu", &pages);
  std::fclose(file);
  return fields == 1 ? pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

bool Send(void* socket, const v1::CompileReply& reply) {
  std::string bytes = reply.SerializeAsString();
  if (PassFaultPoint("compile-reply") == Fault::kGarbled)
    bytes.resize(bytes.size() / 2);
  return zmq_send(socket, bytes.data(), bytes.size(), 0) >= 0;
}

bool Receive(void* socket, v1::CompileRequest& request) {
  zmq_msg_t message;
  zmq_msg_init(&message);
  int got = 0;
  do {
    got = zmq_msg_recv(&message, socket, 0);
  } while (got < 0 && errno == EINTR);
  const bool ok = got >= 0 && request.ParseFromArray(
                                  zmq_msg_data(&message),
                                  static_cast<int>(zmq_msg_size(&message)));
  zmq_msg_close(&message);
  return ok;
}

// Until the parent goes away, which kills this process.
int Serve(void* socket, uint64_t memory_bytes, Compiler& compiler,
          ProgressPage& progress) {
  // Tells the parent that this worker is there.
  if (!Send(socket, v1::CompileReply())) return 1;
  for (;;) {
    v1::CompileRequest request;
    if (!Receive(socket, request)) return 1;
    // The next job may need as much again.
    if (memory_bytes != 0 && UsedBytes() > memory_bytes / 2) {
      compiler.ForgetAllBut(request.input_key());
      malloc_trim(0);
    }
    if (request.has_input())
      compiler.Remember(std::move(*request.mutable_input()));
    PassFaultPoint("compile");
    v1::CompileReply reply = compiler.Compile(
        request.input_key(), request.variant(), request.target());
    progress.Write("");
    reply.set_sequence(request.sequence());
    if (!Send(socket, reply)) return 1;
  }
}

}  // namespace

int CompileWorkerMain(int argc, char** argv) {
  WorkerOptions options;
  if (!ParseArguments(argc, argv, options)) {
    std::fprintf(stderr,
                 "reprise: compile workers are started by a compile pool\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (static_cast<uint64_t>(getppid()) != options.parent) return 1;
  auto progress = ProgressPage::Open(kProgressFd);
  if (!progress.ok()) {
    std::fprintf(stderr, "reprise: compile worker: %s\n",
                 std::string(progress.status().message()).c_str());
    return 1;
  }
  LimitMemory(options.memory_bytes);
  Compiler::Options compiler_options;
  compiler_options.tools =
      FindToolchain(options.cuda_home, options.driver_cuda);
  compiler_options.note = [page = progress->get()](std::string_view what) {
    page->Write(what);
  };
  compiler_options.test_faults = options.test_faults;
  // The pool's directory, which goes with the pool.
  if (char* directory = get_current_dir_name(); directory != nullptr) {
    compiler_options.scratch_directory =
        absl::StrCat(directory, "/nvidia-", getpid());
    std::free(directory);
  }
  const std::unique_ptr<Compiler> compiler =
      Compiler::Create(std::move(compiler_options));
  void* context = zmq_ctx_new();
  void* socket = zmq_socket(context, ZMQ_PAIR);
  if (socket == nullptr || zmq_connect(socket, options.endpoint.c_str()) != 0) {
    std::fprintf(stderr, "reprise: compile worker: cannot connect to %s: %s\n",
                 options.endpoint.c_str(), zmq_strerror(errno));
    return 1;
  }
  const int exit_code =
      Serve(socket, options.memory_bytes, *compiler, **progress);
  zmq_close(socket);
  zmq_ctx_term(context);
  return exit_code;
}

}  // namespace reprise
