#include "bayesopt/trial_space.h"

#include <cstdint>
#include <set>
#include <string>

#include "bayesopt/parameter_mapper.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

TrialSpaceOptions Options(const std::string& kind, uint32_t x, uint32_t y = 1) {
  TrialSpaceOptions options;
  options.device_kind = kind;
  options.recorded.mutable_block()->set_x(x);
  options.recorded.mutable_block()->set_y(y);
  options.recorded.mutable_block()->set_z(1);
  return options;
}

TEST(TrialSpaceTest, WithoutClangNoPassesAreTuned) {
  TrialSpaceOptions options = Options("cuda", 128, 1);
  options.allow_inexact = true;
  options.has_clang = false;
  options.has_nvrtc = true;
  const auto space = BuildTrialSpace(options);
  ASSERT_TRUE(space.ok()) << space.status();
  for (const char* name : {"frontend", "pipeline", "codegen.unroll_threshold",
                           "codegen.inline_threshold", "codegen.reassociate"})
    EXPECT_FALSE((*space)->Find(name).has_value()) << name;
  for (const char* name : {"codegen.max_registers", "codegen.fp_contract",
                           "codegen.approximate_division"})
    EXPECT_TRUE((*space)->Find(name).has_value()) << name;
}

TEST(TrialSpaceTest, EverySampleMapsToAVariant) {
  for (const std::string kind : {"cpu", "cuda"}) {
    for (const bool everything : {false, true}) {
      TrialSpaceOptions options = Options(kind, 96, 4);
      options.allow_inexact = everything;
      options.block_may_change = everything;
      options.has_nvrtc = everything;
      if (everything) options.dynamic_shared_bytes = {4096, 8192};
      const auto space = BuildTrialSpace(options);
      ASSERT_TRUE(space.ok()) << space.status();
      const ParameterMapper mapper(options.recorded);
      const auto first =
          mapper.ToVariant((*space)->ToAssignment((*space)->Default()));
      EXPECT_EQ(first.value().ByteSizeLong(), 0u);
      Random random(1);
      for (int i = 0; i < 200; ++i) {
        const auto sample = (*space)->Sample(random);
        ASSERT_TRUE(sample.has_value());
        const auto variant = mapper.ToVariant((*space)->ToAssignment(*sample));
        ASSERT_TRUE(variant.ok()) << variant.status();
        const v1::Dim3& block = variant->launch().has_block()
                                    ? variant->launch().block()
                                    : options.recorded.block();
        const uint32_t threads = block.x() * block.y() * block.z();
        EXPECT_LE(threads, 1024u);
        EXPECT_GE(threads, 32u);
        EXPECT_EQ(block.z(), 1u);
        if (variant->codegen().has_max_threads_per_block()) {
          EXPECT_LE(threads, variant->codegen().max_threads_per_block());
        }
        if (variant->codegen().has_min_blocks_per_multiprocessor()) {
          EXPECT_TRUE(variant->codegen().has_max_threads_per_block());
        }
        if (variant->frontend() == "nvrtc") {
          EXPECT_TRUE(variant->pipeline().empty());
        }
      }
    }
  }
}

TEST(TrialSpaceTest, OnlyWhatTheCallerAllowsIsThere) {
  const auto plain = BuildTrialSpace(Options("cpu", 256)).value();
  EXPECT_FALSE(plain->Find("codegen.reassociate").has_value());
  EXPECT_FALSE(plain->Find("launch.block.x").has_value());
  EXPECT_FALSE(plain->Find("frontend").has_value());
  EXPECT_FALSE(plain->Find("codegen.max_registers").has_value());
  EXPECT_TRUE(plain->Find("codegen.fp_contract").has_value());
  EXPECT_TRUE(plain->Find("codegen.prefer_vector_bits").has_value());
  TrialSpaceOptions exact = Options("cuda", 256);
  exact.allow_fp_contract = false;
  exact.block_may_change = true;
  const auto cuda = BuildTrialSpace(exact).value();
  EXPECT_FALSE(cuda->Find("codegen.fp_contract").has_value());
  EXPECT_FALSE(cuda->Find("codegen.prefer_vector_bits").has_value());
  EXPECT_TRUE(cuda->Find("codegen.max_registers").has_value());
  EXPECT_TRUE(cuda->Find("launch.block.x").has_value());
  EXPECT_FALSE(cuda->Find("launch.block.y").has_value());
}

TEST(TrialSpaceTest, RefusesAnUnknownDeviceAndAnEmptyBlock) {
  EXPECT_FALSE(BuildTrialSpace(Options("tpu", 256)).ok());
  EXPECT_FALSE(BuildTrialSpace(Options("cpu", 0)).ok());
}

TEST(TrialSpaceTest, SeedsAreTheSameEveryTimeDistinctAndValid) {
  for (const std::string kind : {"cpu", "cuda"}) {
    TrialSpaceOptions options = Options(kind, 128);
    options.allow_inexact = true;
    options.block_may_change = true;
    const auto space = BuildTrialSpace(options).value();
    const auto seeds = SeedConfigurations(*space);
    EXPECT_GE(seeds.size(), 10u);
    EXPECT_EQ(seeds, SeedConfigurations(*space));
    std::set<ConfigurationHash> distinct = {space->Hash(space->Default())};
    for (const Configuration& seed : seeds) {
      EXPECT_TRUE(space->Check(seed).ok()) << space->Check(seed);
      EXPECT_TRUE(distinct.insert(space->Hash(seed)).second);
    }
  }
}

}  // namespace
}  // namespace reprise::bayesopt
