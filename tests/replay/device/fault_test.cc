#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/replay/device/device_test_util.h"
#include "tests/replay/device/host_compiler.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class FaultTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = machine_.Load("faults");
    ASSERT_TRUE(status.ok()) << status;
    out_ = machine_.Allocate(4096);
  }
  // Every test ends with a launch that works, in a new process.
  void TearDown() override {
    const uint64_t restarts = machine_.client().restarts();
    machine_.Run("Fine", MakeLaunch({1}, {32}), Arguments().Add(out_));
    EXPECT_EQ(machine_.host<int>(out_)[31], 42);
    EXPECT_EQ(machine_.client().restarts(), restarts + expected_restarts_);
  }
  std::string Fault(const std::string& kernel, const v1::LaunchConfig& launch,
                    const Arguments& arguments) {
    const auto report = machine_.Launch(kernel, launch, arguments);
    EXPECT_TRUE(report.ok()) << report.status();
    if (!report.ok()) return "";
    EXPECT_EQ(report->kind, v1::OUTCOME_KIND_DEVICE_FAULT);
    expected_restarts_ = 1;
    return report->diagnostics;
  }

  TestMachine machine_;
  uint64_t out_ = 0;
  uint64_t expected_restarts_ = 0;
};

constexpr int64_t kBehind =
    static_cast<int64_t>(TestMachine::kBytes) / 4;  // in elements

TEST_F(FaultTest, WriteBehindMemoryNamesAddressAndBlock) {
  const int64_t index = kBehind - (out_ - TestMachine::kAddress) / 4 + 2;
  EXPECT_THAT(
      Fault("WriteAt", MakeLaunch({3}, {1}), Arguments().Add(out_).Add(index)),
      AllOf(HasSubstr("out-of-bounds write at 0x200004000008"),
            HasSubstr("8 bytes behind the memory at 0x200000000000"),
            HasSubstr("block (")));
}

TEST_F(FaultTest, WriteBeforeMemory) {
  const int64_t index =
      -static_cast<int64_t>(out_ - TestMachine::kAddress) / 4 - 1;
  EXPECT_THAT(
      Fault("WriteAt", MakeLaunch({1}, {1}), Arguments().Add(out_).Add(index)),
      HasSubstr("4 bytes before the memory at 0x200000000000"));
}

TEST_F(FaultTest, ReadBehindMemory) {
  EXPECT_THAT(Fault("ReadAt", MakeLaunch({1}, {1}),
                    Arguments().Add(out_).Add(out_).Add(kBehind + (1 << 20))),
              HasSubstr("out-of-bounds read at 0x2000"));
}

TEST_F(FaultTest, NullPointer) {
  EXPECT_THAT(Fault("WriteAt", MakeLaunch({1}, {1}),
                    Arguments().Add(uint64_t{0}).Add(int64_t{0})),
              HasSubstr("null or malformed address"));
}

TEST_F(FaultTest, KernelsWithBarriersNameTheThread) {
  EXPECT_THAT(Fault("WriteAtAfterBarrier", MakeLaunch({1}, {64}),
                    Arguments().Add(out_).Add(kBehind)),
              AllOf(HasSubstr("out-of-bounds write"),
                    HasSubstr("block (0,0,0)"), HasSubstr("thread (37,0,0)")));
}

TEST_F(FaultTest, WriteBehindSharedMemory) {
  EXPECT_THAT(Fault("SharedOutOfBounds", MakeLaunch({1}, {1}),
                    Arguments().Add(out_).Add(64)),
              HasSubstr("byte 256 of shared memory"));
}

TEST_F(FaultTest, EndlessLoopsTimeOut) {
  for (const std::string kernel : {"Forever", "ForeverWithoutEffect"}) {
    const auto report =
        machine_.Launch(kernel, MakeLaunch({2}, {1}),
                        Arguments().Add(out_).Add(0), absl::Milliseconds(200));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->kind, v1::OUTCOME_KIND_TIMEOUT) << kernel;
    EXPECT_THAT(report->diagnostics, HasSubstr("200ms"));
  }
  expected_restarts_ = 1;
}

