// A launch on its way from the driver protocol to a unit. The test plays the
// library inside the application; the cpu device plays the GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "replay/base/file_util.h"
#include "replay/base/process.h"
#include "replay/compiler/compile_pool.h"
#include "replay/device/cpu/cpu_device.h"
#include "replay/recorder/cc/device_images.h"
#include "replay/recorder/driver/protocol.h"
#include "replay/recorder/session/driver_connection.h"
#include "replay/recorder/session/recording_finisher.h"
#include "replay/unit/interval_set.h"
#include "replay/unit/unit_store.h"
#include "tests/replay/recorder/recorded_app.h"

namespace reprise {
namespace {

namespace wire = driver_wire;
using ::testing::HasSubstr;

constexpr uint64_t kArena = 0x200000000000;
constexpr char kScale[] = "_Z5ScalePffi";
constexpr char kEndless[] = "_Z7EndlessPVf";
// Memory of no process here.
constexpr uint64_t kNowhere = 0x123456789000;

template <typename T>
std::string Bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

// The device code of the test program, as the application would load it.
class Program {
 public:
  Program() {
    auto directory = TemporaryDirectory::Create("capture");
    EXPECT_TRUE(directory.ok());
    directory_ = std::make_unique<TemporaryDirectory>(*std::move(directory));
    setenv("REPRISE_HOME", (directory_->path() + "/home").c_str(), 1);
    const auto built = testing::Shell(
        directory_->path(),
        *SelfExecutable() + " cc " + testing::ClangCuda() + " -O2 -c " +
            testing::SourceDirectory() +
            "/tests/replay/recorder/programs/behaviours.cu -o app.o");
    EXPECT_EQ(built.exit_code(), 0) << built.err;
    const std::string path = directory_->path() + "/app.o";
    object_ = *ReadFile(path);
    const auto images = FindDeviceImages(object_, path, &storage_);
    EXPECT_TRUE(images.ok());
    image_ = std::string(images->front().bytes);
  }
  const std::string& image() const { return image_; }
  std::string path(const std::string& name) const {
    return directory_->path() + "/" + name;
  }

 private:
  std::unique_ptr<TemporaryDirectory> directory_;
  std::string object_;
  std::deque<std::string> storage_;
  std::string image_;
};

// The cpu device, which has no memory for its first `refusals` units.
class LateDevice : public Device {
 public:
  explicit LateDevice(int refusals) : refusals_(refusals) {}
  const DeviceFacts& facts() const override { return device_->facts(); }
  v1::CompileTarget compile_target() const override {
    return device_->compile_target();
  }
  absl::StatusOr<std::unique_ptr<ResidentUnit>> Load(
      const UnitReader& unit, const LoadOptions& options) override {
    if (refusals_-- > 0) return absl::ResourceExhaustedError("no room");
    return device_->Load(unit, options);
  }
  int refusals() const { return refusals_; }

 private:
  const std::unique_ptr<Device> device_ = *CreateCpuDevice({});
  int refusals_;
};

class CaptureTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { program_ = new Program(); }
  static void TearDownTestSuite() {
    delete program_;
    program_ = nullptr;
  }

  void SetUp() override {
    auto directory = TemporaryDirectory::Create("store");
    ASSERT_TRUE(directory.ok());
    directory_ = std::make_unique<TemporaryDirectory>(*std::move(directory));
    store_ = *UnitStore::Open({.directory = directory_->path()});
    pool_ = *CompilePool::Create({});
    ProgramCatalog::Options catalog;
    catalog.cuda_home = testing::CudaHome();
    catalog.host_code = false;
    catalog_ = *ProgramCatalog::Create(catalog, pool_.get());
    ledger_ = *LaunchLedger::Create({true, "", {}, 0, 1});
    options_.arena_base = kArena;
    options_.arena_stride = uint64_t{1} << 40;
    options_.catalog = catalog_.get();
    options_.ledger = ledger_.get();
    options_.substitutions = &substitutions_;
    options_.captures = &captures_;
    options_.max_unit_bytes = 1 << 20;
    options_.on_hello = [] {};
    Connect();
  }

  void TearDown() override { HangUp(); }

  // Another process of the application.
  void Connect() {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    app_ = ends[0];
    parent_ = ends[1];
    server_ = std::thread([this] { ServeDriverConnection(parent_, options_); });
  }

