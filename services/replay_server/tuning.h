// An inner tuner beside its device: trials of one source stream through a
// ReplayCore, several on their way at a time.
//
// Trials that come down to machine code and a launch that another trial had
// are not run. Blocks; thread-safe.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_TUNING_H_
#define REPRISE_SERVICES_REPLAY_SERVER_TUNING_H_

#include <functional>

#include "absl/status/status.h"
#include "reprise/v1/replay.pb.h"
#include "services/replay_server/replay_core.h"

namespace reprise {

// Events are replay.proto's: a start, trials as they end, an end. They come on
// the calling thread. `given_up` is asked now and then; true: what has not
// begun is cancelled, and there is no end event.
//
// INVALID_ARGUMENT: neither trials nor seconds, or an unknown sampler.
// NOT_FOUND and others: as for an evaluation of the unit. UNAVAILABLE: the
// server ends; the trials that were told hold.
absl::Status RunTuning(
    ReplayCore& core, const v1::TuneRequest& request,
    const std::function<bool()>& given_up,
    const std::function<void(const v1::TuneResponse&)>& event);

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_TUNING_H_
