// The device as one application process sees it: memory, modules, launches.
// Answers what the stand-in asks (preload/protocol.h), and hands chosen
// launches to the recorder. Not thread-safe: one process, one connection, one
// thread.
//
// Codes returned are cudaError_t values. What the application's user should
// know is said on standard error once per cause.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_APP_DEVICE_H_
#define REPRISE_REPLAY_RECORDER_SESSION_APP_DEVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/recorder/session/arena_memory.h"
#include "replay/recorder/session/host_code.h"
#include "replay/recorder/session/launch_ledger.h"
#include "replay/recorder/session/launch_recorder.h"
#include "replay/recorder/session/program.h"
#include "replay/recorder/session/substitutions.h"

namespace reprise {

// cudaError_t values that the recorder gives.
enum CudaCode : int32_t {
  kCudaSuccess = 0,
  kCudaInvalidValue = 1,
  kCudaMemoryAllocation = 2,
  kCudaInvalidSymbol = 13,
  kCudaInvalidDeviceFunction = 98,
  kCudaNoKernelImage = 209,
  kCudaIllegalAddress = 700,
  kCudaLaunchTimeout = 702,
  kCudaAssert = 710,
  kCudaLaunchFailure = 719,
  kCudaUnknown = 999,
};

class AppDevice {
 public:
  // What all processes of an application share; everything outlives the device.
  struct Shared {
    ArenaMemory::Options arena;
    ExecutorClient::Options executor;
    absl::Duration launch_timeout;
    ProgramCatalog* catalog = nullptr;
    LaunchLedger* ledger = nullptr;
    LaunchRecorder* recorder = nullptr;  // null: nothing is recorded
    Substitutions* substitutions = nullptr;
  };
  static absl::StatusOr<std::unique_ptr<AppDevice>> Create(
      const Shared& shared);

  ArenaMemory& memory() { return *memory_; }

  void RegisterModule(uint64_t module, std::string image,
                      std::vector<std::string> parts);
  void UnregisterModule(uint64_t module);

  struct Function {
    int32_t error = 0;
    uint64_t id = 0;
    const v1::CompiledKernelInfo* info = nullptr;
  };
  Function FindFunction(uint64_t module, const std::string& name);

  struct Variable {
    int32_t error = 0;
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  Variable FindVariable(uint64_t module, const std::string& name);

  struct LaunchResult {
    int32_t error = 0;
    int32_t sticky = 0;
    std::string text;  // printed by the kernel
    absl::Duration recording_time;
  };
  LaunchResult Launch(uint64_t function, const v1::LaunchConfig& launch,
                      const std::string& arguments);

  void Reset();

 private:
  // A program loaded for this process.
  struct Loaded {
    std::shared_ptr<const Program> program;
    SymbolAddresses addresses;
    std::vector<uint64_t> modules;  // the executor's, by object
  };
  struct Module {
    std::string image;
    std::vector<std::string> parts;
    std::string digest;
    std::map<const Program*, std::unique_ptr<Loaded>> loaded;
  };
  struct KnownFunction {
    Loaded* loaded = nullptr;
    std::string name;    // as the application knows it
    std::string symbol;  // as the program does
    std::string digest;
    ProgramKernel kernel;
  };

  explicit AppDevice(const Shared& shared, std::unique_ptr<ArenaMemory> memory);
  absl::StatusOr<Loaded*> Load(Module& module, const std::string& name);
  absl::StatusOr<std::unique_ptr<Loaded>> LoadProgram(
      std::shared_ptr<const Program> program);
  void Release(const Loaded& loaded);
  // Says why a kernel or variable is not to be had; the code for it.
  int32_t Refuse(const Module& module, const std::string& name,
                 const absl::Status& status, int32_t otherwise);
  absl::StatusOr<LaunchReport> Run(const KnownFunction& function,
                                   const v1::LaunchConfig& launch,
                                   const std::string& arguments);
  void Conclude(const KnownFunction& function, const LaunchReport& report,
                LaunchResult* result);
  void SayOnce(const std::string& text);

  const Shared shared_;
  std::unique_ptr<ArenaMemory> memory_;
  HostExecutor executor_;
  std::unique_ptr<ScratchDevice> scratch_;
  std::map<uint64_t, Module> modules_;
  std::vector<KnownFunction> functions_;  // id - 1
  std::map<std::pair<const Substitution*, const Loaded*>, uint64_t>
      substitutes_;  // the executor's modules
  std::set<std::string> said_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_APP_DEVICE_H_
