#include "replay/recorder/session/app_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "replay/recorder/session/socket_message.h"

namespace reprise {
namespace {

// -1: nobody listens.
int Connect(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0)
    return fd;
  close(fd);
  return -1;
}

TEST(AppServerTest, HearsEveryProcessToItsEnd) {
  std::mutex mutex;
  std::string heard;
  auto server = AppServer::Start([&](int fd) {
    char byte;
    while (ReceiveAll(fd, &byte, 1)) {
      const std::lock_guard<std::mutex> lock(mutex);
      heard += byte;
    }
  });
  ASSERT_TRUE(server.ok()) << server.status();
  constexpr int kProcesses = 40;
  std::vector<std::thread> processes;
  for (int i = 0; i < kProcesses; ++i) {
    processes.emplace_back([path = (*server)->path()] {
      const int fd = Connect(path);
      ASSERT_GE(fd, 0);
      EXPECT_TRUE(SendAll(fd, "abc"));
      close(fd);
    });
  }
  for (std::thread& process : processes) process.join();
  // The last of them may not even be accepted yet.
  (*server)->Stop();
  EXPECT_EQ(heard.size(), 3u * kProcesses);
  EXPECT_EQ(Connect((*server)->path()), -1);
}

TEST(AppServerTest, StopEndsConnectionsThatWait) {
  std::atomic<int> served = 0;
  auto server = AppServer::Start([&](int fd) {
    char byte;
    EXPECT_FALSE(ReceiveAll(fd, &byte, 1));
    ++served;
  });
  ASSERT_TRUE(server.ok());
  const int fd = Connect((*server)->path());
  ASSERT_GE(fd, 0);
  (*server)->Stop();
  EXPECT_EQ(served, 1);
  char byte;
  EXPECT_EQ(recv(fd, &byte, 1, 0), 0);
  close(fd);
  (*server)->Stop();  // again: nothing
}

// A process whose connection is no longer served must not wait for answers.
TEST(AppServerTest, HangsUpWhenItServesNoMore) {
  auto server = AppServer::Start([](int) {});
  ASSERT_TRUE(server.ok());
  const int fd = Connect((*server)->path());
  ASSERT_GE(fd, 0);
  const timeval patience{20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  char byte;
  EXPECT_EQ(recv(fd, &byte, 1, 0), 0);
  close(fd);
}

TEST(AppServerTest, ServesAgainAfterItHadNoDescriptorsLeft) {
  auto server = AppServer::Start([](int fd) { SendAll(fd, "x"); });
  ASSERT_TRUE(server.ok());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (*server)->path().c_str());
  // An accept that waits already may have its descriptor.
  int processes[2];
  for (int& fd : processes) {
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{20, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit none{0, limit.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  for (const int fd : processes) {
    EXPECT_EQ(
        connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  setrlimit(RLIMIT_NOFILE, &limit);
  for (const int fd : processes) {
    char byte;
    EXPECT_EQ(recv(fd, &byte, 1, 0), 1);
    close(fd);
  }
}

TEST(SocketMessageTest, BelievesNoSize) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const std::string sent(3 << 20, 'x');
  std::thread sender([&] {
    EXPECT_TRUE(SendAll(sockets[0], sent + "rest"));
    close(sockets[0]);
  });
  std::string bytes = "old";
  EXPECT_TRUE(ReceiveBytes(sockets[1], sent.size(), &bytes));
  EXPECT_TRUE(bytes == sent);
  EXPECT_FALSE(ReceiveBytes(sockets[1], uint64_t{1} << 60, &bytes));
  EXPECT_LE(bytes.capacity(), size_t{8} << 20);
  EXPECT_TRUE(ReceiveBytes(sockets[1], 0, &bytes));
  sender.join();
  close(sockets[1]);
}

TEST(SocketMessageTest, CarriesADescriptorAndTakesPayloadsApart) {
  struct Header {
    uint32_t type;
    uint32_t reserved;
    uint64_t bytes;
  };
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const std::string message =
      MessageBytes<Header>(7, uint32_t{42}, std::string("more"));
  EXPECT_TRUE(SendAll(ends[0], message, pipe_ends[1]));
  std::string got(message.size(), '\0');
  EXPECT_TRUE(ReceiveAll(ends[1], got.data(), got.size()));
  Payload payload(got);
  Header header;
  uint32_t number = 0;
  std::string text;
  EXPECT_TRUE(payload.Take(&header));
  EXPECT_EQ(header.type, 7u);
  EXPECT_EQ(header.bytes, sizeof(number) + 4);
  EXPECT_TRUE(payload.Take(&number));
  EXPECT_EQ(number, 42u);
  EXPECT_FALSE(payload.Take(5, &text));
  EXPECT_TRUE(payload.Take(2, &text));
  EXPECT_EQ(text, "mo");
  EXPECT_EQ(payload.TakeRest(), "re");
  EXPECT_TRUE(payload.empty());
  EXPECT_FALSE(payload.Take(&number));
  close(ends[0]);
  EXPECT_FALSE(ReceiveAll(ends[1], got.data(), 1));
  close(ends[1]);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

}  // namespace
}  // namespace reprise