TEST_F(FaultTest, RecursionThatFitsRunsAndTooDeepIsAStackOverflow) {
  machine_.Run("Recurse", MakeLaunch({1}, {4}), Arguments().Add(out_).Add(200));
  EXPECT_THAT(Fault("Recurse", MakeLaunch({1}, {4}),
                    Arguments().Add(out_).Add(1000000)),
              AllOf(HasSubstr("stack overflow"), HasSubstr("thread (")));
}

TEST_F(FaultTest, DivisionByZero) {
  EXPECT_THAT(
      Fault("Divide", MakeLaunch({1}, {1}), Arguments().Add(out_).Add(0)),
      HasSubstr("division by zero"));
}

TEST_F(FaultTest, TrapNamesPlaceAndThread) {
  EXPECT_THAT(Fault("Trap", MakeLaunch({1}, {32}), Arguments().Add(out_)),
              AllOf(HasSubstr("trap at"), HasSubstr("faults.cu:"),
                    HasSubstr("thread (5,0,0)")));
}

TEST_F(FaultTest, AssertionSaysItsCondition) {
  EXPECT_THAT(
      Fault("Assertion", MakeLaunch({1}, {32}), Arguments().Add(out_)),
      AllOf(HasSubstr("threadIdx.x != 3"), HasSubstr("thread (3,0,0)")));
}

TEST_F(FaultTest, BarriersAtTwoPlaces) {
  EXPECT_THAT(
      Fault("DivergentBarrier", MakeLaunch({1}, {32}), Arguments().Add(out_)),
      AllOf(HasSubstr("divergent barrier"), HasSubstr("faults.cu:"),
            HasSubstr("thread (0,0,0)"), HasSubstr("thread (16,0,0)")));
}

TEST_F(FaultTest, ABarrierThatNobodyElseReaches) {
  EXPECT_THAT(Fault("ShuffleAgainstBarrier", MakeLaunch({1}, {32}),
                    Arguments().Add(out_)),
              AllOf(HasSubstr("divergent barrier"), HasSubstr("thread (7,0,0)"),
                    HasSubstr("warp operation")));
}

TEST_F(FaultTest, ALaneOutsideOfItsMask) {
  EXPECT_THAT(
      Fault("NotInOwnMask", MakeLaunch({1}, {32}), Arguments().Add(out_)),
      HasSubstr("not in the mask"));
}

TEST_F(FaultTest, PrintsInTheOrderOfBlocks) {
  const std::string text("text\0", 5);
  const uint64_t dtext =
      machine_.Upload(std::vector<char>(text.begin(), text.end()));
  const LaunchReport report = machine_.Run("Print", MakeLaunch({64}, {32}),
                                           Arguments().Add(7).Add(dtext));
  std::string expected;
  for (int b = 0; b < 64; ++b) {
    char line[200];
    std::snprintf(line, sizeof(line),
                  "block %d of %u: %s %5.2f %lld %c%% %-4d| %x %p\n", b, 64u,
                  "text", 1.5 * b, 1ll << 40, 'z', 7, 255u,
                  reinterpret_cast<void*>(0x10));
    expected += line;
  }
  EXPECT_EQ(report.printf_output, expected);
}

TEST_F(FaultTest, PrintReturnsItsArgumentsAndTakesStars) {
  const LaunchReport report =
      machine_.Run("PrintStar", MakeLaunch({1}, {1}), Arguments().Add(out_));
  EXPECT_EQ(report.printf_output, "    42|3.14|end\n");
  EXPECT_EQ(machine_.host<int>(out_)[0], 5);
}

