#include "replay/device/cuda/executor/measure.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "replay/base/status_macros.h"
#include "replay/device/cuda/executor/virtual_memory.h"

namespace reprise::cuda {
namespace {

using Body = std::function<absl::Status()>;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Nanoseconds on the device.
absl::StatusOr<double> DeviceNs(Gpu& gpu, uint32_t rounds, const Body& body) {
  std::vector<double> times;
  for (uint32_t i = 0; i < std::max(rounds, 1u); ++i) {
    RETURN_IF_ERROR(gpu.RecordStart());
    RETURN_IF_ERROR(body());
    RETURN_IF_ERROR(gpu.driver().Check(gpu.RecordStop(), "cuEventRecord"));
    RETURN_IF_ERROR(gpu.Synchronize());
    ASSIGN_OR_RETURN(const double ns, gpu.ElapsedNs());
    times.push_back(ns);
  }
  return Median(std::move(times));
}

// Nanoseconds on the wall.
absl::StatusOr<double> WallNs(uint32_t rounds, const Body& body) {
  std::vector<double> times;
  for (uint32_t i = 0; i < std::max(rounds, 1u); ++i) {
    const auto start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(body());
    times.push_back(std::chrono::duration<double, std::nano>(
                        std::chrono::steady_clock::now() - start)
                        .count());
  }
  return Median(std::move(times));
}

// A byte a nanosecond is a GB/s.
double Rate(uint64_t bytes, double ns) {
  return ns <= 0 ? 0 : static_cast<double>(bytes) / ns;
}

absl::StatusOr<double> CopyRate(Gpu& gpu,
                                const v1::MeasureCudaRequest& request) {
  const uint64_t bytes = GranuleUp(request.copy_bytes());
  ASSIGN_OR_RETURN(const auto from, HiddenMemory::Create(gpu, bytes));
  ASSIGN_OR_RETURN(const auto to, HiddenMemory::Create(gpu, bytes));
  ASSIGN_OR_RETURN(const double ns, DeviceNs(gpu, request.rounds(), [&] {
                     return gpu.Copy(to->address(), from->address(), bytes);
                   }));
  return Rate(bytes, ns);
}

}  // namespace

absl::Status MeasureUnit(Gpu& gpu, UnitMemory& memory,
                         const v1::MeasureCudaRequest& request,
                         v1::CudaMeasurement* measurement) {
  const UnitMemory::Work work = memory.work();
  measurement->set_restored_bytes(work.restored_bytes);
  measurement->set_poisoned_bytes(work.poisoned_bytes);
  measurement->set_verified_bytes(work.verified_bytes);
  if (request.copy_bytes() != 0) {
    ASSIGN_OR_RETURN(const double rate, CopyRate(gpu, request));
    measurement->set_copy_gb_s(rate);
  }
  v1::PrepareCuda poison, restore;
  poison.set_poison(true);
  poison.set_poison_seed(1);
  restore.set_restore(true);
  ASSIGN_OR_RETURN(double ns, DeviceNs(gpu, request.rounds(),
                                       [&] { return memory.Prepare(poison); }));
  measurement->set_poison_gb_s(Rate(work.poisoned_bytes, ns));
  ASSIGN_OR_RETURN(ns, DeviceNs(gpu, request.rounds(),
                                [&] { return memory.Prepare(restore); }));
  measurement->set_restore_gb_s(Rate(work.restored_bytes, ns));
  ASSIGN_OR_RETURN(ns, WallNs(request.rounds(), [&] {
                     return memory.Verify(v1::Tolerance()).status();
                   }));
  measurement->set_verify_gb_s(Rate(work.verified_bytes, ns));
  ASSIGN_OR_RETURN(ns, WallNs(request.rounds(), [&]() -> absl::Status {
                     RETURN_IF_ERROR(memory.Hide());
                     return memory.Show();
                   }));
  measurement->set_unmap_map_us(ns / 1e3);
  ASSIGN_OR_RETURN(ns, WallNs(request.rounds(), [&]() -> absl::Status {
                     RETURN_IF_ERROR(memory.Deactivate());
                     return memory.Activate();
                   }));
  measurement->set_activate_us(ns / 1e3);
  return absl::OkStatus();
}

}  // namespace reprise::cuda
