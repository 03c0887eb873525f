// The executor's state: units, modules, and what is asked of them. One request
// at a time, from one thread.
//
// At most one unit is active, that is, has its memory mapped; a request for
// another one takes its place.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_EXECUTOR_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_EXECUTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/device/cuda/executor/clock_reader.h"
#include "replay/device/cuda/executor/gpu.h"
#include "replay/device/cuda/executor/launch_counter.h"
#include "replay/device/cuda/executor/launcher.h"
#include "replay/device/cuda/executor/module.h"
#include "replay/device/cuda/executor/output_capture.h"
#include "replay/device/cuda/executor/registered_window.h"
#include "replay/device/cuda/executor/unit_memory.h"
#include "replay/device/cuda/executor/watchdog.h"
#include "reprise/v1/cuda_executor.pb.h"

namespace reprise::cuda {

class Executor {
 public:
  Executor(std::unique_ptr<Gpu> gpu, std::unique_ptr<OutputCapture> output,
           std::unique_ptr<TransferWindow> window, std::string cuda_home)
      : gpu_(std::move(gpu)),
        output_(std::move(output)),
        window_(std::move(window)),
        cuda_home_(std::move(cuda_home)) {}
  ~Executor();

  absl::Status Handle(const v1::CudaExecutorRequest& request,
                      v1::CudaExecutorReply* reply);

  // After an error: no later request can succeed.
  bool ContextIsLost() { return !gpu_->Synchronize().ok(); }

 private:
  absl::Status LoadUnit(const v1::LoadCudaUnitRequest& request);
  absl::Status FillUnit(const v1::FillCudaUnitRequest& request);
  absl::Status UnloadUnit(uint64_t id);
  absl::Status LoadModule(const v1::LoadCudaModuleRequest& request);
  absl::Status UnloadModule(uint64_t id);
  absl::Status Prepare(const v1::PrepareCudaRequest& request);
  absl::Status Launch(const v1::LaunchCudaRequest& request,
                      v1::CudaExecutorReply* reply);
  absl::Status RunKernel(const v1::LaunchCudaRequest& request, Module& module,
                         UnitMemory& memory, v1::CudaExecutorReply* reply);
  absl::Status Verify(const v1::VerifyCudaRequest& request,
                      v1::CudaVerdict* verdict);
  absl::Status ReadReference(const v1::ReadCudaReferenceRequest& request);
  absl::Status Measure(const v1::MeasureCudaRequest& request,
                       v1::CudaMeasurement* measurement);
  absl::Status Count(const v1::LaunchCudaRequest& request,
                     v1::CudaExecutorReply* reply);
  absl::StatusOr<v1::Counters> CountPasses(const v1::LaunchCudaRequest& request,
                                           v1::CudaExecutorReply* reply);
  absl::StatusOr<LaunchResult> RunPass(const v1::LaunchCudaRequest& request,
                                       LaunchCounter& counter, bool* done);
  // Makes the module's unit the active one, bound to the module, and prepares
  // all of its memory.
  absl::StatusOr<UnitMemory*> MakeReady(const v1::LaunchCudaRequest& request,
                                        Module** module);
  // Makes the unit the active one.
  absl::StatusOr<UnitMemory*> Activate(uint64_t id);
  absl::Status DeactivateOthers(uint64_t id);
  absl::Status OpenClocks();
  void SampleClocks(v1::LaunchReply* launch);  // of an open reader

  std::unique_ptr<Gpu> gpu_;
  std::unique_ptr<OutputCapture> output_;
  RegisteredWindow window_;
  const std::string cuda_home_;
  Watchdog watchdog_;
  std::unique_ptr<ClockReader> clocks_;  // from the first time they are wanted
  std::map<uint64_t, std::unique_ptr<UnitMemory>> units_;
  std::map<uint64_t, std::unique_ptr<Module>> modules_;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_EXECUTOR_H_
