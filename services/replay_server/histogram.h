// Durations counted by size, for statistics. Not thread-safe.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_HISTOGRAM_H_
#define REPRISE_SERVICES_REPLAY_SERVER_HISTOGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "reprise/v1/replay.pb.h"

namespace reprise {

// Bounds from 0.1 ms to about 100 s, each a half above the last, so that a
// quantile read from it is off by a fifth at most.
class Histogram {
 public:
  Histogram();

  void Add(double ms);
  v1::Histogram ToProto() const;

 private:
  std::vector<double> bounds_ms_;
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  double sum_ms_ = 0;
};

// The duration that this share (0 to 1) of the counted ones does not exceed:
// the middle of its bucket by ratio, the last bound where it lies beyond. 0
// where nothing was counted.
double QuantileMs(const v1::Histogram& histogram, double share);

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_HISTOGRAM_H_
