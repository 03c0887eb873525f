#include "services/replay_server/outcome_cache.h"

#include "replay/base/sha256.h"
#include "replay/unit/digest.h"

namespace reprise {

std::string OutcomeKey(const std::string& unit_id,
                       const v1::LoadUnitRequest& load,
                       const v1::Variant& variant, const v1::Sampling& sampling,
                       const DeviceFacts& device) {
  FieldHasher hasher;
  hasher.U64(kReplayProtocolVersion).Bytes(unit_id);
  hasher.U64(load.has_tolerance() ? 1 : 0)
      .F64(load.tolerance().absolute())
      .F64(load.tolerance().relative())
      .F64(load.tolerance().outlier_share())
      .U64(static_cast<uint64_t>(load.frontends_size()));
  for (const std::string& frontend : load.frontends()) hasher.Bytes(frontend);
  hasher.Bytes(VariantDigest(variant));
  hasher.U64(sampling.minimum_pairs())
      .U64(sampling.maximum_pairs())
      .F64(sampling.time_limit_s())
      .U64(sampling.verify_only() ? 1 : 0);
  hasher.Bytes(device.kind)
      .Bytes(device.name)
      .Bytes(device.uuid)
      .Bytes(device.driver)
      .U64(static_cast<uint64_t>(device.l2));
  return hasher.Finish();
}

bool MayBeKept(const v1::Outcome& outcome) {
  // A compiler that was killed is told from one that failed by chance only; the
  // compile pool keeps what is sure.
  return outcome.kind() != v1::OUTCOME_KIND_UNSPECIFIED &&
         outcome.kind() != v1::OUTCOME_KIND_COMPILE_ERROR &&
         outcome.kind() != v1::OUTCOME_KIND_INFRASTRUCTURE;
}

std::optional<v1::Outcome> OutcomeCache::Find(const std::string& key) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return std::nullopt;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->second;
}

void OutcomeCache::Insert(const std::string& key, const v1::Outcome& outcome) {
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    entries_.erase(found->second);
    by_key_.erase(found);
  }
  entries_.emplace_front(key, outcome);
  by_key_[key] = entries_.begin();
  if (entries_.size() <= most_) return;
  by_key_.erase(entries_.back().first);
  entries_.pop_back();
}

}  // namespace reprise
