// Clocks beside launches, from a management library that a file plays
// (fake_nvml.cc).
#include "replay/device/cuda/executor/clock_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/base/file_util.h"
#include "tests/replay/device/cuda/cuda_device_fixture.h"

namespace reprise {
namespace {

using testing::HasSubstr;

class ClockReaderTest : public CudaDeviceTest {
 protected:
  void SetUp() override {
    CudaDeviceTest::SetUp();
    setenv("REPRISE_NVML", FAKE_NVML, 1);
    setenv("REPRISE_FAKE_NVML", state_.c_str(), 1);
    SetState("1980 2619 0 41 120500");
  }
  void TearDown() override {
    unsetenv("REPRISE_NVML");
    unsetenv("REPRISE_FAKE_NVML");
  }
  void SetState(const std::string& state) {
    ASSERT_TRUE(WriteFileAtomically(state_, state).ok());
  }
  static v1::ClockSample Sample(const std::string& bus_id = "0000:01:00.0") {
    return *cuda::ClockReader::Create(bus_id)->SampleIfDue();
  }
  LaunchReport Launch(LoadedKernel& kernel, bool sample_clocks) {
    LaunchOptions options;
    options.launch = unit_.launch();
    options.sample_clocks = sample_clocks;
    EXPECT_TRUE(resident_->Restore().ok());
    auto report = resident_->Launch(kernel, options);
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }

  const std::string state_ = directory_.path() + "/nvml";
};

TEST_F(ClockReaderTest, TellsClocksReasonsTemperatureAndPower) {
  SetState("1410 2619 72 84 699000");
  const v1::ClockSample sample = Sample();
  EXPECT_EQ(sample.unknown(), "");
  EXPECT_EQ(sample.sm_mhz(), 1410u);
  EXPECT_EQ(sample.memory_mhz(), 2619u);
  EXPECT_EQ(sample.event_reasons(), 72u);
  EXPECT_EQ(sample.temperature_c(), 84u);
  EXPECT_DOUBLE_EQ(sample.power_w(), 699);
}

TEST_F(ClockReaderTest, WhatADeviceDoesNotTellIsLeftOut) {
  SetState("1980");
  const v1::ClockSample sample = Sample();
  EXPECT_EQ(sample.sm_mhz(), 1980u);
  EXPECT_EQ(sample.memory_mhz(), 0u);
  EXPECT_EQ(sample.event_reasons(), 0u);
}

TEST_F(ClockReaderTest, SaysWhyNothingIsKnown) {
  EXPECT_THAT(Sample("0000:99:00.0").unknown(),
              HasSubstr("knows no device 0000:99:00.0: Not Found"));
  SetState("");
  EXPECT_THAT(Sample().unknown(), HasSubstr("Driver Not Loaded"));
  setenv("REPRISE_NVML", "/nowhere/libnvidia-ml.so.1", 1);
  EXPECT_THAT(Sample().unknown(), HasSubstr("library is missing"));
}

TEST_F(ClockReaderTest, LaunchesBringTheClocksOfTheirOwnDevice) {
  Load();
  const auto kernel = LoadCode(*resident_, "double");
  EXPECT_FALSE(Launch(*kernel, /*sample_clocks=*/false).clocks.has_value());
  const LaunchReport report = Launch(*kernel, /*sample_clocks=*/true);
  ASSERT_TRUE(report.clocks.has_value());
  EXPECT_EQ(report.clocks->unknown(), "");
  EXPECT_EQ(report.clocks->sm_mhz(), 1980u);
}

TEST_F(ClockReaderTest, MissingLibraryStopsNoLaunch) {
  setenv("REPRISE_NVML", "/nowhere/libnvidia-ml.so.1", 1);
  Load();
  const auto kernel = LoadCode(*resident_, "double");
  const LaunchReport report = Launch(*kernel, /*sample_clocks=*/true);
  EXPECT_EQ(report.kind, v1::OUTCOME_KIND_OK);
  ASSERT_TRUE(report.clocks.has_value());
  EXPECT_THAT(report.clocks->unknown(), HasSubstr("library is missing"));
}

TEST_F(ClockReaderTest, WallClockSeesWorkThatEscapesTheEvents) {
  Load();
  const auto kernel = LoadCode(*resident_, "escape");
  const LaunchReport report = Launch(*kernel, /*sample_clocks=*/false);
  EXPECT_EQ(report.kind, v1::OUTCOME_KIND_OK);
  EXPECT_GE(report.wall_time - report.device_time, absl::Milliseconds(2));
}

TEST(PaceTest, WhatIsDearIsDoneSeldom) {
  using std::chrono::microseconds;
  cuda::Pace pace;
  const cuda::Pace::Time start = std::chrono::steady_clock::now();
  EXPECT_TRUE(pace.IsDue(start));
  pace.Note(start, start + microseconds(40));
  EXPECT_TRUE(pace.IsDue(start + microseconds(40)));
  pace.Note(start, start + microseconds(1000));
  EXPECT_FALSE(pace.IsDue(start + microseconds(20999)));
  EXPECT_TRUE(pace.IsDue(start + microseconds(21000)));
}

}  // namespace
}  // namespace reprise