// What was on the device before a crash is there after it, and modules too.
TEST_F(FaultTest, MemoryOutlivesTheExecutor) {
  machine_.host<int>(out_)[500] = 123;
  Fault("Divide", MakeLaunch({1}, {1}), Arguments().Add(out_).Add(0));
  EXPECT_EQ(machine_.host<int>(out_)[500], 123);
}

TEST(ExecutorTest, AMissingProgramIsSaid) {
  ExecutorClient::Options options;
  options.executable = "/nowhere/reprise";
  const auto client = ExecutorClient::Start(options);
  EXPECT_THAT(std::string(client.status().message()),
              HasSubstr("/nowhere/reprise"));
}

TEST(ExecutorTest, AProgramThatIsNoExecutorIsSaid) {
  ExecutorClient::Options options;
  options.executable = "/bin/false";
  const auto client = ExecutorClient::Start(options);
  EXPECT_THAT(std::string(client.status().message()),
              AllOf(HasSubstr("/bin/false"), HasSubstr("exit code 1")));
}

TEST(ExecutorTest, AnAddressThatIsTakenIsSaid) {
  TestMachine machine;
  // The executor's own code lies somewhere in the low 47 bits; its stack is
  // below the top of them.
  v1::MemoryMapping mapping;
  mapping.set_address(0x7ff000000000);
  mapping.set_bytes(uint64_t{0xffff000});
  mapping.set_writable(true);
  std::vector<v1::MemoryMapping> mappings;
  for (uint64_t a = 0x7ff000000000; a < 0x7ffffffff000; a += mapping.bytes()) {
    mapping.set_address(a);
    if (a + mapping.bytes() > 0x7ffffffff000)
      mapping.set_bytes(0x7ffffffff000 - a);
    mappings.push_back(mapping);
  }
  const absl::Status status = machine.client().MapMemory(mappings);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the executor has there"));
}

TEST(ExecutorTest, ModulesThatDoNotLink) {
  TestMachine machine;
  v1::LoadModuleRequest request;
  request.set_module(7);
  request.set_object("not an object");
  EXPECT_EQ(machine.client().LoadModule(request).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(machine.client().UnloadModule(7).code(),
            absl::StatusCode::kNotFound);
  auto code = CompileForHost(KernelBitcode("basic"), {});
  ASSERT_TRUE(code.ok());
  request.set_object(code->code());  // its variables have no addresses
  EXPECT_THAT(std::string(machine.client().LoadModule(request).message()),
              HasSubstr("counter"));
}

std::string Refusal(const std::string& kernel) {
  LoweringOptions options;
  options.kernels = {kernel};
  const auto code = CompileForHost(KernelBitcode("refused"), options);
  EXPECT_FALSE(code.ok());
  return std::string(code.status().message());
}

TEST(RefusalTest, NamesKernelInstructionAndPlace) {
  EXPECT_THAT(
      Refusal("TensorCore"),
      AllOf(HasSubstr("kernel TensorCore"), HasSubstr("wgmma.mma_async"),
            HasSubstr("refused.cu:"), HasSubstr("cpu device cannot run")));
  EXPECT_THAT(Refusal("Matrix"),
              AllOf(HasSubstr("kernel Matrix"), HasSubstr("ldmatrix")));
  EXPECT_THAT(Refusal("CallsMissing"), HasSubstr("Missing"));
  EXPECT_THAT(Refusal("Branches"), HasSubstr("L:"));
  EXPECT_THAT(Refusal("Heap"), HasSubstr("operator new[]"));
  EXPECT_THAT(Refusal("Texture"), HasSubstr("tex"));
}

TEST(RefusalTest, OtherKernelsOfTheModuleRun) {
  LoweringOptions options;
  options.kernels = {"Fine"};
  EXPECT_TRUE(CompileForHost(KernelBitcode("refused"), options).ok());
  options.kernels = {"NoSuch"};
  const auto missing = CompileForHost(KernelBitcode("refused"), options);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("NoSuch"));
}

}  // namespace
}  // namespace reprise
