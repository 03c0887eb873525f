#include "replay/engine/roofline.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "replay/base/status_macros.h"
#include "replay/unit/blob.h"
#include "replay/unit/interval_set.h"
#include "replay/unit/unit_store.h"

namespace reprise {
namespace {

absl::StatusOr<IntervalSet> SetOf(const UnitReader& unit, bool present,
                                  const v1::Blob& blob, uint64_t bytes) {
  if (!present) return IntervalSet();
  return LoadIntervals(unit.chunks(), blob, bytes);
}

// What of the bytes is not in the cache at the end, or at the beginning.
double Beyond(uint64_t bytes, uint64_t cache) {
  return bytes > cache ? static_cast<double>(bytes - cache) : 0;
}

void BoundByMemory(const LaunchWork& work, const v1::Counters& counters,
                   const v1::DeviceCeilings& ceilings, Roofline* roofline) {
  // Reads and writes share the wires, so neither alone is a bound for both.
  roofline->memory_gb_s =
      std::max(ceilings.dram_read_gb_s(), ceilings.dram_write_gb_s());
  if (roofline->memory_gb_s <= 0) {
    roofline->no_memory = "the bandwidth of memory was not measured";
    return;
  }
  const auto read = CounterValue(counters, "dram_bytes_read");
  const auto written = CounterValue(counters, "dram_bytes_written");
  double bytes = 0;
  if (work.observed) {
    bytes = static_cast<double>(work.bytes_read) +
            Beyond(work.bytes_written, ceilings.l2_bytes());
    roofline->bytes_from = "the unit's read and write sets";
  } else if (read.has_value() && written.has_value()) {
    bytes = *read + *written;
    roofline->bytes_from = "counted by the device";
  } else {
    roofline->no_memory =
        "no instrumented run says what the kernel reads, and the device "
        "counted no bytes";
    return;
  }
  roofline->memory_bytes = static_cast<uint64_t>(bytes);
  roofline->memory_ns = bytes / roofline->memory_gb_s;
}

void BoundByCounted(double f32, double f64, const v1::DeviceCeilings& ceilings,
                    Roofline* roofline) {
  const double f32_ns = f32 / ceilings.f32_gflops();
  const double f64_ns = f64 / ceilings.f64_gflops();
  roofline->flops_from = "counted by the device";
  roofline->compute_ns = std::max(f32_ns, f64_ns);
  roofline->flops = f64_ns > f32_ns ? f64 : f32;
  roofline->gflops =
      f64_ns > f32_ns ? ceilings.f64_gflops() : ceilings.f32_gflops();
}

void BoundByCompute(const LaunchWork& work, const v1::Counters& counters,
                    const v1::DeviceCeilings& ceilings, Roofline* roofline) {
  if (ceilings.f32_gflops() <= 0 || ceilings.f64_gflops() <= 0) {
    roofline->no_compute = "the rate of operations was not measured";
    return;
  }
  const auto f32 = CounterValue(counters, "f32_flops");
  const auto f64 = CounterValue(counters, "f64_flops");
  if (f32.has_value() && f64.has_value())
    return BoundByCounted(*f32, *f64, ceilings, roofline);
  if (!work.observed) {
    roofline->no_compute =
        "no instrumented run says what the kernel computes, and the device "
        "counted no operations";
    return;
  }
  roofline->flops_from = "the instrumented run, as if all were of 32 bits";
  roofline->flops = static_cast<double>(work.flops);
  roofline->gflops = std::max(ceilings.f32_gflops(), ceilings.f64_gflops());
  roofline->compute_ns = roofline->flops / roofline->gflops;
}

}  // namespace

absl::StatusOr<LaunchWork> WorkOf(const UnitReader& unit) {
  LaunchWork work;
  work.observed = unit.manifest().has_work();
  work.flops = unit.manifest().work().flops();
  for (const v1::MemoryRange& range : unit.manifest().memory()) {
    ASSIGN_OR_RETURN(
        const IntervalSet writes,
        SetOf(unit, range.has_write_set(), range.write_set(), range.bytes()));
    ASSIGN_OR_RETURN(
        const IntervalSet reads,
        SetOf(unit, range.has_read_set(), range.read_set(), range.bytes()));
    ASSIGN_OR_RETURN(const IntervalSet read_first,
                     SetOf(unit, range.has_read_before_write_set(),
                           range.read_before_write_set(), range.bytes()));
    const IntervalSet poisoned = writes.Subtract(read_first);
    work.bytes_written += writes.bytes();
    work.bytes_read += reads.Subtract(poisoned).bytes();
    // A write set without an instrumented run is what differed.
    work.bytes_to_write +=
        range.has_read_before_write_set() ? poisoned.bytes() : writes.bytes();
  }
  return work;
}

std::optional<WriteFloor> WriteFloorOf(const LaunchWork& work,
                                       const v1::DeviceCeilings& ceilings) {
  if (work.bytes_to_write == 0 || ceilings.l2_write_gb_s() <= 0 ||
      ceilings.dram_write_gb_s() <= 0)
    return std::nullopt;
  const double to_l2 =
      static_cast<double>(work.bytes_to_write) / ceilings.l2_write_gb_s();
  const double to_memory = Beyond(work.bytes_to_write, ceilings.l2_bytes()) /
                           ceilings.dram_write_gb_s();
  if (to_memory > to_l2) {
    return WriteFloor{to_memory, work.bytes_to_write,
                      ceilings.dram_write_gb_s(), "memory"};
  }
  return WriteFloor{to_l2, work.bytes_to_write, ceilings.l2_write_gb_s(),
                    "the L2 cache"};
}

bool IsFasterThanPossible(double ns, const WriteFloor& floor) {
  return ns < floor.ns * (1 - kCeilingError);
}

std::string DescribeTooFast(double ns, const WriteFloor& floor) {
  return absl::StrFormat(
      "faster than the device can write: got %.4g ms, expected at least %.4g "
      "ms, since %d bytes have to reach %s, which takes %.0f GB/s (measured "
      "here); this launch did not do the work, so it is not believed",
      ns / 1e6, floor.ns / 1e6, floor.bytes, floor.ceiling, floor.gb_s);
}

Roofline RooflineOf(const LaunchWork& work, const v1::Counters& counters,
                    const v1::DeviceCeilings& ceilings) {
  Roofline roofline;
  BoundByMemory(work, counters, ceilings, &roofline);
  BoundByCompute(work, counters, ceilings, &roofline);
  return roofline;
}

std::optional<double> CounterValue(const v1::Counters& counters,
                                   const std::string& name) {
  for (const v1::Counter& counter : counters.values()) {
    if (counter.name() == name && counter.absent().empty())
      return counter.value();
  }
  return std::nullopt;
}

}  // namespace reprise
