// The executor's state: units, modules, and what is asked of them. One request
// at a time, from one thread.
//
// At most one unit is active, that is, has its memory mapped; a request for
// another one takes its place.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_EXECUTOR_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/device/cuda/executor/gpu.h"
#include "replay/device/cuda/executor/module.h"
#include "replay/device/cuda/executor/output_capture.h"
#include "replay/device/cuda/executor/unit_memory.h"
#include "replay/device/cuda/executor/watchdog.h"
#include "reprise/v1/cuda_executor.pb.h"

namespace reprise::cuda {

class Executor {
 public:
  // `receive_image` gives the descriptor that was sent before a LoadUnit.
  Executor(std::unique_ptr<Gpu> gpu, std::unique_ptr<OutputCapture> output,
           std::function<absl::StatusOr<int>()> receive_image)
      : gpu_(std::move(gpu)),
        output_(std::move(output)),
        receive_image_(std::move(receive_image)) {}
  ~Executor();

  absl::Status Handle(const v1::CudaExecutorRequest& request,
                      v1::CudaExecutorReply* reply);

  // After an error: no later request can succeed.
  bool ContextIsLost() { return !gpu_->Synchronize().ok(); }

 private:
  // A unit's image file, mapped.
  struct Image {
    ~Image();
    char* bytes = nullptr;
    uint64_t size = 0;
  };
  struct Unit {
    std::unique_ptr<Image> image;
    std::unique_ptr<UnitMemory> memory;
  };

  absl::Status LoadUnit(const v1::LoadCudaUnitRequest& request);
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
  absl::Status AdoptReference(uint64_t id);
  absl::Status Measure(const v1::MeasureCudaRequest& request,
                       v1::CudaMeasurement* measurement);
  // Makes the unit the active one.
  absl::StatusOr<UnitMemory*> Activate(uint64_t id);
  absl::Status DeactivateOthers(uint64_t id);

  std::unique_ptr<Gpu> gpu_;
  std::unique_ptr<OutputCapture> output_;
  std::function<absl::StatusOr<int>()> receive_image_;
  Watchdog watchdog_;
  std::map<uint64_t, Unit> units_;
  std::map<uint64_t, std::unique_ptr<Module>> modules_;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_EXECUTOR_H_
