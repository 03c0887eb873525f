// Whole recordings on a GPU: unmodified applications over a driver that is
// host memory (tests/replay/recorder/driver), the real library inside them, and
// the cpu device in the place of the GPUs that units are made on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "replay/base/file_util.h"
#include "replay/device/cpu/cpu_device.h"
#include "replay/unit/unit_store.h"
#include "tests/replay/recorder/recorded_app.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RecordedRun;

class GpuSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create("gpu-session");
    ASSERT_TRUE(directory.ok());
    directory_ = std::make_unique<TemporaryDirectory>(*std::move(directory));
    options_.preload_library =
        testing::BinaryDirectory() + "/lib/libreprise_cuda.so";
    options_.registry_directory = directory_->path() + "/registry";
    options_.store_directory = directory_->path() + "/units";
    options_.open_gpu = [this](uint32_t ordinal) {
      opened_.insert(ordinal);
      return CreateCpuDevice({});
    };
  }

  static std::string App(const std::string& scenario) {
    return testing::BinaryDirectory() + "/tests/bin/driver_app " + scenario;
  }

  RecordedRun Run(const std::string& command) {
    RecordedRun run = testing::RunUnder(
        options_, directory_->path(),
        "export LD_LIBRARY_PATH=" + testing::BinaryDirectory() +
            "/tests/fake_driver; " + command);
    EXPECT_TRUE(run.status.ok()) << run.status;
    return run;
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  RecordOptions options_;
  std::set<uint32_t> opened_;
};

TEST_F(GpuSessionTest, ProcessesAtOnceRecordIntoOneStore) {
  options_.kernel_regex = "increment";
  options_.count = 4;
  const std::string app = App("launches");
  const RecordedRun run = Run(app + " & " + app + " & " + app + " & wait");
  EXPECT_EQ(run.result.application_exit_code, 0);
  EXPECT_EQ(run.result.problem, "");
  EXPECT_EQ(run.result.units.size(), 4u);
  ASSERT_EQ(run.result.kernels.size(), 2u);
  EXPECT_EQ(run.result.kernels[0].symbol, "increment");
  EXPECT_EQ(run.result.kernels[0].launches, 3 * 6u);
  EXPECT_THAT(run.result.kernels[0].problem, HasSubstr("cannot be remixed"));
  const auto store = UnitStore::Open({.directory = options_.store_directory});
  ASSERT_TRUE(store.ok());
  for (const std::string& unit : run.result.units)
    EXPECT_TRUE((*store)->Open(unit).ok()) << unit;
}

TEST_F(GpuSessionTest, UnitsAreMadeOnTheDeviceTheyComeFrom) {
  options_.kernel_regex = "fill";
  options_.count = 2;
  const RecordedRun run = Run(App("two-devices"));
  EXPECT_EQ(run.result.units.size(), 2u);
  EXPECT_THAT(opened_, ElementsAre(0, 1));
}

TEST_F(GpuSessionTest, KernelsThatWaitAreRefusedAndTheProgramGoesOn) {
  options_.stall_timeout = absl::Milliseconds(300);
  options_.kernel_regex = "spin|fill";
  const RecordedRun run = Run(App("spins"));
  EXPECT_EQ(run.result.application_exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("flags 1 1\n"));
  EXPECT_TRUE(run.result.units.empty());
  EXPECT_THAT(run.result.problem, HasSubstr("it did not end within 0.3 s"));
  EXPECT_THAT(run.result.problem, HasSubstr("work before the launch did not"));
}

TEST_F(GpuSessionTest, SharingMemoryNeedsTheNativeAllocator) {
  options_.kernel_regex = "nothing";
  EXPECT_EQ(Run(App("ipc")).result.application_exit_code, 1);
  options_.native_allocator = true;
  EXPECT_EQ(Run(App("ipc")).result.application_exit_code, 0);
}

}  // namespace
}  // namespace reprise
