// Counting and ceilings from the device down, on the fake driver and a fake
// CUPTI (fake_cupti.cc): what is counted, from which memory each pass starts,
// and what is said where nothing can be counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/replay/device/cuda/cuda_device_fixture.h"

namespace reprise {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class CountersTest : public CudaDeviceTest {
 protected:
  void SetUp() override {
    CudaDeviceTest::SetUp();
    setenv("REPRISE_CUPTI", FAKE_CUPTI, 1);
    unsetenv("REPRISE_FAKE_CUPTI");
  }
  void TearDown() override {
    unsetenv("REPRISE_CUPTI");
    unsetenv("REPRISE_FAKE_CUPTI");
  }

  v1::Counters Count(const std::string& kernel,
                     absl::Duration timeout = absl::Seconds(30)) {
    resident_ = nullptr;
    const auto timing = MakeDevice();
    auto counting = timing->OpenForCounting();
    EXPECT_TRUE(counting.ok()) << counting.status();
    device_ = *std::move(counting);
    resident_ = *device_->Load(Unit());
    const auto loaded = LoadCode(*resident_, kernel);
    EXPECT_TRUE(resident_->Restore().ok());
    EXPECT_TRUE(resident_->Poison(7).ok());
    LaunchOptions options;
    options.launch = unit_.launch();
    options.timeout = timeout;
    auto counters = resident_->Count(*loaded, options);
    EXPECT_TRUE(counters.ok()) << counters.status();
    return *std::move(counters);
  }

