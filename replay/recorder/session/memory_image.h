// From the accesses of a launch to the memory ranges of its unit: what was
// touched, cut out of what was allocated. Pure functions; thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_MEMORY_IMAGE_H_
#define REPRISE_REPLAY_RECORDER_SESSION_MEMORY_IMAGE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/recorder/session/arena_memory.h"
#include "replay/unit/interval_set.h"
#include "reprise/v1/node.pb.h"
#include "reprise/v1/types.pb.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

// Accesses by absolute address.
struct AccessSets {
  IntervalSet reads;
  IntervalSet writes;
  IntervalSet reads_before_write;
  static AccessSets FromReport(const v1::AccessReport& report);
};

// One memory range of a unit. Intervals count from `address`.
struct ImageRange {
  uint64_t address = 0;
  uint64_t bytes = 0;
  v1::MemoryOrigin origin = v1::MEMORY_ORIGIN_UNSPECIFIED;
  std::string symbol;
  v1::ElementType element_type = v1::ELEMENT_TYPE_UNTYPED;
  IntervalSet reads;
  IntervalSet writes;
  IntervalSet reads_before_write;
};

// Pages that the launch never touches are left out where 1 MiB or more of them
// lie together, at the ends of an allocation too; pages left in keep their
// contents, touched or not. An allocation whose pages differ in element type is
// cut where the type changes, unless that makes too many pieces. Globals in
// `whole` (by address) come complete and in one piece, touched or not.
//
// FAILED_PRECONDITION: an access lies outside everything live; the message says
// where.
absl::StatusOr<std::vector<ImageRange>> CutImage(
    const std::map<uint64_t, LiveRange>& live, const AccessSets& accesses,
    const google::protobuf::RepeatedPtrField<v1::TypedInterval>& types,
    const std::set<uint64_t>& whole);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_MEMORY_IMAGE_H_
