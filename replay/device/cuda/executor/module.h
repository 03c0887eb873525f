// Machine code loaded in the executor, with its kernel and the addresses of its
// device variables. Unloads itself. Not thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_MODULE_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_MODULE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/device/cuda/executor/gpu.h"
#include "replay/device/cuda/executor/virtual_memory.h"

namespace reprise::cuda {

class Module {
 public:
  // NOT_FOUND names the kernel and those that are there; UNIMPLEMENTED where
  // the code is for other devices.
  static absl::StatusOr<std::unique_ptr<Module>> Load(
      Gpu& gpu, const v1::LoadCudaModuleRequest& request);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  uint64_t id() const { return id_; }
  uint64_t unit() const { return unit_; }
  CUfunction kernel() const { return kernel_; }

  struct Variable {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  // Nothing where the code does not have it.
  std::optional<Variable> FindVariable(const std::string& symbol) const;

  // Variables beside the unit's: takes their present contents, and puts them
  // back.
  absl::Status KeepVariables(const std::vector<std::string>& symbols);
  absl::Status RestoreVariables();
  absl::Status HideKept();
  absl::Status ShowKept();

  // What UnitMemory knows of the unit's variables in this module: whether their
  // constants were set, and whether a launch may have written anywhere.
  bool constants_set = false;
  bool may_be_dirty = true;

 private:
  Module(Gpu& gpu, uint64_t id, uint64_t unit)
      : gpu_(gpu), id_(id), unit_(unit) {}
  absl::Status FindKernel(const std::string& name);

  struct Kept {
    Variable variable;
    uint64_t offset = 0;
  };
  Gpu& gpu_;
  const uint64_t id_;
  const uint64_t unit_;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  std::vector<Kept> kept_;
  std::unique_ptr<HiddenMemory> kept_bytes_;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_MODULE_H_
