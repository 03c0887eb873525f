// A unit as the executor takes it: its bytes in a memory file, and what else
// there is to know of them. Not thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_UNIT_IMAGE_H_
#define REPRISE_REPLAY_DEVICE_CUDA_UNIT_IMAGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/device/device.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/cuda_executor.pb.h"

namespace reprise::cuda {

class UnitImage {
 public:
  // Reads prologue, epilogue and the sets from the unit's store.
  static absl::StatusOr<std::unique_ptr<UnitImage>> Create(
      const UnitReader& unit, const LoadOptions& options);
  ~UnitImage();
  UnitImage(const UnitImage&) = delete;
  UnitImage& operator=(const UnitImage&) = delete;

  int fd() const { return fd_; }
  // All but its unit number.
  const v1::LoadCudaUnitRequest& request() const { return request_; }

 private:
  UnitImage() = default;
  absl::Status ReadRanges(const UnitReader& unit, const LoadOptions& options);
  void ChooseReferenceChunks(const UnitReader& unit);
  absl::Status Allocate();
  absl::Status ReadContents(const UnitReader& unit);
  void FindAddressWords();
  void ScanRange(int i, const std::vector<int>& variables, uint64_t begin,
                 uint64_t end, std::vector<v1::CudaAddressWord>* found) const;
  int VariableAt(const std::vector<int>& variables, uint64_t address) const;

  v1::LoadCudaUnitRequest request_;
  int fd_ = -1;
  char* bytes_ = nullptr;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_UNIT_IMAGE_H_
