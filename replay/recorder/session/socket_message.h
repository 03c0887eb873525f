// Messages over a local stream socket: a header that says type and size, then
// the payload. Both protocols of applications (preload/protocol.h,
// driver/protocol.h) have this form. Thread-safe for different sockets.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_SOCKET_MESSAGE_H_
#define REPRISE_REPLAY_RECORDER_SESSION_SOCKET_MESSAGE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace reprise {

// The payload of one message, taken apart front to back. A Take that says false
// found too few bytes and took none.
class Payload {
 public:
  explicit Payload(std::string bytes) : bytes_(std::move(bytes)) {}

  template <typename T>
  bool Take(T* value) {
    if (bytes_.size() - at_ < sizeof(T)) return false;
    std::memcpy(value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }
  bool Take(uint64_t size, std::string* text) {
    if (bytes_.size() - at_ < size) return false;
    *text = bytes_.substr(at_, size);
    at_ += size;
    return true;
  }
  std::string TakeRest() {
    std::string rest = bytes_.substr(at_);
    at_ = bytes_.size();
    return rest;
  }
  bool empty() const { return at_ == bytes_.size(); }

 private:
  const std::string bytes_;
  size_t at_ = 0;
};

// False: the other end is gone.
bool ReceiveAll(int socket, void* data, size_t size);
// Makes room as the bytes come: their number is the other end's claim.
bool ReceiveBytes(int socket, uint64_t size, std::string* bytes);
// `descriptor` (-1: none) travels with the first byte.
bool SendAll(int socket, const std::string& bytes, int descriptor = -1);

// A header, a struct and what follows it, in one buffer.
template <typename Header, typename T>
std::string MessageBytes(uint32_t type, const T& body,
                         const std::string& more = "") {
  const Header header{type, 0, sizeof(body) + more.size()};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(&body), sizeof(body));
  return bytes + more;
}

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_SOCKET_MESSAGE_H_
