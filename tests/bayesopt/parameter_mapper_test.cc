#include "bayesopt/parameter_mapper.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

using std::string_literals::operator""s;
using ::testing::HasSubstr;

v1::LaunchConfig Recorded() {
  v1::LaunchConfig launch;
  launch.mutable_grid()->set_x(100);
  launch.mutable_block()->set_x(256);
  launch.mutable_block()->set_y(2);
  launch.mutable_block()->set_z(1);
  launch.set_dynamic_shared_bytes(1024);
  return launch;
}

TEST(ParameterMapperTest, EveryNameReachesItsField) {
  const ParameterMapper mapper(Recorded());
  const Assignment assignment = {
      {"frontend", "nvrtc"s},
      {"pipeline", "default<O2>"s},
      {"codegen.fp_contract", "off"s},
      {"codegen.flush_denormals", "on"s},
      {"codegen.approximate_division", "on"s},
      {"codegen.approximate_sqrt", "on"s},
      {"codegen.reassociate", "on"s},
      {"codegen.no_signed_zeros", "on"s},
      {"codegen.finite_math_only", "on"s},
      {"codegen.max_registers", int64_t{64}},
      {"codegen.unroll_threshold", int64_t{0}},
      {"codegen.max_threads_per_block", int64_t{512}},
      {"codegen.min_blocks_per_multiprocessor", int64_t{2}},
      {"codegen.inline_threshold", int64_t{1000}},
      {"codegen.prefer_vector_bits", int64_t{512}},
      {"ptxas.level", int64_t{1}},
      {"launch.block.x", int64_t{128}},
      {"launch.block.y", int64_t{4}},
      {"launch.block.z", int64_t{1}},
      {"launch.dynamic_shared_bytes", int64_t{2048}},
  };
  const auto variant = mapper.ToVariant(assignment);
  ASSERT_TRUE(variant.ok()) << variant.status();
  EXPECT_EQ(variant->frontend(), "nvrtc");
  EXPECT_EQ(variant->pipeline(), "default<O2>");
  const v1::CodegenOptions& codegen = variant->codegen();
  EXPECT_TRUE(codegen.has_fp_contract());
  EXPECT_FALSE(codegen.fp_contract());
  EXPECT_TRUE(codegen.flush_denormals());
  EXPECT_TRUE(codegen.approximate_division());
  EXPECT_TRUE(codegen.approximate_sqrt());
  EXPECT_TRUE(codegen.reassociate());
  EXPECT_TRUE(codegen.no_signed_zeros());
  EXPECT_TRUE(codegen.finite_math_only());
  EXPECT_EQ(codegen.max_registers(), 64u);
  EXPECT_TRUE(codegen.has_unroll_threshold());
  EXPECT_EQ(codegen.max_threads_per_block(), 512u);
  EXPECT_EQ(codegen.min_blocks_per_multiprocessor(), 2u);
  EXPECT_EQ(codegen.inline_threshold(), 1000u);
  EXPECT_EQ(codegen.prefer_vector_bits(), 512u);
  EXPECT_EQ(codegen.ptxas_level(), 1u);
  EXPECT_EQ(variant->launch().block().x(), 128u);
  EXPECT_EQ(variant->launch().block().y(), 4u);
  EXPECT_EQ(variant->launch().block().z(), 1u);
  EXPECT_EQ(variant->launch().dynamic_shared_bytes(), 2048u);
  // No field of the messages was forgotten.
  EXPECT_EQ(
      static_cast<size_t>(v1::CodegenOptions::descriptor()->field_count()),
      14u);
  EXPECT_EQ(mapper.ToAssignment(*variant), assignment);
}

TEST(ParameterMapperTest, WhatEqualsTheRecordedBuildIsLeftUnset) {
  const ParameterMapper mapper(Recorded());
  const auto variant =
      mapper.ToVariant({{"frontend", "clang"s},
                        {"pipeline", "default<O3>"s},
                        {"codegen.fp_contract", "default"s},
                        {"codegen.max_registers", "default"s},
                        {"launch.block.x", int64_t{256}},
                        {"launch.dynamic_shared_bytes", int64_t{1024}}});
  ASSERT_TRUE(variant.ok()) << variant.status();
  EXPECT_EQ(variant->ByteSizeLong(), 0u);
  EXPECT_EQ(mapper.Describe(*variant), "as built");
}

TEST(ParameterMapperTest, MissingBlockDimensionsAreTheRecordedOnes) {
  const ParameterMapper mapper(Recorded());
  const auto variant = mapper.ToVariant({{"launch.block.x", int64_t{64}}});
  ASSERT_TRUE(variant.ok());
  EXPECT_EQ(variant->launch().block().y(), 2u);
  EXPECT_EQ(mapper.Describe(*variant), "launch.block=64x2x1");
}

TEST(ParameterMapperTest, KeepsTheBaseVariantsSources) {
  const ParameterMapper mapper(Recorded());
  v1::Variant base;
  auto* source = base.add_sources();
  source->set_path("/app/k.cu");
  source->set_content("x");
  base.mutable_codegen()->set_max_registers(32);
  const auto variant = mapper.ToVariant(
      {{"codegen.max_registers", "default"s}, {"codegen.fp_contract", true}},
      base);
  ASSERT_TRUE(variant.ok());
  EXPECT_EQ(variant->sources(0).path(), "/app/k.cu");
  EXPECT_FALSE(variant->codegen().has_max_registers());
  EXPECT_TRUE(variant->codegen().fp_contract());
}

TEST(ParameterMapperTest, RefusesWhatItDoesNotUnderstand) {
  const ParameterMapper mapper(Recorded());
  const auto message = [&](const std::string& name, const Value& value) {
    return std::string(mapper.ToVariant({{name, value}}).status().message());
  };
  EXPECT_THAT(message("codegen.typo", int64_t{1}), HasSubstr("codegen.typo"));
  EXPECT_THAT(message("codegen.fp_contract", "maybe"s), HasSubstr("on, off"));
  EXPECT_THAT(message("ptxas.level", int64_t{7}), HasSubstr("0 to 3"));
  EXPECT_THAT(message("launch.block.x", int64_t{0}), HasSubstr("1 to 1024"));
  EXPECT_THAT(message("launch.block.z", int64_t{65}), HasSubstr("1 to 64"));
  EXPECT_THAT(message("pipeline", ""s), HasSubstr("pipeline"));
  EXPECT_THAT(message("frontend", "gcc"s), HasSubstr("nvrtc"));
  EXPECT_THAT(message("codegen.max_registers", "64"s), HasSubstr("number"));
}

}  // namespace
}  // namespace reprise::bayesopt
