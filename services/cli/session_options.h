// What `record`, `apply` and `demo` share: session options from settings.
#ifndef REPRISE_SERVICES_CLI_SESSION_OPTIONS_H_
#define REPRISE_SERVICES_CLI_SESSION_OPTIONS_H_

#include "absl/status/statusor.h"
#include "replay/recorder/session/session.h"
#include "reprise/v1/result.pb.h"
#include "services/cli/context.h"

namespace reprise {

// Builds, toolkit, threads and workers as the settings say; nothing to record.
absl::StatusOr<RecordOptions> SessionOptions(const CliContext& context);

// Where the setting `device` names a GPU, or finds one, the application runs
// there; else on the host, under the stand-in.
absl::Status ChooseRecordingDevice(const CliContext& context,
                                   RecordOptions* options);

// The tuned kernel of a result in the application, on the device that it was
// tuned for. FAILED_PRECONDITION: the settings choose another one.
absl::Status ChooseSubstitution(const CliContext& context,
                                const v1::Result& result,
                                RecordOptions* options);

}  // namespace reprise

#endif  // REPRISE_SERVICES_CLI_SESSION_OPTIONS_H_
