// Tuned code as applications on a GPU take it (driver/protocol.h): what the
// library needs to launch it, or why it may not. Thread-safe.
//
// Code is refused where its variables cannot be the application's: constants
// are copied, so they are taken; a variable that a kernel may write, or that
// another kernel writes, lies in the application's module only.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_TUNED_CODE_H_
#define REPRISE_REPLAY_RECORDER_SESSION_TUNED_CODE_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "replay/recorder/session/session.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// A driver_wire::Substitute and what follows it. `kernel` is the application's,
// as the driver describes it; `variables` are the names in its module. An error
// says why the code is refused.
absl::StatusOr<std::string> TunedCodeMessage(
    const Substitution& substitution, const v1::CompiledKernelInfo& kernel,
    const std::set<std::string>& variables);

// The same for code that is refused.
std::string RefusedCodeMessage(const Substitution& substitution);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_TUNED_CODE_H_
