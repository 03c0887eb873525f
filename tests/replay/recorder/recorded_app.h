// Runs a command under a recording session for tests, with its output caught.
// Not thread-safe.
#ifndef REPRISE_TESTS_REPLAY_RECORDER_RECORDED_APP_H_
#define REPRISE_TESTS_REPLAY_RECORDER_RECORDED_APP_H_

#include <cstdlib>
#include <string>
#include <vector>

#include "replay/recorder/session/session.h"
#include "tests/replay/recorder/shell.h"

namespace reprise::testing {

inline std::string SourceDirectory() {
  const char* directory = std::getenv("REPRISE_SOURCE_DIR");
  return directory != nullptr ? directory : ".";
}

inline std::string BinaryDirectory() {
  const char* directory = std::getenv("REPRISE_BINARY_DIR");
  return directory != nullptr ? directory : ".";
}

struct RecordedRun {
  absl::Status status;
  RecordResult result;
  std::string out;  // of the application
  std::string err;
};

inline RecordOptions TestOptions() {
  RecordOptions options;
  options.preload_library = BinaryDirectory() + "/lib/libreprise_cudart.so";
  options.device_memory_bytes = uint64_t{1} << 30;
  options.launch_timeout = absl::Minutes(2);
  return options;
}

// Runs a shell command in `directory` as the application.
inline RecordedRun RunUnder(const RecordOptions& options,
                            const std::string& directory,
                            const std::string& command) {
  const std::string out = directory + "/.app.stdout";
  const std::string err = directory + "/.app.stderr";
  const auto result =
      RunRecorded(options, {"/bin/sh", "-c",
                            "cd '" + directory + "' && exec >'" + out +
                                "' 2>'" + err + "' && " + command});
  RecordedRun run;
  run.status = result.status();
  if (result.ok()) run.result = *result;
  run.out = Slurp(out);
  run.err = Slurp(err);
  return run;
}

}  // namespace reprise::testing

#endif  // REPRISE_TESTS_REPLAY_RECORDER_RECORDED_APP_H_
