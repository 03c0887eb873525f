#include "tests/replay/recorder/driver/scripted_parent.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>

#include "replay/recorder/session/image_window.h"

namespace reprise::testing {

namespace wire = driver_wire;

class ScriptedParent::Connection {
 public:
  Connection(int fd, const Script& script) : fd_(fd), script_(script) {}
  ~Connection() {
    if (counters_ != nullptr) munmap(counters_, kCounterBytes);
    close(fd_);
  }

  HeardProcess Serve() {
    wire::MessageHeader header;
    while (Read(&header, sizeof(header))) {
      payload_.resize(header.bytes);
      if (!Read(payload_.data(), payload_.size())) break;
      if (header.type == script_.vanish_at) break;
      at_ = 0;
      if (!Handle(header.type)) break;
    }
    for (size_t i = 0; counters_ != nullptr && i < heard_.kernels.size(); ++i) {
      const wire::KernelCounter& counter = counters_->kernels[i];
      heard_.kernels[i].launches = counter.launches;
      heard_.kernels[i].timed = counter.timed;
      heard_.kernels[i].total_ns = counter.total_ns;
      heard_.kernels[i].substituted = counter.substituted;
      std::copy(std::begin(counter.declined), std::end(counter.declined),
                heard_.kernels[i].declined);
    }
    return heard_;
  }

 private:
  static constexpr size_t kCounterBytes = sizeof(wire::ProcessCounters);

  bool Read(void* data, size_t size) {
    char* at = static_cast<char*>(data);
    while (size > 0) {
      const ssize_t got = recv(fd_, at, size, 0);
      if (got <= 0) return false;
      at += got;
      size -= static_cast<size_t>(got);
    }
    return true;
  }

