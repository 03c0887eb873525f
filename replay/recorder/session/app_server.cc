#include "replay/recorder/session/app_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"

namespace reprise {
namespace {

constexpr int kBacklog = 64;
// How long Stop waits for the backlog to be taken up, in steps of a
// millisecond.
constexpr int kDrainSteps = 2000;

constexpr std::chrono::milliseconds kPause(10);

// Whether Stop shut it down.
bool IsShut(int fd) {
  pollfd socket = {fd, 0, 0};
  return poll(&socket, 1, 0) > 0 && (socket.revents & POLLHUP) != 0;
}

std::string SocketPath(const TemporaryDirectory& directory) {
  return absl::StrCat(directory.path(), "/cuda");
}

}  // namespace

absl::StatusOr<std::unique_ptr<AppServer>> AppServer::Start(Serve serve) {
  ASSIGN_OR_RETURN(TemporaryDirectory directory,
                   TemporaryDirectory::Create("reprise-record"));
  const std::string path = SocketPath(directory);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the path of a socket has at most ", sizeof(address.sun_path) - 1,
        " bytes, got ", path, "; set TMPDIR to a shorter one"));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoToStatus(errno, "cannot create a socket");
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, kBacklog) != 0) {
    const int error = errno;
    close(fd);
    return ErrnoToStatus(error, absl::StrCat("cannot listen at ", path));
  }
  return std::unique_ptr<AppServer>(
      new AppServer(std::move(serve), std::move(directory), fd));
}

AppServer::AppServer(Serve serve, TemporaryDirectory directory, int fd)
    : serve_(std::move(serve)),
      directory_(std::move(directory)),
      path_(SocketPath(directory_)),
      fd_(fd) {
  acceptor_ = std::thread([this] { Accept(); });
}

AppServer::~AppServer() { Stop(); }

void AppServer::Accept() {
  for (;;) {
    const int client = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (client < 0) {
      if (IsShut(fd_)) return;
      // No descriptor or memory for one more now.
      std::this_thread::sleep_for(kPause);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    ForgetDone();
    if (client < 0) continue;
    Client& added = clients_.emplace_back();
    added.fd = client;
    added.thread = std::thread([this, &added] {
      serve_(added.fd);
      // Whoever still waits for an answer gets none.
      shutdown(added.fd, SHUT_RDWR);
      added.done = true;
    });
  }
}

void AppServer::ForgetDone() {
  for (auto client = clients_.begin(); client != clients_.end();) {
    if (client->done) {
      client->thread.join();
      close(client->fd);
      client = clients_.erase(client);
    } else {
      ++client;
    }
  }
}

// What a process said before it ended may still wait to be accepted.
void AppServer::DrainBacklog() const {
  pollfd waiting = {fd_, POLLIN, 0};
  for (int i = 0; i < kDrainSteps && poll(&waiting, 1, 0) > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void AppServer::Stop() {
  if (stopped_) return;
  stopped_ = true;
  DrainBacklog();
  shutdown(fd_, SHUT_RDWR);
  acceptor_.join();
  for (Client& client : clients_) {
    shutdown(client.fd, SHUT_RDWR);  // what has arrived is still read
    client.thread.join();
    close(client.fd);
  }
  clients_.clear();
  close(fd_);
}

}  // namespace reprise
