// The source closure of a translation unit, kept in a chunk store.
#ifndef REPRISE_REPLAY_RECORDER_CC_SOURCE_CLOSURE_H_
#define REPRISE_REPLAY_RECORDER_CC_SOURCE_CLOSURE_H_

#include <string>

#include "absl/status/status.h"
#include "replay/unit/unit_store.h"
#include "reprise/v1/unit.pb.h"

namespace reprise {

// Preprocesses the unit for `architecture` and fills unit->files. Errors are
// Clang's or the store's. Thread-safe for different units.
absl::Status KeepSourceClosure(const std::string& architecture,
                               const std::string& cuda_home, ChunkStore& store,
                               v1::TranslationUnit* unit);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_CC_SOURCE_CLOSURE_H_
