// The socket that application processes connect to, and a thread for each.
// Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_APP_SERVER_H_
#define REPRISE_REPLAY_RECORDER_SESSION_APP_SERVER_H_

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "replay/base/file_util.h"

namespace reprise {

class AppServer {
 public:
  // Serves one connection until the other end is gone; does not close it. Runs
  // on a thread of its own for each.
  using Serve = std::function<void(int fd)>;
  // Listens in a private directory of its own.
  static absl::StatusOr<std::unique_ptr<AppServer>> Start(Serve serve);
  // Stop, and forgets the socket.
  ~AppServer();

  const std::string& path() const { return path_; }

  // Ends all connections; what a connection is doing, and what it has received,
  // is finished first. From one thread.
  void Stop();

 private:
  struct Client {
    int fd = -1;
    std::atomic<bool> done = false;
    std::thread thread;
  };

  AppServer(Serve serve, TemporaryDirectory directory, int fd);
  void Accept();
  void ForgetDone();  // requires mutex_
  void DrainBacklog() const;

  const Serve serve_;
  TemporaryDirectory directory_;
  const std::string path_;
  const int fd_;
  std::thread acceptor_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::list<Client> clients_;
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_APP_SERVER_H_
