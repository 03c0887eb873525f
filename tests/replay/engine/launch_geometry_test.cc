#include "replay/engine/launch_geometry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

v1::LaunchConfig Launch(uint32_t grid, uint32_t block) {
  v1::LaunchConfig launch;
  launch.mutable_grid()->set_x(grid);
  launch.mutable_grid()->set_y(2);
  launch.mutable_grid()->set_z(1);
  launch.mutable_block()->set_x(block);
  launch.mutable_block()->set_y(1);
  launch.mutable_block()->set_z(1);
  launch.set_dynamic_shared_bytes(64);
  return launch;
}

TEST(LaunchGeometryTest, NoParametersMeanTheRecordedLaunch) {
  EXPECT_TRUE(SameLaunch(VariantLaunch(Launch(10, 128), {}), Launch(10, 128)));
}

TEST(LaunchGeometryTest, GridCoversTheSameThreads) {
  v1::LaunchParameters parameters;
  parameters.mutable_block()->set_x(96);
  const v1::LaunchConfig launch = VariantLaunch(Launch(10, 128), parameters);
  EXPECT_EQ(launch.block().x(), 96u);
  EXPECT_EQ(launch.block().y(), 1u);
  EXPECT_EQ(launch.grid().x(), 14u);  // 1344 >= 1280
  EXPECT_EQ(launch.grid().y(), 2u);
  EXPECT_EQ(launch.dynamic_shared_bytes(), 64u);
}

TEST(LaunchGeometryTest, LargeGridsDoNotOverflow) {
  v1::LaunchParameters parameters;
  parameters.mutable_block()->set_x(1);
  EXPECT_EQ(VariantLaunch(Launch(4000000, 1024), parameters).grid().x(),
            4096000000u);
}

TEST(LaunchGeometryTest, RefusesWhatTheDeviceOrTheKernelCannotTake) {
  DeviceFacts device;
  device.max_shared_bytes_per_block = 128;
  v1::CompiledKernelInfo kernel;
  EXPECT_TRUE(CheckLaunch(Launch(1, 1024), device, kernel).ok());
  EXPECT_THAT(
      std::string(CheckLaunch(Launch(1, 1025), device, kernel).message()),
      testing::HasSubstr("1 to 1024"));
  kernel.set_max_threads_per_block(256);
  EXPECT_THAT(
      std::string(CheckLaunch(Launch(1, 512), device, kernel).message()),
      testing::HasSubstr("1 to 256"));
  kernel.set_static_shared_bytes(100);
  EXPECT_THAT(std::string(CheckLaunch(Launch(1, 32), device, kernel).message()),
              testing::HasSubstr("164 shared bytes"));
}

}  // namespace
}  // namespace reprise
