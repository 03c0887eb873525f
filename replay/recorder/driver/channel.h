// The library's end of the socket to `reprise record`. Not thread-safe: the
// process's channel mutex guards it. A call that says false found the parent
// gone or its answer malformed; the channel is useless afterwards.
#ifndef REPRISE_REPLAY_RECORDER_DRIVER_CHANNEL_H_
#define REPRISE_REPLAY_RECORDER_DRIVER_CHANNEL_H_

#include <stddef.h>
#include <stdint.h>

#include "replay/recorder/driver/protocol.h"

namespace reprise::driver {

struct Bytes {
  const void* data = nullptr;
  size_t size = 0;
};

class Channel {
 public:
  constexpr Channel() = default;

  // False with errno set.
  bool Connect(const char* path);
  void Close();

  // One message made of up to kMaxParts parts in a row.
  static constexpr size_t kMaxParts = 3;
  bool Send(driver_wire::MessageType type, const Bytes* parts, size_t count);
  template <typename T>
  bool Send(driver_wire::MessageType type, const T& message, Bytes more = {},
            Bytes last = {}) {
    const Bytes parts[] = {{&message, sizeof(message)}, more, last};
    return Send(type, parts, 3);
  }

  // Receives an answer to `type`: its struct, and the descriptor that came with
  // it (-1: none; not wanted: closed). `rest` is the size of what follows the
  // struct and must be received next; more than max_rest is malformed.
  template <typename T>
  bool Receive(driver_wire::MessageType type, T* answer,
               uint64_t* rest = nullptr, uint64_t max_rest = 0,
               int* descriptor = nullptr) {
    return ReceiveStruct(type, answer, sizeof(*answer), rest, max_rest,
                         descriptor);
  }
  bool ReceiveBytes(void* data, size_t size);

  // Whether the parent's end is open.
  bool PeerListens() const;

 private:
  bool ReceiveStruct(driver_wire::MessageType type, void* data, size_t size,
                     uint64_t* rest, uint64_t max_rest, int* descriptor);
  bool ReceiveAll(void* data, size_t size, int* descriptor);

  int fd_ = -1;
};

}  // namespace reprise::driver

#endif  // REPRISE_REPLAY_RECORDER_DRIVER_CHANNEL_H_
