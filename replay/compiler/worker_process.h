// A compile worker seen from its pool: an exec'd child joined over a ZeroMQ
// socket, with a time limit for each exchange and what is known about its end.
//
// Not thread-safe, and bound to the thread that starts it: the child asks to be
// killed when that thread ends. Destroying it kills and reaps the child.
#ifndef REPRISE_REPLAY_COMPILER_WORKER_PROCESS_H_
#define REPRISE_REPLAY_COMPILER_WORKER_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/compiler/progress_page.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// Exit code of a worker that could not get memory.
inline constexpr int kOutOfMemoryExit = 86;
// Descriptor of the progress page in a worker.
inline constexpr int kProgressFd = 3;

class WorkerProcess {
 public:
  struct Options {
    std::string executable;  // empty: this one
    std::vector<std::string> arguments;
    std::string endpoint;  // ipc://, not used before
    // Working directory of the child, for passes that write files.
    std::string directory;
    std::string cuda_home;
    int driver_cuda = 0;
    uint64_t memory_bytes = 0;
    absl::Duration start_timeout = absl::Seconds(60);
    // Readable: nobody waits for the child any more, and every exchange ends as
    // UNAVAILABLE. -1: there is always somebody.
    int abandon_fd = -1;
  };

  // How a child was lost.
  struct Loss {
    enum class Reason { kCrash, kTimeout, kMemory, kKilled } reason;
    // "crashed (signal 11, Segmentation fault) in pass gvn on Kernel", and what
    // the child wrote to standard error last.
    std::string description;
  };

  // Starts the child and waits until it answers. `zmq_context` outlives this.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(
      const Options& options, void* zmq_context);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Sends the request and waits for the reply. The time limit is for a machine
  // that has time for the child: a child that wants to run but used less CPU
  // time than `timeout` is given up to kStarvedFactor times as long. A loss
  // means that this object is of no more use. A Status is an error of the
  // connection.
  static constexpr int kStarvedFactor = 10;
  absl::StatusOr<std::optional<Loss>> Exchange(
      const v1::CompileRequest& request, absl::Duration timeout,
      v1::CompileReply& reply);

 private:
  WorkerProcess(const Options& options, void* socket);

  absl::Status Spawn();
  absl::StatusOr<std::optional<Loss>> Receive(absl::Duration timeout,
                                              v1::CompileReply& reply);
  bool TryReceive(v1::CompileReply& reply, absl::Status& status);
  void DrainStderr();
  Loss Reap(bool timed_out, absl::Duration timeout);
  // Whether the child runs or waits for its turn, and used less than `limit` of
  // CPU time since `cpu_before`.
  bool IsStarved(absl::Duration cpu_before, absl::Duration limit) const;

  const Options options_;
  void* const socket_;
  std::unique_ptr<ProgressPage> progress_;
  pid_t pid_ = -1;
  int watch_fd_ = -1;
  int stderr_fd_ = -1;
  std::string stderr_tail_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_WORKER_PROCESS_H_