  void HangUp() {
    if (app_ >= 0) close(app_);
    app_ = -1;
    if (server_.joinable()) server_.join();
    if (parent_ >= 0) close(parent_);
    parent_ = -1;
  }

  void Send(uint32_t type, const std::string& payload) {
    const wire::MessageHeader header{type, 0, payload.size()};
    const std::string bytes = Bytes(header) + payload;
    (void)send(app_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  // What follows the struct is in `more`, a descriptor in `fd`.
  template <typename T>
  T Receive(uint32_t type, std::string* more = nullptr, int* fd = nullptr) {
    wire::MessageHeader header;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    iovec piece{&header, sizeof(header)};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    EXPECT_EQ(recvmsg(app_, &message, MSG_WAITALL),
              static_cast<ssize_t>(sizeof(header)));
    EXPECT_EQ(header.type, type);
    const cmsghdr* part = CMSG_FIRSTHDR(&message);
    if (fd != nullptr && part != nullptr)
      std::memcpy(fd, CMSG_DATA(part), sizeof(*fd));
    T body;
    EXPECT_EQ(recv(app_, &body, sizeof(body), MSG_WAITALL),
              static_cast<ssize_t>(sizeof(body)));
    std::string rest(header.bytes - sizeof(body), '\0');
    if (!rest.empty()) recv(app_, rest.data(), rest.size(), MSG_WAITALL);
    if (more != nullptr) *more = std::move(rest);
    return body;
  }

  void Hello() {
    Send(wire::kHello, Bytes(wire::HelloRequest()) + "/bin/app");
    const auto reply =
        Receive<wire::HelloReply>(wire::kHello, nullptr, &counters_fd_);
    EXPECT_EQ(reply.arena_base, kArena);
    ASSERT_GE(counters_fd_, 0);
    void* mapping = mmap(nullptr, sizeof(wire::ProcessCounters),
                         PROT_READ | PROT_WRITE, MAP_SHARED, counters_fd_, 0);
    ASSERT_NE(mapping, MAP_FAILED);
    counters_ = static_cast<wire::ProcessCounters*>(mapping);
  }

  // With the parameters of kScale, or the first of them.
  wire::KernelReply AddKernel(const std::string& name) {
    wire::KernelRequest request;
    request.parameter_count = name == kEndless ? 1 : 3;
    request.module = 1;
    std::string parameters = Bytes(wire::Parameter{0, 8}) +
                             Bytes(wire::Parameter{8, 4}) +
                             Bytes(wire::Parameter{12, 4});
    parameters.resize(request.parameter_count * sizeof(wire::Parameter));
    argument_bytes_ = name == kEndless ? 8 : 16;
    Send(wire::kKernel, Bytes(request) + parameters + name);
    return Receive<wire::KernelReply>(wire::kKernel);
  }

  void AddModule(const std::string& image) {
    Send(wire::kModule, Bytes(wire::ModuleNotice{1, image.size()}) + image);
  }

  wire::BeginReply Begin(std::string* names, uint64_t pointer = kArena,
                         uint32_t device = 0) {
    wire::BeginRequest request;
    request.device = device;
    request.grid[0] = request.grid[1] = request.grid[2] = 1;
    request.block[0] = 256;
    request.block[1] = request.block[2] = 1;
    std::string arguments = Bytes(pointer) + Bytes(2.0f) + Bytes(int32_t{100});
    arguments.resize(argument_bytes_);
    request.argument_bytes = static_cast<uint32_t>(arguments.size());
    Send(wire::kBegin, Bytes(request) + arguments);
    return Receive<wire::BeginReply>(wire::kBegin, names);
  }

  // Two allocations, the first with 100 floats that the launch doubles. `extra`
  // has what the arguments tell.
  void Record(const wire::PrologueRequest& extra = {}) {
    const std::vector<wire::LiveRange> ranges = {
        {kArena, 400, wire::kOriginDevice},
        {kArena + 4096, 70000, wire::kOriginDevice}};
    wire::PrologueRequest request = extra;
    request.range_count = 2;
    request.image_bytes = 4096 + 73728;
    Send(wire::kPrologue, Bytes(request) + Bytes(ranges[0]) + Bytes(ranges[1]));
    int fd = -1;
    const auto reply =
        Receive<wire::PrologueReply>(wire::kPrologue, nullptr, &fd);
    ASSERT_EQ(reply.verdict, wire::kRecord);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(reply.new_window, 1u);
    ASSERT_EQ(reply.slots, 1u);
    const size_t window_bytes = wire::kWindowControlBytes + wire::kSlotBytes;
    void* mapping =
        mmap(nullptr, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    ASSERT_NE(mapping, MAP_FAILED);
    auto* control = static_cast<wire::WindowControl*>(mapping);
    auto* values = reinterpret_cast<float*>(static_cast<char*>(mapping) +
                                            wire::kWindowControlBytes);
    for (int i = 0; i < 100; ++i) values[i] = static_cast<float>(i);
    if (argument_bytes_ == 8) values[0] = 1;  // for kEndless
    control->ready = 1;
    Send(wire::kFilled, Bytes(wire::FilledRequest()));
    ASSERT_EQ(Receive<wire::FilledReply>(wire::kFilled).verdict, wire::kRecord);
    for (int i = 0; i < 100; ++i) values[i] *= 2;
    control->ready = 1;
    wire::EpilogueNotice notice;
    notice.duration_ns = 5000;
    Send(wire::kEpilogue, Bytes(notice));
    counters_->kernels[0].launches = 7;
    munmap(mapping, window_bytes);
  }

  // A process that launches a kernel of this module, records it and ends.
  void CaptureOne(const std::string& kernel, const std::string& image,
                  std::vector<CapturedLaunch>* captures) {
    Hello();
    AddKernel(kernel);
    AddModule(image);
    std::string names;
    ASSERT_EQ(Begin(&names).verdict, wire::kRecord);
    Record();
    HangUp();
    *captures = captures_.Take();
    ASSERT_EQ(captures->size(), 1u);
  }

  absl::Status Finish(const CapturedLaunch& captured,
                      absl::Duration launch_timeout = absl::Minutes(1)) {
    const std::unique_ptr<Device> device = *CreateCpuDevice({});
    RecordingFinisher finisher({1 << 20, launch_timeout, {"./app"}},
                               device.get(), store_.get(), ledger_.get());
    return finisher.Finish(captured);
  }

  static Program* program_;
  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<UnitStore> store_;
  std::unique_ptr<CompilePool> pool_;
  std::unique_ptr<ProgramCatalog> catalog_;
  std::unique_ptr<LaunchLedger> ledger_;
  Substitutions substitutions_{{}};
  CaptureList captures_;
  DriverConnectionOptions options_;
  int app_ = -1;
  int parent_ = -1;
  uint32_t argument_bytes_ = 16;
  int counters_fd_ = -1;
  wire::ProcessCounters* counters_ = nullptr;
  std::thread server_;
};

Program* CaptureTest::program_ = nullptr;

TEST_F(CaptureTest, BecomesAUnitOfWhatTheKernelTouches) {
  Hello();
  EXPECT_EQ(AddKernel(kScale).wanted, 1u);
  AddModule(program_->image());
  std::string names;
  ASSERT_EQ(Begin(&names).verdict, wire::kRecord);
  EXPECT_THAT(names, HasSubstr(std::string("counter\0", 8)));
  Record();
  // One unit per kernel was asked for.
  EXPECT_EQ(Begin(&names).verdict, wire::kNever);
  HangUp();

  const std::vector<CapturedLaunch> captures = captures_.Take();
  ASSERT_EQ(captures.size(), 1u);
  ASSERT_TRUE(captures[0].program != nullptr) << captures[0].no_source;
  const absl::Status finished = Finish(captures[0]);
  ASSERT_TRUE(finished.ok()) << finished;
  RecordResult result;
  ASSERT_TRUE(ledger_->Finish(store_.get(), &result).ok());
  ASSERT_EQ(result.units.size(), 1u);
  EXPECT_EQ(result.kernels[0].launches, 7u);

  const v1::Unit unit = store_->Open(result.units[0])->manifest();
  EXPECT_EQ(unit.kernel().symbol(), kScale);
  EXPECT_EQ(unit.kernel().parameters(0).name(), "x");
  ASSERT_EQ(unit.memory_size(), 1);
  EXPECT_EQ(unit.memory(0).address(), kArena);
  EXPECT_EQ(unit.memory(0).bytes(), 400u);
  EXPECT_EQ(unit.memory(0).element_type(), v1::ELEMENT_TYPE_F32);
  const auto writes = IntervalSet::Decode(
      *store_->chunks().GetString(unit.memory(0).write_set()), 400);
  ASSERT_TRUE(writes.ok());
  EXPECT_EQ(writes->bytes(), 400u);
  std::vector<float> after(100);
  ASSERT_TRUE(store_->chunks()
                  .GetInto(unit.memory(0).epilogue(),
                           reinterpret_cast<char*>(after.data()))
                  .ok());
  EXPECT_EQ(after[99], 198.0f);
  EXPECT_EQ(unit.provenance().occurrence_count(), 7u);
  EXPECT_EQ(unit.machine_code().bytes(), program_->image().size());
}

TEST_F(CaptureTest, WaitsForADeviceThatIsStillTakingMemoryBack) {
  std::vector<CapturedLaunch> captures;
  ASSERT_NO_FATAL_FAILURE(CaptureOne(kScale, program_->image(), &captures));
  const auto finish = [&](LateDevice* device, absl::Duration patience) {
    RecordingFinisher finisher({1 << 20, absl::Minutes(1), {"./app"}, patience},
                               device, store_.get(), ledger_.get());
    return finisher.Finish(captures[0]);
  };
  LateDevice late(2);
  const absl::Status status = finish(&late, absl::Minutes(1));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LT(late.refusals(), 0);
  LateDevice full(1000000);
  EXPECT_EQ(finish(&full, absl::ZeroDuration()).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(CaptureTest, WithoutSourceMemoryStaysWhole) {
  Hello();
  AddKernel(kScale);
  AddModule("no image that anyone built");
  std::string names;
  ASSERT_EQ(Begin(&names).verdict, wire::kRecord);
  EXPECT_EQ(names, "");
  Record();
  HangUp();
  const std::vector<CapturedLaunch> captures = captures_.Take();
  ASSERT_EQ(captures.size(), 1u);
  EXPECT_EQ(captures[0].program, nullptr);
  EXPECT_THAT(captures[0].no_source, HasSubstr("reprise cc"));
  const absl::Status finished = Finish(captures[0]);
  ASSERT_TRUE(finished.ok()) << finished;
  RecordResult result;
  ASSERT_TRUE(ledger_->Finish(store_.get(), &result).ok());
  ASSERT_EQ(result.units.size(), 1u);
  const v1::Unit unit = store_->Open(result.units[0])->manifest();
  ASSERT_EQ(unit.memory_size(), 2);
  EXPECT_EQ(unit.translation_units_size(), 0);
  EXPECT_FALSE(unit.memory(0).has_read_set());
  // The first float is 0 and stays so: a difference is no write set.
  const auto writes = IntervalSet::Decode(
      *store_->chunks().GetString(unit.memory(0).write_set()), 400);
  ASSERT_TRUE(writes.ok());
  EXPECT_FALSE(writes->Contains(0));
  // Doubling a float changes the byte of its exponent, in places the sign's
  // neighbour too; every other float but the first differs.
  EXPECT_GE(writes->bytes(), 99u);
  EXPECT_LE(writes->bytes(), 198u);
  EXPECT_TRUE(unit.memory(0).has_epilogue());
  EXPECT_FALSE(unit.memory(1).has_epilogue());
}

TEST_F(CaptureTest, ASourceThatClangRefusesIsKeptWithoutIr) {
  const std::string database = directory_->path() + "/compile_commands.json";
  testing::Spit(directory_->path() + "/managed.cu",
                "__managed__ int launches;\n"
                "__global__ void Scale(float* x, float by, int count) {\n"
                "  ++launches;\n"
                "  if (threadIdx.x < count) x[threadIdx.x] *= by;\n"
                "}\n");
  testing::Spit(database, R"([{"directory": ")" + directory_->path() +
                              R"(", "file": "managed.cu", "command": ")" +
                              testing::ClangCuda() +
                              R"( -c managed.cu -o managed.o"}])");
  ProgramCatalog::Options options;
  options.cuda_home = testing::CudaHome();
  options.host_code = false;
  options.registry_directory = directory_->path() + "/nothing";
  options.compile_commands = database;
  const auto catalog = *ProgramCatalog::Create(options, pool_.get());
  options_.catalog = catalog.get();
  std::vector<CapturedLaunch> captures;
  ASSERT_NO_FATAL_FAILURE(CaptureOne(kScale, "code that nvcc made", &captures));
  EXPECT_EQ(captures[0].program, nullptr);
  EXPECT_THAT(captures[0].no_source, HasSubstr("managed.cu"));
  ASSERT_EQ(captures[0].sources.size(), 1u);
  const absl::Status finished = Finish(captures[0]);
  ASSERT_TRUE(finished.ok()) << finished;
  RecordResult result;
  ASSERT_TRUE(ledger_->Finish(store_.get(), &result).ok());
  ASSERT_EQ(result.units.size(), 1u);
  const v1::Unit unit = store_->Open(result.units[0])->manifest();
  ASSERT_EQ(unit.translation_units_size(), 1);
  EXPECT_FALSE(unit.translation_units(0).has_ir());
  EXPECT_FALSE(unit.translation_units(0).files().empty());
  EXPECT_EQ(unit.kernel().symbol(), kScale);
}

TEST_F(CaptureTest, AFailedKernelMakesNoUnit) {
  Hello();
  AddKernel(kScale);
  AddModule(program_->image());
  std::string names;
  ASSERT_EQ(Begin(&names).verdict, wire::kRecord);
  const wire::PrologueRequest nothing;
  Send(wire::kPrologue, Bytes(nothing));
  int fd = -1;
  EXPECT_EQ(Receive<wire::PrologueReply>(wire::kPrologue, nullptr, &fd).verdict,
            wire::kRecord);
  close(fd);
  wire::EpilogueNotice notice;
  notice.error = 700;
  Send(wire::kEpilogue, Bytes(notice));
  HangUp();
  EXPECT_TRUE(captures_.Take().empty());
  RecordResult result;
  ASSERT_TRUE(ledger_->Finish(store_.get(), &result).ok());
  EXPECT_THAT(result.problem, HasSubstr("failed by itself (CUDA error 700)"));
}

TEST_F(CaptureTest, ATextureWithoutSourceIsRefused) {
  Hello();
  AddKernel(kScale);
  AddModule("no image that anyone built");
  std::string names;
  ASSERT_EQ(Begin(&names).verdict, wire::kRecord);
  wire::PrologueRequest request;
  request.hints = wire::kHintTexture;
  Send(wire::kPrologue, Bytes(request));
  EXPECT_EQ(Receive<wire::PrologueReply>(wire::kPrologue).verdict,
            wire::kNever);
  HangUp();
  RecordResult result;
  ASSERT_TRUE(ledger_->Finish(store_.get(), &result).ok());
  EXPECT_THAT(result.problem, HasSubstr("texture"));
}

TEST_F(CaptureTest, WhatOnlyLooksLikeATextureOrHostMemoryIsRecorded) {
  Hello();
  AddKernel(kScale);
  AddModule(program_->image());
  std::string names;
  ASSERT_EQ(Begin(&names).verdict, wire::kRecord);
  wire::PrologueRequest request;
  request.hints = wire::kHintTexture;
  request.host_pointer = kNowhere;
  Record(request);
  HangUp();
  const std::vector<CapturedLaunch> captures = captures_.Take();
  ASSERT_EQ(captures.size(), 1u);
  const absl::Status finished = Finish(captures[0]);
  EXPECT_TRUE(finished.ok()) << finished;
}

TEST_F(CaptureTest, MemoryThatCudaWasNotGivenIsNamed) {
  Hello();
  AddKernel(kScale);
  AddModule(program_->image());
  std::string names;
  ASSERT_EQ(Begin(&names, kNowhere).verdict, wire::kRecord);
  wire::PrologueRequest request;
  request.host_pointer = kNowhere;
  Record(request);
  HangUp();
  const std::vector<CapturedLaunch> captures = captures_.Take();
  ASSERT_EQ(captures.size(), 1u);
  const absl::Status finished = Finish(captures[0]);
  EXPECT_EQ(finished.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(finished.message()),
              HasSubstr("host memory that CUDA does not manage"));
}

// It ended in the application, where something else ended it.
TEST_F(CaptureTest, AKernelThatDoesNotEndAtReplayMayWait) {
  std::vector<CapturedLaunch> captures;
  ASSERT_NO_FATAL_FAILURE(CaptureOne(kEndless, program_->image(), &captures));
  const absl::Status finished = Finish(captures[0], absl::Seconds(1));
  EXPECT_EQ(finished.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(finished.message()),
              HasSubstr("may wait for the host or for another kernel"));
}

TEST_F(CaptureTest, ProcessesAndDevicesRecordIntoOneList) {
  ledger_ = *LaunchLedger::Create({true, "", {}, 0, 2});
  options_.ledger = ledger_.get();
  for (uint32_t process = 0; process < 3; ++process) {
    if (process > 0) Connect();
    Hello();
    EXPECT_EQ(AddKernel(kScale).wanted, process < 2 ? 1u : 0u);
    AddModule(program_->image());
    std::string names;
    EXPECT_EQ(Begin(&names, kArena, process).verdict,
              process < 2 ? wire::kRecord : wire::kNever);
    if (process < 2) Record();
    HangUp();
  }
  const std::vector<CapturedLaunch> captures = captures_.Take();
  ASSERT_EQ(captures.size(), 2u);
  EXPECT_EQ(captures[0].device, 0u);
  EXPECT_EQ(captures[1].device, 1u);
  EXPECT_EQ(captures[0].ticket.kernel, captures[1].ticket.kernel);
}

TEST_F(CaptureTest, AProcessThatEndsWhileRecordingLeavesItToOthers) {
  for (int process = 0; process < 2; ++process) {
    if (process > 0) Connect();
    Hello();
    EXPECT_EQ(AddKernel(kScale).wanted, 1u);
    AddModule(program_->image());
    std::string names;
    EXPECT_EQ(Begin(&names).verdict, wire::kRecord);
    HangUp();
  }
  EXPECT_TRUE(captures_.Take().empty());
}

TEST_F(CaptureTest, CountsLaunchesThatNobodyAskedAbout) {
  ledger_ = *LaunchLedger::Create({true, "other", {}, 0, 1});
  options_.ledger = ledger_.get();
  Hello();
  EXPECT_EQ(AddKernel(kScale).wanted, 0u);
  counters_->kernels[0] = {12, 3000000, 12};
  HangUp();
  RecordResult result;
  ASSERT_TRUE(ledger_->Finish(store_.get(), &result).ok());
  ASSERT_EQ(result.kernels.size(), 1u);
  EXPECT_EQ(result.kernels[0].launches, 12u);
  EXPECT_EQ(result.kernels[0].total_ms, 3.0);
}

class MalformedMessages
    : public CaptureTest,
      public ::testing::WithParamInterface<std::pair<uint32_t, std::string>> {};

TEST_P(MalformedMessages, EndTheConnection) {
  Hello();
  Send(GetParam().first, GetParam().second);
  server_.join();  // by itself
  EXPECT_TRUE(captures_.Take().empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, MalformedMessages,
    ::testing::Values(
        std::pair<uint32_t, std::string>{99, ""},
        std::pair<uint32_t, std::string>{wire::kHello, "again"},
        std::pair<uint32_t, std::string>{wire::kKernel, "short"},
        std::pair<uint32_t, std::string>{
            wire::kKernel, Bytes(wire::KernelRequest{wire::kMaxKernels})},
        std::pair<uint32_t, std::string>{wire::kKernel,
                                         Bytes(wire::KernelRequest{0, 100})},
        std::pair<uint32_t, std::string>{
            wire::kModule, Bytes(wire::ModuleNotice{1, 100}) + "less"},
        std::pair<uint32_t, std::string>{wire::kBegin,
                                         Bytes(wire::BeginRequest())},
        std::pair<uint32_t, std::string>{wire::kPrologue,
                                         Bytes(wire::PrologueRequest())},
        std::pair<uint32_t, std::string>{wire::kFilled,
                                         Bytes(wire::FilledRequest())},
        std::pair<uint32_t, std::string>{wire::kEpilogue,
                                         Bytes(wire::EpilogueNotice())}));

}  // namespace
}  // namespace reprise
