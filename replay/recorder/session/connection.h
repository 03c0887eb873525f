// Serves one application process over its socket (preload/protocol.h) until it
// hangs up. What it sends is not trusted: a malformed message ends the
// connection, not the recorder. Thread-safe for different connections.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_CONNECTION_H_
#define REPRISE_REPLAY_RECORDER_SESSION_CONNECTION_H_

#include <functional>
#include <string>

#include "replay/recorder/session/app_device.h"

namespace reprise {

struct ConnectionOptions {
  AppDevice::Shared shared;
  uint64_t device_memory_bytes = 0;
  std::string device_name;
  // A process carries its own CUDA runtime: its executable.
  std::function<void(const std::string& path)> on_static_runtime;
  // A process has begun to use CUDA.
  std::function<void()> on_hello;
};

// Returns when the other end is gone; does not close `fd`.
void ServeConnection(int fd, const ConnectionOptions& options);

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_CONNECTION_H_
