// Machine code loaded in the executor, with its kernel and the addresses of its
// device variables. Unloads itself. Not thread-safe.
//
// Variables beside the unit's must not carry anything from launch to launch.
// Those that can be found are put back; for one that cannot, the whole module
// has to be loaded afresh.
#ifndef REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_MODULE_H_
#define REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_MODULE_H_

#include <cstdint>
#include <map>
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

  // Before a launch: whether Reload has to come first. Reload forgets every
  // address.
  bool NeedsReload() const { return has_lost_variable_ && was_launched; }
  absl::Status Reload();

  // Puts back variables beside the unit's.
  absl::Status RestoreVariables();
  absl::Status HideKept();
  absl::Status ShowKept();

  // What UnitMemory knows of the unit's variables in this module: whether their
  // constants were set, and whether a launch may have written anywhere.
  bool constants_set = false;
  bool may_be_dirty = true;
  bool was_launched = false;

 private:
  Module(Gpu& gpu, const v1::LoadCudaModuleRequest& request)
      : gpu_(gpu),
        id_(request.module()),
        unit_(request.unit()),
        request_(request) {}
  absl::Status LoadImage();
  absl::Status FindKernel(const std::string& name);
  absl::Status KeepVariables();
  std::optional<Variable> AskDriver(const std::string& symbol) const;
  std::optional<Variable> LookUp(const std::string& symbol) const;

  struct Kept {
    Variable variable;
    uint64_t offset = 0;
  };
  Gpu& gpu_;
  const uint64_t id_;
  const uint64_t unit_;
  const v1::LoadCudaModuleRequest request_;
  bool has_lost_variable_ = false;
  mutable std::map<std::string, std::optional<Variable>> found_;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  std::vector<Kept> kept_;
  std::unique_ptr<HiddenMemory> kept_bytes_;
};

}  // namespace reprise::cuda

#endif  // REPRISE_REPLAY_DEVICE_CUDA_EXECUTOR_MODULE_H_
