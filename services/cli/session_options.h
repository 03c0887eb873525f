// What `record`, `apply` and `demo` share: session options from settings.
#ifndef REPRISE_SERVICES_CLI_SESSION_OPTIONS_H_
#define REPRISE_SERVICES_CLI_SESSION_OPTIONS_H_

#include "absl/status/statusor.h"
#include "replay/recorder/session/session.h"
#include "services/cli/context.h"

namespace reprise {

// Builds, toolkit, threads and workers as the settings say; nothing to record.
absl::StatusOr<RecordOptions> SessionOptions(const CliContext& context);

}  // namespace reprise

#endif  // REPRISE_SERVICES_CLI_SESSION_OPTIONS_H_
