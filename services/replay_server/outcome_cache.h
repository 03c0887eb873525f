// Outcomes by all that they depend on, a bounded number of them; the least
// recently used ones go. Not thread-safe.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_OUTCOME_CACHE_H_
#define REPRISE_SERVICES_REPLAY_SERVER_OUTCOME_CACHE_H_

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "replay/device/device.h"
#include "reprise/v1/replay.pb.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

// Of this server and its measuring; a change makes outcomes others.
inline constexpr uint32_t kReplayProtocolVersion = 1;

// Unit, tolerance and front ends it was loaded with, variant, sampling, and the
// device with its driver and cache policy: two evaluations with equal keys
// measure the same.
std::string OutcomeKey(const std::string& unit_id,
                       const v1::LoadUnitRequest& load,
                       const v1::Variant& variant, const v1::Sampling& sampling,
                       const DeviceFacts& device);

// What says something of the variant may be kept.
bool MayBeKept(const v1::Outcome& outcome);

class OutcomeCache {
 public:
  explicit OutcomeCache(size_t most) : most_(most) {}

  std::optional<v1::Outcome> Find(const std::string& key);
  void Insert(const std::string& key, const v1::Outcome& outcome);
  size_t size() const { return entries_.size(); }

 private:
  using Entry = std::pair<std::string, v1::Outcome>;

  const size_t most_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_OUTCOME_CACHE_H_
