// An evaluation on its way through a replay server: what is asked for, and what
// comes of it.
#ifndef REPRISE_SERVICES_REPLAY_SERVER_EVALUATION_H_
#define REPRISE_SERVICES_REPLAY_SERVER_EVALUATION_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "reprise/v1/node.pb.h"
#include "reprise/v1/replay.pb.h"
#include "reprise/v1/types.pb.h"

namespace reprise {

struct EvaluationRequest {
  std::string unit_id;
  v1::Variant variant = {};
  int priority = 0;  // larger ones go first
  // From the request until the variant begins to run.
  absl::Duration queue_timeout = absl::InfiniteDuration();
  v1::Sampling sampling = {};
  bool fresh = false;  // take part in nothing, keep nothing
  // Asked when the variant is compiled, on a compile thread; false: it is not
  // worth running. Null: it is. Such a request takes part in no other.
  std::function<bool(const v1::CompileReply& code)> worth_running = nullptr;
};

struct Evaluated {
  // OK: `outcome` holds. CANCELLED; DEADLINE_EXCEEDED: it waited too long;
  // UNAVAILABLE: the server ends; ABORTED: not worth running;
  // FAILED_PRECONDITION and others: its unit could not be loaded again.
  absl::Status status = absl::OkStatus();
  v1::Outcome outcome = {};
  bool known = false;  // measured for somebody before
};

using EvaluationCallback = std::function<void(const Evaluated&)>;

}  // namespace reprise

#endif  // REPRISE_SERVICES_REPLAY_SERVER_EVALUATION_H_
