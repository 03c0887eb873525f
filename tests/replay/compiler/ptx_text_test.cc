#include "replay/compiler/ptx_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPtx[] = R"(.version 9.0
.target sm_90
.address_size 64

.visible .const .align 4 .f32 offset;
.visible .global .align 8 .b8 table[48];
.global .align 1 .b8 $str[4] = {97, 98, 0, 0};
.visible .global .attribute(.managed) .align 4 .u32 launches = 7;

.visible .entry _Z1aPfi(
	.param .u64 .ptr .align 1 _Z1aPfi_param_0,
	.param .u32 _Z1aPfi_param_1,
	.param .align 8 .b8 _Z1aPfi_param_2[24]
)
.maxntid 32, 4, 1
.minnctapersm 2
{
	// begin inline asm
{
	mov.u32 %r1, 1; // } no end
}
	ld.param.u64 %rd1, [_Z1aPfi_param_0];
	ret;
}
	// .globl _Z1bv
.weak .entry _Z1bv()
{
	ret;
}
)";

TEST(PtxTextTest, FindsKernelsWhateverBracesTheirBodiesHave) {
  EXPECT_THAT(PtxKernelNames(kPtx), ElementsAre("_Z1aPfi", "_Z1bv"));
}

TEST(PtxTextTest, KeepsOnlyTheKernelsThatAreWanted) {
  const std::string kept = KeepPtxKernels(kPtx, {"_Z1bv"});
  EXPECT_THAT(PtxKernelNames(kept), ElementsAre("_Z1bv"));
  EXPECT_THAT(kept, Not(HasSubstr("inline asm")));
  EXPECT_THAT(kept, HasSubstr("table[48]"));
}

TEST(PtxTextTest, RenamesWholeNamesOnly) {
  const std::string renamed = RenamePtxSymbol(kPtx, "_Z1aPfi", "other");
  EXPECT_THAT(PtxKernelNames(renamed), ElementsAre("other", "_Z1bv"));
  EXPECT_THAT(renamed, HasSubstr("[_Z1aPfi_param_0]"));
}

TEST(PtxTextTest, DescribesParametersAndLaunchBound) {
  const auto kernel = DescribePtxKernel(kPtx, "_Z1aPfi");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_THAT(kernel->parameter_offsets(), ElementsAre(0, 8, 16));
  EXPECT_THAT(kernel->parameter_bytes(), ElementsAre(8, 4, 24));
  EXPECT_EQ(kernel->max_threads_per_block(), 128u);
  EXPECT_FALSE(DescribePtxKernel(kPtx, "none").ok());
}

TEST(PtxTextTest, StatedLaunchBoundsReplaceTheSources) {
  v1::CodegenOptions options;
  options.set_max_threads_per_block(256);
  const std::string bound = SetPtxLimits(kPtx, options, 0);
  EXPECT_EQ(DescribePtxKernel(bound, "_Z1aPfi")->max_threads_per_block(), 256u);
  EXPECT_EQ(DescribePtxKernel(bound, "_Z1bv")->max_threads_per_block(), 256u);
  EXPECT_THAT(bound, HasSubstr(".minnctapersm 2"));
  options.set_max_threads_per_block(0);
  const std::string free = SetPtxLimits(kPtx, options, 0);
  EXPECT_EQ(DescribePtxKernel(free, "_Z1aPfi")->max_threads_per_block(), 0u);
  EXPECT_THAT(SetPtxLimits(kPtx, {}, 40), HasSubstr(".maxnreg 40\n{"));
}

TEST(PtxTextTest, ListsTheVariablesOfTheSource) {
  const std::vector<v1::ModuleGlobal> variables = PtxVariables(kPtx);
  ASSERT_EQ(variables.size(), 3u);
  EXPECT_EQ(variables[0].symbol(), "offset");
  EXPECT_TRUE(variables[0].constant());
  EXPECT_EQ(variables[1].symbol(), "table");
  EXPECT_EQ(variables[1].bytes(), 48u);
  EXPECT_EQ(variables[1].alignment(), 8u);
  EXPECT_EQ(variables[2].symbol(), "launches");
  EXPECT_EQ(variables[2].bytes(), 4u);
}

TEST(PtxTextTest, FindsAKernelThatAnotherCompilerNamesOtherwise) {
  EXPECT_EQ(FindKernelSymbol({"_Z1bv", "_Z1aPx"}, "_Z1aPl"), 1);
  EXPECT_EQ(FindKernelSymbol({"_Z1aPx", "_Z1aPf"}, "_Z1aPl"), -1);
  EXPECT_EQ(FindKernelSymbol({"_Z1bv"}, "_Z1aPl"), -1);
}

}  // namespace
}  // namespace reprise