  template <typename T>
  T Take() {
    T value;
    EXPECT_LE(at_ + sizeof(T), payload_.size());
    memcpy(static_cast<void*>(&value), payload_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string TakeText(size_t size) {
    EXPECT_LE(at_ + size, payload_.size());
    std::string text = payload_.substr(at_, size);
    at_ += size;
    return text;
  }
  std::string TakeRest() { return TakeText(payload_.size() - at_); }

  template <typename T>
  bool Answer(uint32_t type, const T& answer, const std::string& more = "",
              int descriptor = -1) {
    if (type == script_.nonsense_at) return AnswerNonsense();
    const wire::MessageHeader header{type, 0, sizeof(T) + more.size()};
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
    bytes.append(reinterpret_cast<const char*>(&answer), sizeof(answer));
    bytes += more;
    iovec piece{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    if (descriptor >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof(control);
      cmsghdr* part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(sizeof(int));
      memcpy(CMSG_DATA(part), &descriptor, sizeof(int));
    }
    return sendmsg(fd_, &message, MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  bool AnswerNonsense() {
    const std::string bytes(200, '\x7f');
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0;
  }

  bool Handle(uint32_t type) {
    switch (type) {
      case wire::kHello:
        return Hello();
      case wire::kKernel:
        return Kernel();
      case wire::kModule: {
        const auto notice = Take<wire::ModuleNotice>();
        heard_.modules[notice.module] = TakeText(notice.image_bytes);
        return true;
      }
      case wire::kSubstitutes:
        return Substitutes();
      case wire::kBegin:
        return Begin();
      case wire::kPrologue:
        return Prologue();
      case wire::kFilled:
        return Filled();
      case wire::kEpilogue:
        Epilogue();
        return true;
      case wire::kAbandon:
        Take<wire::AbandonNotice>();
        heard_.abandoned.push_back(TakeRest());
        return true;
      case wire::kProblem:
        heard_.problems.push_back(TakeRest());
        return true;
      default:
        ADD_FAILURE() << "message of type " << type;
        return false;
    }
  }

  bool Hello() {
    heard_.hello = Take<wire::HelloRequest>();
    heard_.executable = TakeRest();
    const int fd = memfd_create("counters", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, kCounterBytes), 0);
    counters_ = static_cast<wire::ProcessCounters*>(
        mmap(nullptr, kCounterBytes, PROT_READ, MAP_SHARED, fd, 0));
    wire::HelloReply reply;
    reply.flags = script_.flags;
    reply.arena_base = script_.arena_base;
    reply.arena_stride = script_.arena_stride;
    reply.patience_ms = script_.patience_ms;
    const bool ok = Answer(wire::kHello, reply, "", fd);
    close(fd);
    return ok;
  }

  bool Kernel() {
    HeardKernel kernel;
    kernel.request = Take<wire::KernelRequest>();
    EXPECT_EQ(kernel.request.kernel, heard_.kernels.size());
    for (uint32_t i = 0; i < kernel.request.parameter_count; ++i)
      kernel.parameters.push_back(Take<wire::Parameter>());
    kernel.name = TakeRest();
    heard_.kernels.push_back(kernel);
    return Answer(
        wire::kKernel,
        wire::KernelReply{script_.wanted(kernel.name) ? 1u : 0u,
                          script_.substitutes(kernel.name).empty() ? 0u : 1u});
  }

  bool Substitutes() {
    const auto request = Take<wire::SubstitutesRequest>();
    wire::SubstitutesReply reply;
    std::string all;
    for (const std::string& one :
         script_.substitutes(heard_.kernels.at(request.kernel).name)) {
      ++reply.count;
      all += one;
    }
    reply.bytes = all.size();
    return Answer(wire::kSubstitutes, reply, all) &&
           !script_.vanish_after_substitutes;
  }

  bool Begin() {
    const auto request = Take<wire::BeginRequest>();
    heard_.begins.push_back(request);
    const std::string& kernel = heard_.kernels.at(request.kernel).name;
    wire::BeginReply reply;
    reply.verdict = script_.verdict(kernel, request);
    std::string names;
    if (reply.verdict == wire::kRecord) {
      for (const std::string& name : script_.variables) names += name + '\0';
      HeardRecording recording;
      recording.begin = request;
      recording.kernel = kernel;
      recording.arguments = TakeText(request.argument_bytes);
      heard_.recordings.push_back(recording);
    }
    reply.name_bytes = static_cast<uint32_t>(names.size());
    return Answer(wire::kBegin, reply, names);
  }

  bool Prologue() {
    const auto request = Take<wire::PrologueRequest>();
    HeardRecording& recording = heard_.recordings.back();
    recording.prologue = request;
    uint64_t bytes = 0;
    uint64_t end = 0;
    for (uint32_t i = 0; i < request.range_count; ++i) {
      const auto range = Take<wire::LiveRange>();
      EXPECT_GE(range.address, end) << "ranges ascend and are disjoint";
      end = range.address + range.bytes;
      bytes += (range.bytes + 4095) / 4096 * 4096;
      recording.ranges.push_back({range, "", "", ""});
    }
    const std::string symbols = TakeText(request.symbol_bytes);
    for (HeardRange& range : recording.ranges)
      if (range.range.symbol_offset != ~0u)
        range.symbol = symbols.c_str() + range.range.symbol_offset;
    EXPECT_EQ(bytes, request.image_bytes);
    if ((request.hints & wire::kHintTexture) != 0 &&
        script_.textured != wire::kRecord)
      return Answer(wire::kPrologue,
                    wire::PrologueReply{script_.textured, 0, 0});
    image_.assign(bytes, '\0');
    wire::PrologueReply reply{wire::kRecord, ImageWindow::SlotsFor(bytes), 0};
    if (window_ == nullptr || window_->slots() < reply.slots) {
      window_ = *ImageWindow::Create(bytes);
      reply.new_window = 1;
    }
    if (!script_.vanish_while_copying) BeginPass();
    return Answer(wire::kPrologue, reply, "",
                  reply.new_window != 0 ? window_->fd() : -1) &&
           !script_.vanish_while_copying;
  }

  void BeginPass() {
    intake_.reset();
    intake_ = std::make_unique<ImageIntake>(
        window_.get(), image_.size(),
        [this](uint64_t offset, std::string_view piece) {
          memcpy(image_.data() + offset, piece.data(), piece.size());
        });
  }

  void Keep(std::string HeardRange::* where) {
    EXPECT_TRUE(intake_->Finish());
    uint64_t at = 0;
    for (HeardRange& range : heard_.recordings.back().ranges) {
      range.*where = image_.substr(at, range.range.bytes);
      at += (range.range.bytes + 4095) / 4096 * 4096;
    }
  }

  bool Filled() {
    Keep(&HeardRange::before);
    BeginPass();
    return Answer(wire::kFilled, wire::FilledReply{script_.filled, 0});
  }

  void Epilogue() {
    HeardRecording& recording = heard_.recordings.back();
    recording.end = Take<wire::EpilogueNotice>();
    if (recording.end.error != 0) return;
    Keep(&HeardRange::after);
    recording.complete = true;
  }

  int fd_;
  const Script& script_;
  std::string payload_;
  size_t at_ = 0;
  HeardProcess heard_;
  wire::ProcessCounters* counters_ = nullptr;
  std::unique_ptr<ImageWindow> window_;
  std::unique_ptr<ImageIntake> intake_;
  std::string image_;
};

ScriptedParent::ScriptedParent(const std::string& path, Script script)
    : script_(std::move(script)) {
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  EXPECT_LT(path.size(), sizeof(address.sun_path));
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  EXPECT_EQ(
      bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
      0);
  EXPECT_EQ(listen(listener_, 16), 0);
  acceptor_ = std::thread([this] { Accept(); });
}

ScriptedParent::~ScriptedParent() { Heard(); }

void ScriptedParent::Accept() {
  for (;;) {
    const int fd = accept(listener_, nullptr, nullptr);
    if (fd < 0) return;
    std::lock_guard lock(mutex_);
    threads_.emplace_back([this, fd] {
      HeardProcess heard = Connection(fd, script_).Serve();
      std::lock_guard lock(mutex_);
      heard_.push_back(std::move(heard));
    });
  }
}

const std::vector<HeardProcess>& ScriptedParent::Heard() {
  if (listener_ >= 0) {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    close(listener_);
    listener_ = -1;
    for (std::thread& thread : threads_) thread.join();
  }
  return heard_;
}

}  // namespace reprise::testing
