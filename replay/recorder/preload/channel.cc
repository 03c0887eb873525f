#include "replay/recorder/preload/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

namespace reprise::standin {
namespace {

// Out of the way of applications that count on low descriptor numbers.
constexpr int kLowestDescriptor = 700;

bool SendAll(int fd, iovec* parts, size_t count) {
  while (count > 0) {
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    while (count > 0 && static_cast<size_t>(sent) >= parts->iov_len) {
      sent -= static_cast<ssize_t>(parts->iov_len);
      ++parts;
      --count;
    }
    if (count > 0) {
      parts->iov_base = static_cast<char*>(parts->iov_base) + sent;
      parts->iov_len -= static_cast<size_t>(sent);
    }
  }
  return true;
}

iovec ToIovec(const void* data, size_t size) {
  return iovec{const_cast<void*>(data), size};
}

}  // namespace

bool Channel::Connect(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return false;
  }
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (high >= 0) {
    close(fd);
    fd = high;
  }
  while (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
         0) {
    if (errno == EINTR) continue;
    const int error = errno;
    close(fd);
    errno = error;
    return false;
  }
  fd_ = fd;
  return true;
}

void Channel::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool Channel::Send(wire::MessageType type, const Bytes* parts, size_t count) {
  wire::MessageHeader header{type, 0, 0};
  iovec pieces[kMaxParts + 1] = {ToIovec(&header, sizeof(header))};
  for (size_t i = 0; i < count; ++i) {
    pieces[i + 1] = ToIovec(parts[i].data, parts[i].size);
    header.bytes += parts[i].size;
  }
  return SendAll(fd_, pieces, count + 1);
}

bool Channel::SendHeader(wire::MessageType type, uint64_t payload_bytes) {
  const wire::MessageHeader header{type, 0, payload_bytes};
  return SendBytes(&header, sizeof(header));
}

bool Channel::SendBytes(const void* data, size_t size) {
  iovec piece = ToIovec(data, size);
  return SendAll(fd_, &piece, 1);
}

bool Channel::ReceiveHeader(wire::MessageType type, uint64_t* payload_bytes) {
  wire::MessageHeader header;
  if (!Receive(&header, sizeof(header)) || header.type != type) return false;
  *payload_bytes = header.bytes;
  return true;
}

bool Channel::Receive(void* data, size_t size) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = recv(fd_, at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool Channel::ReceiveWithDescriptor(void* data, size_t size, int* fd) {
  *fd = -1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec piece{data, size};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got = 0;
  do {
    got = recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) return false;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
      memcpy(fd, CMSG_DATA(part), sizeof(int));
  }
  return Receive(static_cast<char*>(data) + got,
                 size - static_cast<size_t>(got));
}

}  // namespace reprise::standin
