#include "replay/recorder/session/socket_message.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace reprise {

bool ReceiveAll(int socket, void* data, size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = recv(socket, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool ReceiveBytes(int socket, uint64_t size, std::string* bytes) {
  constexpr uint64_t kAtOnce = 1 << 20;
  bytes->clear();
  while (bytes->size() < size) {
    const size_t have = bytes->size();
    bytes->resize(have + std::min(size - have, std::max(kAtOnce, have)));
    if (!ReceiveAll(socket, bytes->data() + have, bytes->size() - have))
      return false;
  }
  return true;
}

bool SendAll(int socket, const std::string& bytes, int descriptor) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    iovec piece{const_cast<char*>(bytes.data()) + sent, bytes.size() - sent};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (descriptor >= 0 && sent == 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(part), &descriptor, sizeof(descriptor));
    }
    const ssize_t written = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    sent += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace reprise
