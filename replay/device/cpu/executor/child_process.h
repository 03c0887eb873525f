// The process of one executor: started, watched, ended.
//
// Its life is tied to a pipe whose other end it watches, so that it ends with
// this process however that ends. Not thread-safe; destroying it kills it.
#ifndef REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_CHILD_PROCESS_H_
#define REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_CHILD_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise::cpu {

class ChildProcess {
 public:
  struct Options {
    std::string executable;              // empty: this program
    std::vector<std::string> arguments;  // behind the name
    // Descriptors of this process that the child gets as kMemoryFd and
    // kFaultFd; -1: none.
    int memory_fd = -1;
    int fault_fd = -1;
  };
  // The numbers that descriptors have in the child.
  static constexpr int kMemoryFd = 200;
  static constexpr int kFaultFd = 201;
  static constexpr int kLifeFd = 202;

  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Readable once the child has ended.
  int descriptor() const { return watch_fd_; }
  // Kills the child if it still runs and returns its wait status.
  int Reap(bool kill_first);

 private:
  ChildProcess() = default;
  pid_t pid_ = -1;
  int watch_fd_ = -1;
  int life_fd_ = -1;
};

// "exit code 3" or "signal 11 (Segmentation fault)".
std::string DescribeWaitStatus(int status);

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_CHILD_PROCESS_H_
