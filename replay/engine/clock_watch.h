// Whether a device's clocks let a pair of durations count (docs/measuring.md).
//
// Launches bring samples of the clocks, perhaps not every one. Samples since
// the last judgement, and the one before them, speak against what was measured
// meanwhile if one shows the device held down by heat, power or a slowdown, or
// if the SM clock differs between them by more than a twentieth: a ratio of two
// durations at two clocks tells of the clocks.
//
// Not thread-safe.
#ifndef REPRISE_REPLAY_ENGINE_CLOCK_WATCH_H_
#define REPRISE_REPLAY_ENGINE_CLOCK_WATCH_H_

#include <optional>
#include <string>

#include "reprise/v1/types.pb.h"

namespace reprise {

class ClockWatch {
 public:
  // `unknown`: why launches will come without samples; empty: they will not.
  explicit ClockWatch(std::string unknown = "") {
    report_.set_unknown(unknown);
  }

  void Note(const std::optional<v1::ClockSample>& sample);

  // What speaks against durations measured since the last call, in words:
  // "thermal slowdown". Empty: nothing.
  std::string TakeObjection();

  // Over all samples.
  const v1::ClockReport& report() const { return report_; }

 private:
  void Widen(const v1::ClockSample& sample);

  v1::ClockReport report_;
  std::optional<uint32_t> last_sm_mhz_;
  // Since the last judgement, with the sample before it.
  uint32_t lowest_sm_mhz_ = 0, highest_sm_mhz_ = 0;
  uint64_t event_reasons_ = 0;
};

// "power cap, thermal slowdown": those of NVML's clock event reasons by which a
// device is slower than it could be at another time. Empty: none. Idle clocks,
// clocks that somebody chose and the like are not among them.
std::string SlowdownText(uint64_t event_reasons);

// "SM clock 1965 to 1980 MHz, memory 2619 MHz, 45 C, 310 W, not held down", or
// "clocks unknown: ...".
std::string ClocksText(const v1::ClockReport& clocks);

}  // namespace reprise

#endif  // REPRISE_REPLAY_ENGINE_CLOCK_WATCH_H_
