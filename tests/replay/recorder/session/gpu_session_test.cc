// Whole recordings on a GPU: unmodified applications over a driver that is
// host memory (tests/replay/recorder/driver), the real library inside them, and
// the cpu device in the place of the GPUs that units are made on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <elf.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "replay/base/file_util.h"
#include "replay/device/cpu/cpu_device.h"
#include "replay/unit/unit_store.h"
#include "tests/replay/recorder/cc/elf_builder.h"
#include "tests/replay/recorder/recorded_app.h"

namespace reprise {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
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

// For launches of 2 blocks of 32 threads; adds ten in place of one.
Substitution TunedIncrement() {
  Substitution tuned;
  tuned.kernel = "increment__intern__tuned";
  const std::pair<v1::Dim3*, uint32_t> sizes[] = {
      {tuned.guard.mutable_grid(), 2}, {tuned.guard.mutable_block(), 32}};
  for (const auto& [dim, x] : sizes) {
    dim->set_x(x);
    dim->set_y(1);
    dim->set_z(1);
  }
  tuned.launch = tuned.guard;
  std::string code = testing::MakeElf(
      {{".text",
        std::string("fake module\nkernel increment__intern__tuned\n") + '\0'}});
  const uint16_t machine = EM_CUDA;
  memcpy(code.data() + offsetof(Elf64_Ehdr, e_machine), &machine,
         sizeof(machine));
  tuned.code.set_code(code);
  v1::CompiledKernelInfo* kernel = tuned.code.add_kernels();
  kernel->set_symbol(tuned.kernel);
  kernel->add_parameter_offsets(0);
  kernel->add_parameter_bytes(8);
  return tuned;
}

TEST_F(GpuSessionTest, GuardedLaunchesRunTheTunedCode) {
  options_.store_directory.clear();
  options_.substitutions = {TunedIncrement()};
  const std::string app = App("tuned");
  const RecordedRun run = Run(app + " && " + app);
  EXPECT_EQ(run.result.ExitCode(), 0) << run.result.problem;
  EXPECT_THAT(run.out, HasSubstr("cell 31\n"));
  ASSERT_EQ(run.result.substitutions.size(), 1u);
  const SubstitutionCount& count = run.result.substitutions[0];
  EXPECT_EQ(count.applied, 2 * 3u);
  EXPECT_EQ(count.declined, 2u);
  EXPECT_THAT(count.reasons,
              ElementsAre(Pair(HasSubstr("launched with another grid"), 2u)));
  EXPECT_TRUE(run.result.units.empty());
  EXPECT_TRUE(opened_.empty());
}

TEST_F(GpuSessionTest, LaunchesWithoutTunedCodeAreTheSameOtherwise) {
  options_.store_directory.clear();
  const RecordedRun run = Run(App("tuned"));
  EXPECT_THAT(run.out, HasSubstr("cell 4\n"));
  EXPECT_TRUE(run.result.substitutions.empty());
}

TEST_F(GpuSessionTest, TunedCodeThatDoesNotFitIsDeclinedWithTheReason) {
  options_.store_directory.clear();
  Substitution other_parameters = TunedIncrement();
  other_parameters.code.mutable_kernels(0)->add_parameter_offsets(8);
  other_parameters.code.mutable_kernels(0)->add_parameter_bytes(4);
  Substitution no_cubin = TunedIncrement();
  no_cubin.code.set_code("text");
  Substitution other_cluster = TunedIncrement();
  other_cluster.launch.mutable_cluster()->set_x(2);
  const std::pair<Substitution, std::string> cases[] = {
      {other_parameters, "other parameters"},
      {no_cubin, "ELF"},
      {other_cluster, "another cluster"}};
  for (const auto& [substitution, why] : cases) {
    options_.substitutions = {substitution};
    const RecordedRun run = Run(App("tuned"));
    EXPECT_THAT(run.out, HasSubstr("cell 4\n"));
    EXPECT_EQ(run.result.substitutions[0].applied, 0u);
    EXPECT_THAT(run.result.substitutions[0].reasons,
                Contains(Pair(HasSubstr(why), 3u)))
        << why;
  }
}

}  // namespace
}  // namespace reprise
