// The CUDA runtime stand-in answers as a GPU does: programs print what the
// runtime answers, and an NVIDIA H200 with CUDA 13.0 has printed it before
// (programs/*.h200.txt).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "replay/base/file_util.h"
#include "replay/base/process.h"
#include "tests/replay/recorder/recorded_app.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using testing::RecordedRun;
using testing::RunUnder;
using testing::Slurp;
using testing::TestOptions;

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string Program(const std::string& name) {
  return testing::SourceDirectory() + "/tests/replay/recorder/programs/" + name;
}

// Compares line by line, so that a failure names the call.
void ExpectSameLines(const std::string& got, const std::string& expected) {
  const std::vector<std::string> ours = Lines(got);
  const std::vector<std::string> gpus = Lines(expected);
  for (size_t i = 0; i < std::min(ours.size(), gpus.size()); ++i)
    EXPECT_EQ(ours[i], gpus[i]) << "line " << i + 1;
  EXPECT_EQ(ours.size(), gpus.size());
}

class StandInTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create("standin");
    ASSERT_TRUE(directory.ok());
    directory_ = std::make_unique<TemporaryDirectory>(*std::move(directory));
    setenv("REPRISE_HOME", (directory_->path() + "/home").c_str(), 1);
  }

  RecordedRun Run(const std::string& command) {
    RecordedRun run = RunUnder(TestOptions(), directory_->path(), command);
    EXPECT_TRUE(run.status.ok()) << run.status;
    return run;
  }

  // Builds a CUDA source through the launcher; the program's path.
  std::string Build(const std::string& source, const std::string& flags = "") {
    const std::string program = directory_->path() + "/app";
    const testing::ShellResult built = testing::Shell(
        directory_->path(), *SelfExecutable() + " cc " + testing::ClangCuda() +
                                " -O1 " + flags + " -c " + source +
                                " -o app.o && clang++-22 app.o -L" +
                                testing::CudaHome() + "/lib64 -Wl,-rpath," +
                                testing::CudaHome() + "/lib64 -lcudart -o app");
    EXPECT_EQ(built.exit_code(), 0) << built.err;
    return program;
  }

  std::unique_ptr<TemporaryDirectory> directory_;
};

TEST_F(StandInTest, AnswersCallsAsAGpuDoes) {
  const RecordedRun run =
      Run(testing::BinaryDirectory() + "/tests/bin/api_transcript");
  EXPECT_EQ(run.result.application_exit_code, 0);
  ExpectSameLines(run.out, Slurp(Program("api_transcript.h200.txt")));
}

TEST_F(StandInTest, LaunchesAsAGpuDoes) {
  const std::string app = Build(Program("launch_transcript.cu"));
  std::string transcript;
  for (const char* scenario :
       {"launches", "symbols", "printf", "fault", "trap", "assert"}) {
    const RecordedRun run = Run(app + " " + scenario);
    EXPECT_EQ(run.result.application_exit_code, 0) << scenario << run.err;
    transcript += run.out;
  }
  ExpectSameLines(transcript, Slurp(Program("launch_transcript.h200.txt")));
}

TEST_F(StandInTest, AnUnsupportedCallIsSaidOnce) {
  const RecordedRun run =
      Run(testing::BinaryDirectory() + "/tests/bin/unsupported_calls");
  EXPECT_EQ(run.result.application_exit_code, 0);
  EXPECT_EQ(run.out,
            "cudaErrorNotSupported\ncudaErrorNotSupported\n"
            "last cudaErrorNotSupported\n");
  const std::string message = "cudaGraphCreate is not supported";
  EXPECT_THAT(run.err, HasSubstr(message));
  EXPECT_EQ(run.err.find(message), run.err.rfind(message)) << run.err;
}

TEST_F(StandInTest, WithoutARecorderThereIsNoDevice) {
  const testing::ShellResult result = testing::Shell(
      directory_->path(), "LD_PRELOAD=" + TestOptions().preload_library + " " +
                              testing::BinaryDirectory() +
                              "/tests/bin/unsupported_calls");
  EXPECT_THAT(result.err, HasSubstr("runs only under a recorder"));
  EXPECT_THAT(result.err, HasSubstr("reprise record --"));
}

TEST_F(StandInTest, ForkedProcessesAreServedOnTheirOwn) {
  const RecordedRun run =
      Run(testing::BinaryDirectory() + "/tests/bin/forking");
  EXPECT_EQ(run.out,
            "child before: cudaSuccess\n"
            "parent: cudaSuccess\n"
            "child after: cudaErrorInitializationError\n"
            "exec'd child: cudaSuccess\n"
            "parent again: cudaSuccess, memory 1\n");
}

TEST_F(StandInTest, DeviceMemoryIsNotTheHosts) {
  const RecordedRun run =
      Run(testing::BinaryDirectory() + "/tests/bin/touch_device_memory");
  EXPECT_EQ(run.result.application_exit_code, 128 + SIGSEGV);
  EXPECT_EQ(run.out, "managed 1\npinned 2\n");
}

TEST_F(StandInTest, AnotherArenaBaseIsHonoured) {
  RecordOptions options = TestOptions();
  options.arena_base = 0x7a0000000000;
  const RecordedRun run =
      RunUnder(options, directory_->path(),
               testing::BinaryDirectory() + "/tests/bin/print_pointer");
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_THAT(run.out, ::testing::StartsWith("0x7a"));
}

TEST_F(StandInTest, ALibraryThatIsPreloadedAlreadyStays) {
  const std::string other = directory_->path() + "/libother.so";
  testing::Spit(directory_->path() + "/other.c",
                "int reprise_test_other(void) { return 1; }");
  ASSERT_EQ(testing::Shell(directory_->path(),
                           "clang-22 -shared -fPIC other.c -o libother.so")
                .exit_code(),
            0);
  setenv("LD_PRELOAD", other.c_str(), 1);
  const RecordedRun run = Run("env | grep ^LD_PRELOAD=");
  unsetenv("LD_PRELOAD");
  EXPECT_EQ(run.out,
            "LD_PRELOAD=" + other + ":" + TestOptions().preload_library + "\n");
}

}  // namespace
}  // namespace reprise
