#include "replay/compiler/worker_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "replay/base/file_util.h"
#include "replay/base/process.h"
#include "replay/base/status_macros.h"

extern char** environ;

namespace reprise {
namespace {

constexpr size_t kStderrTailBytes = 4096;
constexpr int64_t kMaxMessageBytes = int64_t{1} << 30;

absl::Status ZmqError(const char* what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", zmq_strerror(errno)));
}

absl::StatusOr<void*> BindSocket(const std::string& endpoint, void* context) {
  void* socket = zmq_socket(context, ZMQ_PAIR);
  if (socket == nullptr) return ZmqError("cannot make a ZeroMQ socket");
  const int linger = 0;
  zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof(linger));
  zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &kMaxMessageBytes,
                 sizeof(kMaxMessageBytes));
  if (zmq_bind(socket, endpoint.c_str()) != 0) {
    const absl::Status status = ZmqError("cannot bind the workers' socket");
    zmq_close(socket);
    return status;
  }
  return socket;
}

// What posix_spawn takes, freed at the end.
struct SpawnSetup {
  SpawnSetup() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

// No signals blocked or ignored, a process group of its own so that Ctrl-C in a
// terminal is the parent's business, and only the descriptors it shall have.
void Prepare(SpawnSetup& setup, const std::string& directory, int stderr_write,
             int progress_fd) {
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&setup.attributes, &none);
  posix_spawnattr_setsigdefault(&setup.attributes, &all);
  posix_spawnattr_setpgroup(&setup.attributes, 0);
  posix_spawnattr_setflags(&setup.attributes, POSIX_SPAWN_SETSIGMASK |
                                                  POSIX_SPAWN_SETSIGDEF |
                                                  POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_addchdir_np(&setup.actions, directory.c_str());
  posix_spawn_file_actions_addopen(&setup.actions, 0, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&setup.actions, 0, 1);
  posix_spawn_file_actions_adddup2(&setup.actions, stderr_write, 2);
  posix_spawn_file_actions_adddup2(&setup.actions, progress_fd, kProgressFd);
  posix_spawn_file_actions_addclosefrom_np(&setup.actions, kProgressFd + 1);
}

// CPU time of a process so far, all threads.
absl::Duration CpuTime(pid_t pid) {
  clockid_t clock;
  timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
    return absl::ZeroDuration();
  return absl::DurationFromTimespec(time);
}

// Whether some thread of the process is running, ready, or waits for a disk.
bool WantsToRun(pid_t pid) {
  const std::string tasks = absl::StrCat("/proc/", pid, "/task");
  DIR* directory = opendir(tasks.c_str());
  if (directory == nullptr) return false;
  bool wants = false;
  while (const dirent* task = readdir(directory)) {
    if (task->d_name[0] == '.') continue;
    const absl::StatusOr<std::string> stat =
        ReadFile(absl::StrCat(tasks, "/", task->d_name, "/stat"));
    // The state follows the name in parentheses.
    const size_t at = stat.ok() ? stat->rfind(") ") : std::string::npos;
    if (at == std::string::npos || at + 2 >= stat->size()) continue;
    const char state = (*stat)[at + 2];
    wants = wants || state == 'R' || state == 'D';
  }
  closedir(directory);
  return wants;
}

// A copy of the descriptor above those that the child gets.
int MoveUp(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 16); }

}  // namespace

WorkerProcess::WorkerProcess(const Options& options, void* socket)
    : options_(options), socket_(socket) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (watch_fd_ >= 0) close(watch_fd_);
  if (stderr_fd_ >= 0) close(stderr_fd_);
  zmq_close(socket_);
}

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(
    const Options& options, void* zmq_context) {
  ASSIGN_OR_RETURN(void* socket, BindSocket(options.endpoint, zmq_context));
  std::unique_ptr<WorkerProcess> worker(new WorkerProcess(options, socket));
  ASSIGN_OR_RETURN(worker->progress_, ProgressPage::Create());
  RETURN_IF_ERROR(worker->Spawn());
  v1::CompileReply hello;
  ASSIGN_OR_RETURN(const std::optional<Loss> loss,
                   worker->Receive(options.start_timeout, hello));
  if (loss) {
    return absl::UnavailableError(absl::StrCat(
        "compile worker ", options.executable, " ", loss->description));
  }
  return worker;
}

absl::Status WorkerProcess::Spawn() {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0)
    return ErrnoToStatus(errno, "cannot make a pipe");
  stderr_fd_ = pipe_fds[0];
  fcntl(stderr_fd_, F_SETFL, O_NONBLOCK);
  const int stderr_write = MoveUp(pipe_fds[1]);
  const int progress = MoveUp(progress_->fd());
  close(pipe_fds[1]);
  absl::Cleanup closer = [&] {
    close(stderr_write);
    close(progress);
  };
  ASSIGN_OR_RETURN(std::vector<std::string> words,
                   ProgramCommand(options_.executable));
  words.insert(words.end(), options_.arguments.begin(),
               options_.arguments.end());
  for (const std::string& word :
       {std::string("--endpoint"), options_.endpoint, std::string("--parent"),
        absl::StrCat(getpid()), std::string("--memory"),
        absl::StrCat(options_.memory_bytes), std::string("--cuda-home"),
        options_.cuda_home, std::string("--driver-cuda"),
        absl::StrCat(options_.driver_cuda)})
    words.push_back(word);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  SpawnSetup setup;
  Prepare(setup, options_.directory, stderr_write, progress);
  const int error = posix_spawn(&pid_, argv[0], &setup.actions,
                                &setup.attributes, argv.data(), environ);
  if (error != 0) {
    pid_ = -1;
    return ErrnoToStatus(
        error, absl::StrCat("cannot start compile worker ", words[0]));
  }
  ASSIGN_OR_RETURN(watch_fd_, WatchChild(pid_));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<WorkerProcess::Loss>> WorkerProcess::Exchange(
    const v1::CompileRequest& request, absl::Duration timeout,
    v1::CompileReply& reply) {
  std::string bytes;
  if (!request.SerializeToString(&bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the compile request is too large (",
                     request.ByteSizeLong(), " bytes, at most 2 GiB)"));
  }
  stderr_tail_.clear();
  // A dead child does not take the message; its death is found on receiving.
  if (zmq_send(socket_, bytes.data(), bytes.size(), ZMQ_DONTWAIT) < 0 &&
      errno != EAGAIN)
    return ZmqError("cannot send to a compile worker");
  return Receive(timeout, reply);
}

