// The parent's end of a CUDA executor: the crash-isolated child process that
// owns the context of one GPU and runs device code there.
//
// The child is this executable (or Options::executable) run again with
// Options::arguments, joined over ZeroMQ ipc:// in a 0700 directory
// (proto/reprise/v1/cuda_executor.proto). Bytes of units stream from their
// stores through a window of shared memory, so that no unit is held in memory:
// after a fault or a timeout the next call starts a new child, and what it
// needs of units and modules is loaded again, units from their stores.
//
// Where the device has not enough memory for one more unit, those not used for
// longest are unloaded; they come back when they are used.
//
// Thread-safe; calls are served one at a time. Destroying it ends the child.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_CLIENT_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/device/cuda/unit_image.h"
#include "replay/device/device.h"
#include "reprise/v1/cuda_executor.pb.h"

namespace reprise {

class CudaExecutorClient {
 public:
  struct Options {
    std::string executable;  // empty: this one
    std::vector<std::string> arguments = {"cuda-executor"};
    int ordinal = 0;  // of the device
    // The toolkit whose CUPTI counts; empty: $CUDA_HOME or /usr/local/cuda.
    std::string cuda_home;
  };
  // NOT_FOUND where there is no driver or no such device.
  static absl::StatusOr<std::unique_ptr<CudaExecutorClient>> Start(
      Options options);
  virtual ~CudaExecutorClient() = default;

  virtual const v1::CudaDeviceFacts& facts() const = 0;

  // Returns the unit's number. Errors are also those of the unit's store.
  virtual absl::StatusOr<uint64_t> LoadUnit(
      std::unique_ptr<cuda::UnitImage> image) = 0;
  virtual void UnloadUnit(uint64_t unit) = 0;
  // From the next use on, none of the unit's memory is read-only.
  virtual void MakeAllWritable(uint64_t unit) = 0;

  // request.module is filled in and returned.
  virtual absl::StatusOr<uint64_t> LoadModule(
      v1::LoadCudaModuleRequest request) = 0;
  virtual void UnloadModule(uint64_t module) = 0;

  virtual absl::Status Prepare(const v1::PrepareCudaRequest& request) = 0;

  // The report's kind is OK, INVALID_LAUNCH, DEVICE_FAULT or TIMEOUT. A verdict
  // that comes with it is kept for Verify.
  virtual absl::StatusOr<LaunchReport> Launch(
      const v1::LaunchCudaRequest& request, absl::Duration timeout) = 0;

  // Of the memory that the unit's last launch or preparation left. UNAVAILABLE
  // where that is gone: another unit's kernel ended the child since.
  virtual absl::StatusOr<v1::CudaVerdict> Verify(
      const v1::VerifyCudaRequest& request) = 0;
  virtual absl::Status AdoptReference(uint64_t unit) = 0;
  virtual absl::StatusOr<v1::CudaMeasurement> Measure(
      const v1::MeasureCudaRequest& request) = 0;

  // Runs the launch as often as the counters need. The counters say why where
  // there are none.
  virtual absl::StatusOr<v1::Counters> Count(
      const v1::LaunchCudaRequest& request, absl::Duration timeout) = 0;
  virtual absl::StatusOr<v1::DeviceCeilings> MeasureCeilings() = 0;

  virtual uint64_t restarts() const = 0;
};

// main() of the child; argv after the verb. Returns the exit code.
int CudaExecutorMain(int argc, char** argv);

}  // namespace reprise

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_CLIENT_H_