  static std::map<std::string, v1::Counter> ByName(
      const v1::Counters& counters) {
    std::map<std::string, v1::Counter> by_name;
    for (const v1::Counter& counter : counters.values())
      by_name[counter.name()] = counter;
    return by_name;
  }
};

TEST_F(CountersTest, EveryCounterHasAValueAndItsOrigin) {
  const v1::Counters counters = Count("double");
  EXPECT_THAT(counters.absent(), IsEmpty());
  EXPECT_EQ(counters.passes(), 3u);
  auto by_name = ByName(counters);
  for (const char* name :
       {"instructions", "instruction_throughput", "achieved_occupancy",
        "shared_bank_conflicts", "dram_bytes_read", "dram_bytes_written",
        "f32_flops", "f64_flops"}) {
    ASSERT_TRUE(by_name.contains(name)) << name;
    EXPECT_THAT(by_name[name].absent(), IsEmpty());
    EXPECT_GT(by_name[name].value(), 0) << name;
    EXPECT_NE(by_name[name].unit(), "") << name;
  }
  EXPECT_EQ(by_name["instructions"].value(), 3);
  EXPECT_EQ(by_name["dram_bytes_read"].metric(), "dram__bytes_read.sum");
}

TEST_F(CountersTest, FusedMultiplyAddsCountTwice) {
  auto by_name = ByName(Count("double"));
  const std::string name =
      "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
  EXPECT_EQ(by_name["f32_flops"].value(),
            4.0 * static_cast<double>(name.size()));
  EXPECT_THAT(by_name["f32_flops"].metric(), HasSubstr(" + 2 " + name));
}

TEST_F(CountersTest, EachPassStartsFromRestoredAndPoisonedMemory) {
  EXPECT_EQ(Count("poisoned").passes(), 3u);
}

TEST_F(CountersTest, MemoryHoldsNothingToVerifyAfterwards) {
  Count("double");
  EXPECT_TRUE(absl::IsUnavailable(resident_->Verify({}).status()));
  EXPECT_TRUE(RunAndJudge("double").equal);
}

TEST_F(CountersTest, MissingLibraryIsSaid) {
  setenv("REPRISE_CUPTI", "/nowhere/libcupti.so", 1);
  const v1::Counters counters = Count("double");
  EXPECT_THAT(counters.values(), IsEmpty());
  EXPECT_THAT(counters.absent(), HasSubstr("no libcupti"));
  EXPECT_THAT(counters.absent(), HasSubstr("--cuda-home"));
}

// Any shared library that is none of CUPTI's.
TEST_F(CountersTest, LibraryThatIsTooOldIsSaid) {
  setenv("REPRISE_CUPTI", FAKE_CUDA_DRIVER, 1);
  EXPECT_THAT(Count("double").absent(), HasSubstr("CUDA 12.6 or newer"));
}

TEST_F(CountersTest, MissingPermissionSaysWhatToDo) {
  for (const char* behaviour : {"denied", "denied_late"}) {
    setenv("REPRISE_FAKE_CUPTI", behaviour, 1);
    const v1::Counters counters = Count("double");
    EXPECT_THAT(counters.values(), IsEmpty()) << behaviour;
    EXPECT_THAT(counters.absent(), HasSubstr("ERR_NVGPUCTRPERM"));
    EXPECT_THAT(counters.absent(),
                HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
  }
}

TEST_F(CountersTest, DeviceThatCannotBeProfiledIsNamed) {
  setenv("REPRISE_FAKE_CUPTI", "unsupported", 1);
  EXPECT_THAT(Count("double").absent(), HasSubstr("Fake GPU"));
}

TEST_F(CountersTest, MetricThatTheDeviceLacksLeavesTheOthers) {
  setenv("REPRISE_FAKE_CUPTI", "few_metrics", 1);
  const v1::Counters counters = Count("double");
  EXPECT_THAT(counters.absent(), IsEmpty());
  auto by_name = ByName(counters);
  EXPECT_THAT(by_name["shared_bank_conflicts"].absent(),
              HasSubstr("no metric l1tex__data_bank_conflicts"));
  EXPECT_GT(by_name["dram_bytes_read"].value(), 0);
}

TEST_F(CountersTest, ValueThatIsNoNumberIsAbsent) {
  setenv("REPRISE_FAKE_CUPTI", "not_a_number", 1);
  auto by_name = ByName(Count("double"));
  EXPECT_THAT(by_name["dram_bytes_read"].absent(), HasSubstr("no number"));
  EXPECT_GT(by_name["l2_bytes"].value(), 0);
}

TEST_F(CountersTest, ProfilerThatNeverHasEnoughIsLeft) {
  setenv("REPRISE_FAKE_CUPTI", "endless", 1);
  EXPECT_THAT(Count("double").absent(), HasSubstr("64 launches"));
}

TEST_F(CountersTest, LaunchThatFaultsOrHangsIsSaid) {
  EXPECT_THAT(Count("null").absent(), HasSubstr("DEVICE_FAULT"));
  EXPECT_THAT(Count("spin", absl::Milliseconds(200)).absent(),
              HasSubstr("200ms"));
}

TEST_F(CountersTest, CeilingsAreMeasured) {
  const auto device = MakeDevice();
  const auto ceilings = device->MeasureCeilings();
  ASSERT_TRUE(ceilings.ok()) << ceilings.status();
  EXPECT_EQ(ceilings->l2_bytes(), 64u << 10);
  for (const double rate :
       {ceilings->dram_read_gb_s(), ceilings->dram_write_gb_s(),
        ceilings->l2_write_gb_s(), ceilings->f32_gflops(),
        ceilings->f64_gflops()})
    EXPECT_GT(rate, 0);
}

TEST_F(CountersTest, CeilingsNeedRoomAndLeaveNothingBehind) {
  setenv("REPRISE_FAKE_CUDA_BYTES", std::to_string(1 << 20).c_str(), 1);
  const auto device = MakeDevice();
  EXPECT_TRUE(absl::IsResourceExhausted(device->MeasureCeilings().status()));
  setenv("REPRISE_FAKE_CUDA_BYTES", std::to_string(2 << 20).c_str(), 1);
  const auto other = MakeDevice();
  for (int i = 0; i < 3; ++i) {
    const auto ceilings = other->MeasureCeilings();
    EXPECT_TRUE(ceilings.ok()) << ceilings.status();
  }
}

}  // namespace
}  // namespace reprise