bool WorkerProcess::TryReceive(v1::CompileReply& reply, absl::Status& status) {
  zmq_msg_t message;
  zmq_msg_init(&message);
  absl::Cleanup closer = [&] { zmq_msg_close(&message); };
  if (zmq_msg_recv(&message, socket_, ZMQ_DONTWAIT) < 0) {
    if (errno != EAGAIN && errno != EINTR)
      status = ZmqError("cannot receive from a compile worker");
    return false;
  }
  if (!reply.ParseFromArray(zmq_msg_data(&message),
                            static_cast<int>(zmq_msg_size(&message)))) {
    status = absl::InternalError("a compile worker sent no CompileReply");
    return false;
  }
  return true;
}

absl::StatusOr<std::optional<WorkerProcess::Loss>> WorkerProcess::Receive(
    absl::Duration timeout, v1::CompileReply& reply) {
  const absl::Time start = absl::Now();
  const absl::Duration cpu_before = CpuTime(pid_);
  absl::Time deadline = start + timeout;
  for (;;) {
    absl::Status status;
    if (TryReceive(reply, status)) return std::optional<Loss>();
    if (!status.ok()) return status;
    zmq_pollitem_t items[] = {{socket_, 0, ZMQ_POLLIN, 0},
                              {nullptr, watch_fd_, ZMQ_POLLIN, 0},
                              {nullptr, options_.abandon_fd, ZMQ_POLLIN, 0},
                              {nullptr, stderr_fd_, ZMQ_POLLIN, 0}};
    const absl::Time now = absl::Now();
    if (now >= deadline) {
      if (now - start >= kStarvedFactor * timeout ||
          !IsStarved(cpu_before, timeout))
        return std::optional<Loss>(Reap(/*timed_out=*/true, timeout));
      deadline = now + timeout / 10;
    }
    const absl::Duration left = deadline - now;
    // The end of stderr (a child that closed it) would be ready for ever.
    const int watched = stderr_fd_ >= 0 ? 4 : 3;
    const long wait_ms = static_cast<long>(absl::ToInt64Milliseconds(left)) + 1;
    if (zmq_poll(items, watched, wait_ms) < 0 && errno != EINTR)
      return ZmqError("cannot wait for a compile worker");
    if (watched == 4 && items[3].revents != 0) DrainStderr();
    if (items[2].revents != 0)
      return absl::UnavailableError("nobody waits for the compiler any more");
    if (items[1].revents != 0) {
      // A reply may have been sent before the end.
      if (TryReceive(reply, status)) return std::optional<Loss>();
      return std::optional<Loss>(Reap(/*timed_out=*/false, timeout));
    }
  }
}

bool WorkerProcess::IsStarved(absl::Duration cpu_before,
                              absl::Duration limit) const {
  return CpuTime(pid_) - cpu_before < limit && WantsToRun(pid_);
}

void WorkerProcess::DrainStderr() {
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(stderr_fd_, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;  // EAGAIN
    if (got == 0) {
      close(stderr_fd_);
      stderr_fd_ = -1;
      return;
    }
    stderr_tail_.append(buffer, static_cast<size_t>(got));
    if (stderr_tail_.size() > kStderrTailBytes)
      stderr_tail_.erase(0, stderr_tail_.size() - kStderrTailBytes);
  }
}

WorkerProcess::Loss WorkerProcess::Reap(bool timed_out,
                                        absl::Duration timeout) {
  // With the compilers that it runs: the group is the child's until it is
  // reaped.
  if (timed_out) kill(pid_, SIGKILL);
  siginfo_t ended;
  while (waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT) <
             0 &&
         errno == EINTR) {
  }
  kill(-pid_, SIGKILL);
  int wait_status = 0;
  while (waitpid(pid_, &wait_status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (stderr_fd_ >= 0) DrainStderr();
  Loss loss{Loss::Reason::kCrash, ""};
  if (timed_out) {
    loss.reason = Loss::Reason::kTimeout;
    loss.description =
        absl::StrCat("took longer than ", absl::FormatDuration(timeout));
  } else if (WIFEXITED(wait_status) &&
             WEXITSTATUS(wait_status) == kOutOfMemoryExit) {
    loss.reason = Loss::Reason::kMemory;
    loss.description = absl::StrCat("ran out of memory (limit ",
                                    options_.memory_bytes >> 20, " MiB)");
  } else if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    if (signal == SIGKILL) loss.reason = Loss::Reason::kKilled;
    loss.description =
        absl::StrCat(signal == SIGKILL ? "was killed" : "crashed", " (signal ",
                     signal, ", ", strsignal(signal), ")");
  } else {
    loss.description =
        absl::StrCat("ended with exit code ", WEXITSTATUS(wait_status));
  }
  const std::string doing = progress_->Read();
  if (!doing.empty()) absl::StrAppend(&loss.description, " in ", doing);
  if (!stderr_tail_.empty())
    absl::StrAppend(&loss.description, "\n", stderr_tail_);
  return loss;
}

}  // namespace reprise
