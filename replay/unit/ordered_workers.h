// Runs a sequence of work items on several threads while the items are made and
// taken off in order by the caller's thread: the engine of the chunk store's
// streams.
#ifndef REPRISE_REPLAY_UNIT_ORDERED_WORKERS_H_
#define REPRISE_REPLAY_UNIT_ORDERED_WORKERS_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace reprise {

// The functions get the item's index and the slot it occupies meanwhile,
// index % window: what a slot stands for (a buffer) is the caller's.
struct OrderedWork {
  // Caller's thread, in order. False: there is no such item, the sequence ends.
  std::function<absl::StatusOr<bool>(size_t index, size_t slot)> produce;
  // Any thread, in any order, several at a time.
  std::function<absl::Status(size_t index, size_t slot)> work;
  // Caller's thread, in order, after the item's work. May be null.
  std::function<absl::Status(size_t index, size_t slot)> consume;
};

// At most `window` items are between produce and consume, at most `threads`
// (the caller's own included) in `work`. One item alone starts no thread.
// Returns the first error in item order; items after it may or may not have
// been worked on, and nothing runs any more when this returns.
absl::Status RunOrdered(int threads, size_t window, const OrderedWork& work);

}  // namespace reprise

#endif  // REPRISE_REPLAY_UNIT_ORDERED_WORKERS_H_
