// The parent of a recorded application: `reprise record` and `reprise apply`,
// under the CUDA runtime stand-in (no GPU), or on a GPU (gpu_session.h).
//
// Starts the application with libreprise_cudart.so preloaded and serves every
// process of it that uses CUDA: finds the source of its device code, compiles
// it for the host, runs its launches in an executor child, and around chosen
// launches makes units. The application's streams, arguments and environment
// are its own (LD_PRELOAD and the socket's name are added); its exit code and
// signals are passed on.
//
// RunRecorded must be called from a process whose program answers to the verbs
// `executor` and `compile-worker` (or the options name one that does). It
// blocks signals of its thread while it runs; call it from the main thread, one
// call at a time.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_SESSION_H_
#define REPRISE_REPLAY_RECORDER_SESSION_SESSION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/device/device.h"
#include "reprise/v1/node.pb.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

// A launch that runs tuned code instead of the application's (`reprise apply`).
struct Substitution {
  // The kernel's symbol in `code` and, after normalisation, in the application.
  std::string kernel;
  // Only launches of this grid, block, dynamic shared memory and cluster,
  // cooperative or not; others run the application's own code and count as
  // declined.
  v1::LaunchConfig guard;
  v1::CompileReply code;    // host code, or with open_gpu a cubin
  v1::LaunchConfig launch;  // what is launched instead
};

struct RecordOptions {
  // --- What to record. Nothing where `store_directory` is empty.
  std::string store_directory;
  // ECMAScript regular expression, searched for in the kernel's symbol and in
  // its demangled name; empty: every kernel.
  std::string kernel_regex;
  // Per kernel: launches to let pass before the first is recorded, and units to
  // make at most. A launch whose code, shape, arguments and memory equal those
  // of a unit already made is passed over; different data or scalars under the
  // same shape make a different unit.
  uint64_t skip = 0;
  uint64_t count = 1;
  // Of these kernels, the `top` that take most time on the device, found by
  // running the application once before, with its standard output put aside;
  // 0: all.
  int top = 0;
  // Only kernels of these symbols, as the application registers them; empty:
  // all.
  std::set<std::string> kernel_symbols;
  // Time every launch; nothing of the application's standard output is shown.
  bool profile = false;
  // Larger memory images are not recorded, and that is said.
  uint64_t max_unit_bytes = uint64_t{16} << 30;

  // --- Where device code comes from.
  std::string registry_directory;  // empty: BuildRegistry::DefaultDirectory()
  // For applications that were not built with `reprise cc`; may be empty.
  std::string compile_commands;

  // --- The device.
  // Set: the application runs on the GPUs of this machine, and this opens one
  // of them, by its number, to make units of what was captured there. Unset:
  // the application runs on the host, under the stand-in.
  std::function<absl::StatusOr<std::unique_ptr<Device>>(uint32_t ordinal)>
      open_gpu;
  // On a GPU: leave allocations to the driver, for programs that share device
  // memory between processes.
  bool native_allocator = false;
  // On a GPU: how long a recording keeps the application waiting for work
  // before the launch and for the launch; then the kernel is refused.
  absl::Duration stall_timeout = absl::Seconds(20);
  uint64_t arena_base = 0x200000000000;
  uint64_t device_memory_bytes = 0;  // 0: half of this machine's memory
  absl::Duration launch_timeout = absl::Minutes(10);
  int executor_threads = 0;  // 0: all
  int compile_workers = 2;
  std::string cuda_home;  // empty: $CUDA_HOME or /usr/local/cuda

  // --- Apply mode.
  std::vector<Substitution> substitutions;

  // --- Programs; empty: this executable, and the library beside it or in
  // ../lib.
  std::string executable;
  std::vector<std::string> executor_arguments = {"executor"};
  std::vector<std::string> worker_arguments = {"compile-worker"};
  std::string preload_library;
};

struct KernelSeen {
  std::string symbol;        // as the application registers it
  std::string display_name;  // demangled
  uint64_t launches = 0;
  double total_ms = 0;
  bool matched = false;  // by kernel_regex
  // It cannot run here at all; its launches failed and are not counted.
  bool refused = false;
  std::vector<std::string> units;
  // Of these, the ones that the store had before: nothing was added.
  std::vector<std::string> known_units;
  // Why launches that were chosen made no unit, or do not run; empty: nothing
  // happened.
  std::string problem;
};

struct SubstitutionCount {
  std::string kernel;
  uint64_t applied = 0;
  uint64_t declined = 0;
  // How many of the declined for which reason: "they were launched ...".
  std::map<std::string, uint64_t> reasons;
};

// What taking a launch out of an application on a GPU cost it.
struct CaptureCost {
  std::string kernel;
  uint64_t image_bytes = 0;
  absl::Duration copy_time;  // of the prologue, device to host
};

struct RecordResult {
  // The application's, 128 + n where signal n ended it.
  int application_exit_code = 0;
  int application_signal = 0;
  std::vector<std::string> units;   // ids, in the order they were recorded
  std::vector<KernelSeen> kernels;  // in the order they were first launched
  std::vector<SubstitutionCount> substitutions;
  std::vector<CaptureCost> captures;  // on a GPU
  // Why nothing was recorded although something was asked for: names the
  // kernels seen and their launch counts, or the way to a build that can be
  // recorded. Empty: all is well.
  std::string problem;

  // What `reprise record` exits with: the application's code if it failed, else
  // 1 with a problem, else 0.
  int ExitCode() const;
};

// Runs the application to its end. Units are complete in the store when it
// returns, also where a signal ended the application; what still runs then is
// given up. Kernels that cannot run and launches that fail are named on
// standard error as that happens.
//
// Errors: INVALID_ARGUMENT (no command, a bad regular expression), NOT_FOUND
// (the application or the preload library), those of UnitStore::Open and
// CompilePool::Create.
absl::StatusOr<RecordResult> RunRecorded(const RecordOptions& options,
                                         const std::vector<std::string>& argv);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_SESSION_H_
