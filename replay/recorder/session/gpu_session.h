// The parent of an application that is recorded on a GPU: it runs there as it
// is, with libreprise_cuda.so preloaded; chosen launches are captured, and made
// units when the application has ended.
//
// Called by RunRecorded where RecordOptions::open_gpu is set; the same holds
// for both.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_GPU_SESSION_H_
#define REPRISE_REPLAY_RECORDER_SESSION_GPU_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "replay/compiler/compile_pool.h"
#include "replay/recorder/session/session.h"

namespace reprise {

// The compile workers of either kind of session.
absl::StatusOr<std::unique_ptr<CompilePool>> CreateRecordingPool(
    const RecordOptions& options);

absl::StatusOr<RecordResult> RunRecordedOnGpu(
    const RecordOptions& options, const std::vector<std::string>& argv);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_GPU_SESSION_H_
