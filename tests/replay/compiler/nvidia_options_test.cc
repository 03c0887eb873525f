#include "replay/compiler/nvidia_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

v1::CompileTranslationUnit UnitWith(const std::vector<std::string>& args) {
  v1::CompileTranslationUnit unit;
  for (const std::string& arg : args) unit.add_clang_args(arg);
  return unit;
}

TEST(NvidiaOptionsTest, TranslatesLanguageAndDirectories) {
  const NvidiaOptions options = TranslateForNvidia(
      UnitWith({"-DN=4", "-std=gnu++20", "-Iinclude", "-isystem", "/opt/x",
                "-include", "first.h", "-fgpu-rdc", "-mllvm", "-Dnot-a-macro",
                "-D__CUDACC_EXTENDED_LAMBDA__=1"}),
      {});
  EXPECT_THAT(options.language, Contains("-DN=4"));
  EXPECT_THAT(options.language, Contains("-std=c++20"));
  EXPECT_THAT(options.language, Not(Contains("-Dnot-a-macro")));
  EXPECT_THAT(options.language,
              Not(Contains("-D__CUDACC_EXTENDED_LAMBDA__=1")));
  EXPECT_THAT(options.include_directories,
              ElementsAre(Pair("include", false), Pair("/opt/x", true)));
  EXPECT_THAT(options.pre_includes, ElementsAre("first.h"));
  EXPECT_TRUE(options.relocatable);
}

TEST(NvidiaOptionsTest, AVariantsArithmeticReplacesTheUnits) {
  v1::CodegenOptions codegen;
  codegen.set_fp_contract(false);
  codegen.set_approximate_division(true);
  const NvidiaOptions options = TranslateForNvidia(
      UnitWith({"-fgpu-flush-denormals-to-zero", "-mllvm",
                "-nvptx-prec-divf32=2", "-mllvm", "-nvptx-prec-sqrtf32=0"}),
      codegen);
  EXPECT_THAT(options.language,
              ElementsAre("-fmad=false", "-ftz=true", "-prec-div=false",
                          "-prec-sqrt=false"));
}

TEST(NvidiaOptionsTest, KeepsArchitectureLetters) {
  EXPECT_EQ(VirtualArchitecture("sm_90a"), "compute_90a");
}

TEST(NvidiaOptionsTest, RefusesWhatOnlyPassesOfLlvmHave) {
  v1::Variant variant;
  variant.mutable_codegen()->set_max_registers(64);
  EXPECT_TRUE(CheckNvidiaVariant(variant).ok());
  variant.set_pipeline("default<O2>");
  variant.mutable_codegen()->set_unroll_threshold(7);
  EXPECT_THAT(std::string(CheckNvidiaVariant(variant).message()),
              HasSubstr("got pipeline, codegen.unroll_threshold with front end "
                        "nvrtc: passes cannot be tuned there"));
}

}  // namespace
}  // namespace reprise
