// The parent of an application that is recorded on a GPU: it runs there as it
// is, with libreprise_cuda.so preloaded; chosen launches are captured, and made
// units when the application has ended.
//
// Called by RunRecorded where RecordOptions::open_gpu is set; the same holds
// for both.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_GPU_SESSION_H_
#define REPRISE_REPLAY_RECORDER_SESSION_GPU_SESSION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/recorder/session/session.h"

namespace reprise {

absl::StatusOr<RecordResult> RunRecordedOnGpu(
    const RecordOptions& options, const std::vector<std::string>& argv);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_GPU_SESSION_H_
