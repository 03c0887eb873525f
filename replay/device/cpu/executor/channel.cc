#include "replay/device/cpu/executor/channel.h"

#include <zmq.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "replay/base/fault_point.h"
#include "replay/base/status_macros.h"

namespace reprise::cpu {
namespace {

absl::Status ZmqError(const char* what, const std::string& endpoint) {
  return absl::InternalError(absl::StrCat("cannot ", what, " ", endpoint, ": ",
                                          zmq_strerror(zmq_errno())));
}

class ChannelImpl : public Channel {
 public:
  explicit ChannelImpl(std::string endpoint)
      : endpoint_(std::move(endpoint)), context_(zmq_ctx_new()) {
    socket_ = zmq_socket(context_, ZMQ_PAIR);
    const int none = 0;
    zmq_setsockopt(socket_, ZMQ_LINGER, &none, sizeof(none));
  }
  ~ChannelImpl() override {
    if (socket_ != nullptr) zmq_close(socket_);
    zmq_ctx_term(context_);
  }

  absl::Status Open(bool bind) {
    if (socket_ == nullptr) return ZmqError("open", endpoint_);
    const int result = bind ? zmq_bind(socket_, endpoint_.c_str())
                            : zmq_connect(socket_, endpoint_.c_str());
    return result == 0 ? absl::OkStatus()
                       : ZmqError(bind ? "bind" : "connect to", endpoint_);
  }

  absl::StatusOr<Event> Send(const google::protobuf::MessageLite& message,
                             int descriptor, absl::Duration timeout) override {
    std::string bytes;
    if (!message.SerializeToString(&bytes)) {
      return absl::InvalidArgumentError(
          "a message does not serialize; it is over 2 GiB");
    }
    ASSIGN_OR_RETURN(const Event event, Poll(ZMQ_POLLOUT, descriptor, timeout));
    if (event != Event::kReady) return event;
    if (PassFaultPoint("channel") == Fault::kGarbled)
      bytes.resize(bytes.size() / 2);
    if (zmq_send(socket_, bytes.data(), bytes.size(), 0) < 0) {
      return ZmqError("send to", endpoint_);
    }
    return event;
  }

  absl::StatusOr<Event> Wait(int descriptor, absl::Duration timeout) override {
    return Poll(ZMQ_POLLIN, descriptor, timeout);
  }

  absl::Status Receive(google::protobuf::MessageLite* message) override {
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    int size;
    do {
      size = zmq_msg_recv(&frame, socket_, 0);
    } while (size < 0 && zmq_errno() == EINTR);
    absl::Status status;
    if (size < 0) {
      status = ZmqError("receive from", endpoint_);
    } else if (!message->ParseFromArray(zmq_msg_data(&frame), size)) {
      status = absl::DataLossError(
          absl::StrCat("got a malformed message of ", size, " bytes"));
    }
    zmq_msg_close(&frame);
    return status;
  }

 private:
  absl::StatusOr<Event> Poll(short events, int descriptor,
                             absl::Duration timeout) {
    zmq_pollitem_t items[2] = {{socket_, 0, events, 0},
                               {nullptr, descriptor, ZMQ_POLLIN, 0}};
    const int count = descriptor >= 0 ? 2 : 1;
    const absl::Time deadline = absl::Now() + timeout;
    while (true) {
      const absl::Duration left = deadline - absl::Now();
      // Rounded up, so that a rest below a millisecond does not spin.
      const int64_t ms = absl::ToInt64Milliseconds(
          std::max(left, absl::ZeroDuration()) + absl::Microseconds(999));
      const long wait = timeout == absl::InfiniteDuration()
                            ? -1
                            : static_cast<long>(std::min<int64_t>(ms, 1 << 30));
      const int ready = zmq_poll(items, count, wait);
      if (ready < 0 && zmq_errno() == EINTR) continue;
      if (ready < 0) return ZmqError("wait for", endpoint_);
      if (items[0].revents & events) return Event::kReady;
      if (count == 2 && items[1].revents != 0) return Event::kDescriptor;
      if (ready == 0 && absl::Now() >= deadline) return Event::kTimeout;
    }
  }

  const std::string endpoint_;
  void* context_;
  void* socket_;
};

absl::StatusOr<std::unique_ptr<Channel>> Open(const std::string& endpoint,
                                              bool bind) {
  auto channel = std::make_unique<ChannelImpl>(endpoint);
  RETURN_IF_ERROR(channel->Open(bind));
  return channel;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Channel>> Channel::Bind(
    const std::string& endpoint) {
  return Open(endpoint, true);
}

absl::StatusOr<std::unique_ptr<Channel>> Channel::Connect(
    const std::string& endpoint) {
  return Open(endpoint, false);
}

}  // namespace reprise::cpu
