// What an application sends is not trusted.
#include "replay/recorder/session/connection.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "replay/recorder/preload/protocol.h"

namespace reprise {
namespace {

class ConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    app_ = ends[0];
    recorder_ = ends[1];
    options_.shared.arena = {0x200000000000, 64 << 20, 1 << 20};
    options_.device_memory_bytes = 1 << 20;
    options_.device_name = "test";
    options_.on_hello = [this] { ++hellos_; };
    options_.on_static_runtime = [this](const std::string& path) {
      static_runtime_ = path;
    };
    server_ = std::thread([this] { ServeConnection(recorder_, options_); });
  }

  void TearDown() override {
    Close();
    close(recorder_);
  }

  // Hangs up and waits for the server to be done.
  void Close() {
    if (app_ >= 0) close(app_);
    app_ = -1;
    if (server_.joinable()) server_.join();
  }

  void Send(uint32_t type, const std::string& payload) {
    const wire::MessageHeader header{type, 0, payload.size()};
    SendRaw({reinterpret_cast<const char*>(&header), sizeof(header)});
    SendRaw(payload);
  }
  void SendRaw(const std::string& bytes) {
    // The server may have hung up already; then this fails, as it should.
    (void)send(app_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  template <typename T>
  static std::string Bytes(const T& value) {
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
  }

  // The server ends the connection by itself: nothing more can be read.
  void ExpectHungUp() {
    server_.join();
    shutdown(recorder_, SHUT_RDWR);
  }

  wire::HelloReply Hello(uint32_t version = wire::kProtocolVersion) {
    Send(wire::kHello, Bytes(wire::HelloRequest{version, 1}));
    wire::MessageHeader header;
    wire::HelloReply reply;
    EXPECT_EQ(recv(app_, &header, sizeof(header), MSG_WAITALL),
              static_cast<ssize_t>(sizeof(header)));
    EXPECT_EQ(recv(app_, &reply, sizeof(reply), MSG_WAITALL),
              static_cast<ssize_t>(sizeof(reply)));
    return reply;
  }

  int app_ = -1;
  int recorder_ = -1;
  int hellos_ = 0;
  std::string static_runtime_;
  ConnectionOptions options_;
  std::thread server_;
};

TEST_F(ConnectionTest, SaysWhatTheDeviceIs) {
  const wire::HelloReply reply = Hello();
  EXPECT_EQ(reply.error, 0);
  EXPECT_EQ(reply.arena_base, 0x200000000000u);
  EXPECT_EQ(reply.device_memory_bytes, uint64_t{1} << 20);
  EXPECT_STREQ(reply.device_name, "test");
  Close();
  EXPECT_EQ(hellos_, 1);
}

TEST_F(ConnectionTest, ALibraryOfAnotherVersionGetsNoDevice) {
  EXPECT_EQ(Hello(wire::kProtocolVersion + 1).arena_bytes, 0u);
  Close();
  EXPECT_EQ(hellos_, 0);
}

TEST_F(ConnectionTest, HearsOfAStaticRuntime) {
  Send(wire::kStaticRuntime, "/bin/app");
  Close();
  EXPECT_EQ(static_runtime_, "/bin/app");
}

TEST_F(ConnectionTest, EndsOnAnUnknownMessage) {
  Send(99, "");
  ExpectHungUp();
}

TEST_F(ConnectionTest, EndsOnAQuestionBeforeHello) {
  Send(wire::kLaunch, Bytes(wire::LaunchRequest()));
  ExpectHungUp();
}

TEST_F(ConnectionTest, EndsOnAMessageThatIsTooLarge) {
  Hello();
  SendRaw(Bytes(wire::MessageHeader{wire::kLaunch, 0, ~uint64_t{0}}));
  ExpectHungUp();
}

TEST_F(ConnectionTest, EndsOnAnAllocationOutsideTheArena) {
  Hello();
  Send(wire::kAllocate, Bytes(wire::AllocateNotice{0x1000, 10, 1, 0}));
  ExpectHungUp();
}

TEST_F(ConnectionTest, EndsOnAShortMessage) {
  Hello();
  Send(wire::kAllocate, "short");
  ExpectHungUp();
}

TEST_F(ConnectionTest, EndsOnImagesThatAreNotThere) {
  Hello();
  Send(wire::kRegisterModule, Bytes(wire::RegisterModuleNotice{1, 1}) +
                                  Bytes(uint64_t{1} << 40) + "image");
  ExpectHungUp();
}

TEST_F(ConnectionTest, EndsOnArgumentsOfAnotherSize) {
  Hello();
  wire::LaunchRequest request;
  request.argument_bytes = 100;
  Send(wire::kLaunch, Bytes(request) + "few");
  ExpectHungUp();
}

TEST_F(ConnectionTest, ALaunchOfNothingIsAnError) {
  Hello();
  wire::LaunchRequest request;
  request.function = 5;
  Send(wire::kLaunch, Bytes(request));
  wire::MessageHeader header;
  wire::LaunchReply reply;
  recv(app_, &header, sizeof(header), MSG_WAITALL);
  ASSERT_EQ(recv(app_, &reply, sizeof(reply), MSG_WAITALL),
            static_cast<ssize_t>(sizeof(reply)));
  EXPECT_EQ(reply.error, kCudaInvalidDeviceFunction);
  EXPECT_EQ(reply.sticky, 0);
}

}  // namespace
}  // namespace reprise
