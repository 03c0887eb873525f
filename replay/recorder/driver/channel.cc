#include "replay/recorder/driver/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

namespace reprise::driver {
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

int AboveLowest(int fd) {
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (high < 0) return fd;
  close(fd);
  return high;
}

// Keeps the first descriptor of a message, closes others.
void TakeDescriptors(msghdr* message, int* descriptor) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr;
       part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
      continue;
    const size_t bytes = part->cmsg_len - CMSG_LEN(0);
    for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(part) + at, sizeof(int));
      if (*descriptor < 0)
        *descriptor = fd;
      else
        close(fd);
    }
  }
}

}  // namespace

bool Channel::Connect(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = strlen(path);
  if (length >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return false;
  }
  memcpy(address.sun_path, path, length + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  fd = AboveLowest(fd);
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

bool Channel::Send(driver_wire::MessageType type, const Bytes* parts,
                   size_t count) {
  driver_wire::MessageHeader header{type, 0, 0};
  iovec pieces[kMaxParts + 1] = {{&header, sizeof(header)}};
  for (size_t i = 0; i < count; ++i) {
    pieces[i + 1] = {const_cast<void*>(parts[i].data), parts[i].size};
    header.bytes += parts[i].size;
  }
  return fd_ >= 0 && SendAll(fd_, pieces, count + 1);
}

bool Channel::ReceiveAll(void* data, size_t size, int* descriptor) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
    iovec piece{at, size};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    TakeDescriptors(&message, descriptor);
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

bool Channel::ReceiveStruct(driver_wire::MessageType type, void* data,
                            size_t size, uint64_t* rest, uint64_t max_rest,
                            int* descriptor) {
  driver_wire::MessageHeader header;
  int taken = -1;
  bool ok = fd_ >= 0 && ReceiveAll(&header, sizeof(header), &taken) &&
            header.type == type && header.bytes >= size &&
            header.bytes - size <= max_rest && ReceiveAll(data, size, &taken);
  if (rest != nullptr) *rest = ok ? header.bytes - size : 0;
  if (descriptor != nullptr)
    *descriptor = taken;
  else if (taken >= 0)
    close(taken);
  return ok;
}

bool Channel::ReceiveBytes(void* data, size_t size) {
  int taken = -1;
  const bool ok = ReceiveAll(data, size, &taken);
  if (taken >= 0) close(taken);
  return ok;
}

bool Channel::PeerListens() const {
  char byte = 0;
  return fd_ >= 0 && recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

}  // namespace reprise::driver
