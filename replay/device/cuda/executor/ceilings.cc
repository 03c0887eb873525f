#include "replay/device/cuda/executor/ceilings.h"

#include <algorithm>
#include <functional>

#include "replay/base/status_macros.h"
#include "replay/device/cuda/executor/virtual_memory.h"

namespace reprise::cuda {
namespace {

constexpr int kRounds = 5;
// Launches between two events, where memory is written: what the first finds in
// the cache to be written back, the last leaves there.
constexpr int kStreams = 4;
// Of the L2 cache, so that everything stays in it.
constexpr uint64_t kL2Share = 4;
constexpr uint32_t kL2Passes = 16;
constexpr uint32_t kMultiplyAddRounds = 2048;

using Body = std::function<absl::Status()>;

// The fastest of kRounds, after one that warms up.
absl::StatusOr<double> BestNs(Gpu& gpu, int launches, const Body& body) {
  double best = 0;
  for (int round = 0; round <= kRounds; ++round) {
    RETURN_IF_ERROR(gpu.Delay());
    RETURN_IF_ERROR(gpu.RecordStart());
    for (int launch = 0; launch < launches; ++launch) RETURN_IF_ERROR(body());
    RETURN_IF_ERROR(gpu.driver().Check(gpu.RecordStop(), "cuEventRecord"));
    RETURN_IF_ERROR(gpu.Synchronize());
    ASSIGN_OR_RETURN(const double ns, gpu.ElapsedNs());
    if (round > 0 && ns > 0) best = best == 0 ? ns : std::min(best, ns);
  }
  return best / launches;
}

// A byte, or an operation, a nanosecond is a G/s.
absl::StatusOr<double> BestRate(Gpu& gpu, int launches, double amount,
                                const Body& body) {
  ASSIGN_OR_RETURN(const double ns, BestNs(gpu, launches, body));
  return ns <= 0 ? 0 : amount / ns;
}

}  // namespace

absl::StatusOr<v1::DeviceCeilings> MeasureCeilings(Gpu& gpu) {
  constexpr uint64_t kBytesWithoutL2 = 256 << 20;
  const uint64_t l2 = gpu.facts().l2_bytes();
  const uint64_t bytes = GranuleUp(l2 == 0 ? kBytesWithoutL2 : 8 * l2);
  const uint64_t in_l2 = l2 / kL2Share;
  ASSIGN_OR_RETURN(const auto buffer, HiddenMemory::Create(gpu, bytes));
  const uint64_t at = buffer->address();
  const uint64_t operations =
      gpu.SupportThreads() * kMultiplyAddRounds * kMultiplyAdds * 2;
  v1::DeviceCeilings ceilings;
  ceilings.set_l2_bytes(l2);
  ASSIGN_OR_RETURN(double rate,
                   BestRate(gpu, kStreams, static_cast<double>(bytes),
                            [&] { return gpu.StreamWrite(at, bytes, 1); }));
  ceilings.set_dram_write_gb_s(rate);
  ASSIGN_OR_RETURN(rate,
                   BestRate(gpu, kStreams, static_cast<double>(bytes),
                            [&] { return gpu.StreamRead(at, bytes, at); }));
  ceilings.set_dram_read_gb_s(rate);
  if (l2 != 0) {
    ASSIGN_OR_RETURN(
        rate, BestRate(gpu, kStreams, static_cast<double>(in_l2) * kL2Passes,
                       [&] { return gpu.StreamWrite(at, in_l2, kL2Passes); }));
    ceilings.set_l2_write_gb_s(rate);
  }
  for (const bool wide : {false, true}) {
    ASSIGN_OR_RETURN(rate,
                     BestRate(gpu, 1, static_cast<double>(operations), [&] {
                       return gpu.MultiplyAdd(wide, kMultiplyAddRounds, at);
                     }));
    if (wide) {
      ceilings.set_f64_gflops(rate);
    } else {
      ceilings.set_f32_gflops(rate);
    }
  }
  return ceilings;
}

}  // namespace reprise::cuda
