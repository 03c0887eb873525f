// The libraries that go into an application. Thread-safe as the environment is.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_PRELOAD_LIBRARY_H_
#define REPRISE_REPLAY_RECORDER_SESSION_PRELOAD_LIBRARY_H_

#include <string>

#include "absl/status/statusor.h"

namespace reprise {

// `given` if it is not empty, else `name` beside this executable or in ../lib.
// NOT_FOUND says where it was looked for.
absl::StatusOr<std::string> FindPreloadLibrary(const std::string& name,
                                               const std::string& given);

// $LD_PRELOAD with the library behind what is there.
std::string PreloadList(const std::string& library);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_PRELOAD_LIBRARY_H_
