// Compilation in killable worker processes.
//
// A worker is this executable (or Options::executable) run again with
// Options::worker_arguments; it talks to the pool over ZeroMQ ipc:// in a 0700
// directory (proto/reprise/v1/node.proto). A job that crashes, hangs or eats
// memory costs its worker: the outcome is COMPILE_ERROR with the pass named
// where the worker could note it, a new worker starts, and the next job
// compiles. A worker that somebody else killed says nothing about its job,
// which is tried once more and then INFRASTRUCTURE. Results are cached by
// (input key, variant digest, target). A job goes to the idle worker that last
// built for its input: workers keep what they parsed and precompiled of it.
//
// Thread-safety: Compile may be called from many threads; jobs beyond the
// workers queue.
#ifndef REPRISE_REPLAY_COMPILER_COMPILE_POOL_H_
#define REPRISE_REPLAY_COMPILER_COMPILE_POOL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

class CompilePool {
 public:
  struct Options {
    std::string executable;  // empty: this one
    std::vector<std::string> worker_arguments = {"compile-worker"};
    int workers = 2;
    // For one job, on a machine with time for it: a worker that is kept from
    // running by others gets up to ten times as long.
    absl::Duration job_timeout = absl::Seconds(60);
    uint64_t worker_memory_bytes = 4ull << 30;
    std::string cuda_home;  // headers, libdevice, nvJitLink; empty: $CUDA_HOME
                            // or /usr/local/cuda
    // CUDA version of the driver that loads the machine code, 12040 for 12.4;
    // 0: not known.
    int driver_cuda = 0;
    uint64_t cache_bytes = 256ull << 20;
  };
  struct Statistics {
    uint64_t jobs = 0;
    uint64_t cache_hits = 0;
    uint64_t workers_lost = 0;  // to crashes, timeouts and memory limits
    uint64_t inputs_sent = 0;   // to workers that did not know them
    uint64_t chores = 0;        // workers made ready (Prepare)
  };

  static absl::StatusOr<std::unique_ptr<CompilePool>> Create(Options options);
  virtual ~CompilePool() = default;

  // Blocks until built. `input` is shared by all variants of a unit
  // (input->key() names it). A Status is an error of this machine; a variant
  // that does not compile is a reply of kind COMPILE_ERROR with diagnostics,
  // one that a static guard holds back of kind REJECTED.
  virtual absl::StatusOr<v1::CompileReply> Compile(
      const std::shared_ptr<const v1::CompileInput>& input,
      const v1::Variant& variant, v1::CompileTarget target) = 0;

  // Makes every worker ready for variants of this input, whenever it has
  // nothing else to do: headers precompiled, linker loaded. Does not block.
  virtual void Prepare(const std::shared_ptr<const v1::CompileInput>& input,
                       v1::CompileTarget target) {
    (void)input;
    (void)target;
  }

  // What is being built, and what comes later, is answered with UNAVAILABLE at
  // once: for whoever has to end in time. Does not block.
  virtual void Abandon() {}

  virtual Statistics statistics() const = 0;
};

// main() of a worker process; argv after the verb. Returns the exit code.
int CompileWorkerMain(int argc, char** argv);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_COMPILE_POOL_H_
