// The stand-in's end of the socket to the recorder. Not thread-safe: the
// context's mutex guards it. A call that says false found the recorder gone;
// the channel is useless afterwards.
#ifndef REPRISE_REPLAY_RECORDER_PRELOAD_CHANNEL_H_
#define REPRISE_REPLAY_RECORDER_PRELOAD_CHANNEL_H_

#include <stddef.h>
#include <stdint.h>

#include "replay/recorder/preload/protocol.h"

namespace reprise::standin {

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
  bool Send(wire::MessageType type, const Bytes* parts, size_t count);
  template <typename T>
  bool Send(wire::MessageType type, const T& message, Bytes more = {}) {
    const Bytes parts[] = {{&message, sizeof(message)}, more};
    return Send(type, parts, 2);
  }
  // Bytes that belong to a message whose header SendHeader has announced.
  bool SendHeader(wire::MessageType type, uint64_t payload_bytes);
  bool SendBytes(const void* data, size_t size);

  // The payload's size of the answer to `type`.
  bool ReceiveHeader(wire::MessageType type, uint64_t* payload_bytes);
  bool Receive(void* data, size_t size);
  // The same for the first bytes of an answer that carries a descriptor; -1
  // where none came.
  bool ReceiveWithDescriptor(void* data, size_t size, int* fd);

 private:
  int fd_ = -1;
};

}  // namespace reprise::standin

#endif  // REPRISE_REPLAY_RECORDER_PRELOAD_CHANNEL_H_
