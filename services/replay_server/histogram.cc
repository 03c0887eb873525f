#include "services/replay_server/histogram.h"

#include <algorithm>
#include <cmath>

namespace reprise {
namespace {

constexpr double kFirstBoundMs = 0.1;
constexpr double kGrowth = 1.5;
constexpr int kBounds = 35;

}  // namespace

Histogram::Histogram() : counts_(kBounds + 1) {
  for (int i = 0; i < kBounds; ++i)
    bounds_ms_.push_back(kFirstBoundMs * std::pow(kGrowth, i));
}

void Histogram::Add(double ms) {
  const auto bound = std::lower_bound(bounds_ms_.begin(), bounds_ms_.end(), ms);
  ++counts_[static_cast<size_t>(bound - bounds_ms_.begin())];
  ++count_;
  sum_ms_ += ms;
}

v1::Histogram Histogram::ToProto() const {
  v1::Histogram proto;
  proto.mutable_bounds_ms()->Add(bounds_ms_.begin(), bounds_ms_.end());
  proto.mutable_counts()->Add(counts_.begin(), counts_.end());
  proto.set_count(count_);
  proto.set_sum_ms(sum_ms_);
  return proto;
}

double QuantileMs(const v1::Histogram& histogram, double share) {
  if (histogram.count() == 0) return 0;
  const double wanted = share * static_cast<double>(histogram.count());
  uint64_t seen = 0;
  for (int i = 0; i < histogram.bounds_ms_size(); ++i) {
    seen += histogram.counts(i);
    if (static_cast<double>(seen) >= wanted && seen > 0) {
      const double upper = histogram.bounds_ms(i);
      return i == 0 ? upper : std::sqrt(upper * histogram.bounds_ms(i - 1));
    }
  }
  return histogram.bounds_ms(histogram.bounds_ms_size() - 1);
}

}  // namespace reprise
