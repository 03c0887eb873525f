// How fast a launch can be at most on a device whose ceilings were measured,
// after the roofline model (Williams, Waterman and Patterson, "Roofline: an
// insightful visual performance model for multicore architectures", 2009).
//
// Two bounds, for two purposes:
//
// The *write floor* is for judging. A launch with the right result has to write
// certain bytes, whatever it computes and reads: those that are poisoned before
// it, or without an instrumented run those that it changed. They have to reach
// the L2 cache at least, since all multiprocessors share it and none else; and
// all but what that cache holds has to reach memory. Nothing that a variant
// leaves out lowers it. What is faster by more than the ceilings' error did not
// do the work.
//
// The *roofline* is for telling how far a launch is from what the device can
// do: its distinct bytes through memory from a cold cache, or its
// floating-point operations, whichever takes longer. A variant may do fewer
// operations than the recorded code and read less, so that nothing is judged by
// it.
//
// Pure functions; thread-safe.
#ifndef REPRISE_REPLAY_ENGINE_ROOFLINE_H_
#define REPRISE_REPLAY_ENGINE_ROOFLINE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

class UnitReader;  // replay/unit/unit_store.h

// What the recorded launch moves at least, by the unit's sets, and computes.
// Distinct bytes, each counted once.
struct LaunchWork {
  // By an instrumented run. Without one only bytes_to_write is known.
  bool observed = false;
  uint64_t bytes_read = 0;      // that come from before the launch
  uint64_t bytes_written = 0;   // all of the write set
  uint64_t bytes_to_write = 0;  // that a right launch cannot leave as they are
  uint64_t flops = 0;           // of any precision
};

// Errors are the store's.
absl::StatusOr<LaunchWork> WorkOf(const UnitReader& unit);

struct WriteFloor {
  double ns = 0;
  uint64_t bytes = 0;   // that have to be written
  double gb_s = 0;      // the ceiling that decides
  std::string ceiling;  // "the L2 cache" or "memory"
};

// Nothing where a ceiling is missing or nothing has to be written.
std::optional<WriteFloor> WriteFloorOf(const LaunchWork& work,
                                       const v1::DeviceCeilings& ceilings);

// A measured ceiling may be missed by this share, and no more.
inline constexpr double kCeilingError = 0.25;

// Whether a launch of this duration cannot have written what it must.
bool IsFasterThanPossible(double ns, const WriteFloor& floor);

// "faster than the device's memory can write: got 0.01 ms, ...".
std::string DescribeTooFast(double ns, const WriteFloor& floor);

struct Roofline {
  double memory_ns = 0;  // 0: not known
  double compute_ns = 0;
  uint64_t memory_bytes = 0;
  double memory_gb_s = 0;  // the ceiling
  double flops = 0;
  double gflops = 0;  // the ceiling
  // Where the figures come from: "the unit's read and write sets", "counted by
  // the device".
  std::string bytes_from, flops_from;
  // Why there is no bound by memory, or by operations.
  std::string no_memory, no_compute;

  bool known() const { return memory_ns > 0 || compute_ns > 0; }
  bool by_memory() const { return memory_ns >= compute_ns; }
  double ns() const { return by_memory() ? memory_ns : compute_ns; }
};

// With a cold L2 cache. `counters` of the recorded code's own launch, or empty
// ones: operations that the device counted know their precision, and its bytes
// stand in where no instrumented run was made.
Roofline RooflineOf(const LaunchWork& work, const v1::Counters& counters,
                    const v1::DeviceCeilings& ceilings);

// A counter's value; nothing where it is absent.
std::optional<double> CounterValue(const v1::Counters& counters,
                                   const std::string& name);

}  // namespace reprise

#endif  // REPRISE_REPLAY_ENGINE_ROOFLINE_H_
