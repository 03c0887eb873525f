// One GPU as the executor uses it: its context, one stream, the support kernels
// and virtual memory.
//
// Everything runs on the one stream, in order. Calls that move memory return
// before they are done unless they say otherwise; an error of earlier work may
// come out of any later call. Not thread-safe: one thread owns it.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_GPU_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_GPU_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/device/cuda/driver.h"
#include "replay/device/cuda/support_kernels.h"
#include "reprise/v1/cuda_executor.pb.h"

namespace reprise::cuda {

// PTX of support_kernels.cu, ended by a zero byte.
const char* SupportKernelsPtx();

class Gpu {
 public:
  // NOT_FOUND where there is no driver or no device of this number.
  static absl::StatusOr<std::unique_ptr<Gpu>> Create(int ordinal);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Driver& driver() const { return *driver_; }
  const v1::CudaDeviceFacts& facts() const { return facts_; }
  CUdevice device() const { return device_; }
  CUcontext context() const { return context_; }
  CUstream stream() const { return stream_; }
  // "0000:3b:00.0".
  absl::StatusOr<std::string> PciBusId() const;

  absl::Status Upload(uint64_t to, const void* from, uint64_t bytes);
  // Waits for the bytes.
  absl::Status Download(void* to, uint64_t from, uint64_t bytes);
  absl::Status Copy(uint64_t to, uint64_t from, uint64_t bytes);
  absl::Status Fill(uint64_t to, uint8_t value, uint64_t bytes);
  absl::Status Synchronize();

  // Support kernels; tables lie on the device.
  absl::Status CopyTiles(uint64_t tiles, uint64_t count, uint32_t lanes);
  absl::Status PoisonTiles(uint64_t tiles, uint64_t count, uint32_t lanes,
                           uint64_t seed);
  absl::Status CompareTiles(uint64_t tiles, uint64_t count, uint64_t jobs,
                            uint64_t counts);
  absl::Status StoreWords(uint64_t words, uint64_t count);

  // For what the device can do at most (ceilings.h); each fills it with
  // SupportThreads threads. Whole 16 bytes.
  absl::Status StreamWrite(uint64_t at, uint64_t bytes, uint32_t rounds);
  absl::Status StreamRead(uint64_t from, uint64_t bytes, uint64_t sink);
  absl::Status MultiplyAdd(bool wide, uint32_t rounds, uint64_t sink);
  uint64_t SupportThreads() const;

  // Fills the L2 cache with other bytes.
  absl::Status FlushL2();
  // The same by reading, so that nothing has to go back to memory.
  absl::Status CleanL2();
  // Keeps the device busy while the host submits what comes next, so that
  // nothing waits for the host between them.
  absl::Status Delay();

  // Events around a launch; the second must have been waited for.
  absl::Status RecordStart();
  // Raw, since an error may be the launch's.
  CUresult RecordStop() const;
  absl::StatusOr<double> ElapsedNs();

 private:
  Gpu() = default;
  absl::Status Initialize(int ordinal);
  absl::Status ReadFacts();
  absl::StatusOr<int> Attribute(CUdevice_attribute attribute) const;
  absl::Status LoadSupportKernels();
  absl::Status Run(CUfunction function, uint64_t threads, void** arguments);

  std::unique_ptr<const Driver> driver_;
  v1::CudaDeviceFacts facts_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent start_ = nullptr, stop_ = nullptr;
  CUmodule support_ = nullptr;
  CUfunction copy_ = nullptr, poison_ = nullptr, compare_ = nullptr,
             store_words_ = nullptr, delay_ = nullptr, stream_write_ = nullptr,
             stream_read_ = nullptr, multiply_add_32_ = nullptr,
             multiply_add_64_ = nullptr;
  uint64_t flush_ = 0, flush_bytes_ = 0;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_GPU_H_
