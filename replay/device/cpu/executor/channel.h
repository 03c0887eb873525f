// One end of the ZeroMQ pair between an executor and its parent: whole protobuf
// messages over ipc://. Not thread-safe.
#ifndef REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_CHANNEL_H_
#define REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_CHANNEL_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/message_lite.h"

namespace reprise::cpu {

class Channel {
 public:
  // endpoint: "ipc:///path". The parent binds, the child connects.
  static absl::StatusOr<std::unique_ptr<Channel>> Bind(
      const std::string& endpoint);
  static absl::StatusOr<std::unique_ptr<Channel>> Connect(
      const std::string& endpoint);
  virtual ~Channel() = default;

  // A peer that never comes would let both wait for ever, so they end early:
  // kDescriptor once `descriptor` (-1: none) is readable, kTimeout in the end.
  // kReady: the message is sent, or one is there to receive.
  enum class Event { kReady, kDescriptor, kTimeout };
  virtual absl::StatusOr<Event> Send(
      const google::protobuf::MessageLite& message, int descriptor,
      absl::Duration timeout) = 0;
  virtual absl::StatusOr<Event> Wait(int descriptor,
                                     absl::Duration timeout) = 0;
  // Blocks where Wait has not said kReady.
  virtual absl::Status Receive(google::protobuf::MessageLite* message) = 0;
};

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_EXECUTOR_CHANNEL_H_
