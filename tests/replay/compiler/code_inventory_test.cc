#include "replay/compiler/code_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Beyond(const std::string& text,
                                const std::string& recorded = "") {
  CodeInventory before, after;
  AddInlinePtx(recorded, "", before);
  AddInlinePtx(text, "a.cu:3", after);
  return after.BeyondOf(before);
}

TEST(CodeInventoryTest, ComputingIsNothingToMention) {
  EXPECT_THAT(Beyond("fma.rn.f32 $0, $1, $2, $3;"), IsEmpty());
  EXPECT_THAT(Beyond("{ .reg .pred p; setp.ne.b32 p, $1, 0;\n"
                     "@p ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {$0,$1}, "
                     "[$2]; }"),
              IsEmpty());
  EXPECT_THAT(Beyond("LOOP: mbarrier.try_wait.parity.shared.b64 p, [$0], $1;\n"
                     "@!p bra LOOP;"),
              IsEmpty());
  EXPECT_THAT(Beyond("mov.u32 $0, %laneid;"), IsEmpty());
}

TEST(CodeInventoryTest, NamesPlaceAndReason) {
  EXPECT_THAT(Beyond("mov.u64 $0, %clock64;"),
              ElementsAre("a.cu:3: the variant reads a clock (%clock64), the "
                          "recorded code does not"));
}

TEST(CodeInventoryTest, WhatTheRecordedCodeDoesStaysAllowed) {
  EXPECT_THAT(Beyond("mov.u64 $0, %clock64;", "mov.u32 $0, %clock;"),
              IsEmpty());
  EXPECT_THAT(Beyond("pmevent 3;", "pmevent 1;"), IsEmpty());
  EXPECT_THAT(Beyond("trap;", "pmevent 1;").size(), 1u);
}

TEST(CodeInventoryTest, NothingHidesBehindPunctuation) {
  for (const char* text :
       {"@p nanosleep.u32 5;", "@ !p  nanosleep.u32 5;", "L: nanosleep.u32 5;",
        "{ { nanosleep.u32 5; } }", "/* ; */ nanosleep.u32 5;",
        "// bra\nnanosleep.u32 5;", "exit;nanosleep.u32 5;",
        ".reg .u32 r;\n\tnanosleep.u32 r;"}) {
    EXPECT_THAT(Beyond(text), ::testing::Contains(HasSubstr("sleeps"))) << text;
  }
}

TEST(CodeInventoryTest, TablesHaveABound) {
  CodeInventory recorded, small, large;
  recorded.AddConstantBytes(1000);
  small.AddConstantBytes(1000 + kMostNewConstantBytes);
  large.AddConstantBytes(1001 + kMostNewConstantBytes);
  EXPECT_THAT(small.BeyondOf(recorded), IsEmpty());
  EXPECT_THAT(large.BeyondOf(recorded),
              ElementsAre(HasSubstr("bytes of constants")));
}

// As NVRTC prints it.
constexpr char kPtx[] = R"(.version 9.0
.target sm_90
.address_size 64
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0,
	.param .b64 vprintf_param_1
)
;
.global .align 4 .u32 kept;
.const .align 4 .b8 table[16] = {0, 0, 128, 63};
.visible .entry Kernel(
	.param .u64 Kernel_param_0
)
{
	.reg .b32 	%r<5>;
	mov.u32 	%r1, %tid.x;
$L__BB0_2:
	mov.u32 	%r2, %clock;
	// begin inline asm
	pmevent 1;
	// end inline asm
	{ // callseq 0, 0
	call.uni (retval0), 
	vprintf, 
	(
	param0, 
	param1
	);
	}
	nanosleep.u32 	20;
	ret;
}
)";

TEST(CodeInventoryTest, ReadsWholePtx) {
  CodeInventory nothing, ptx;
  AddPtxText(kPtx, ptx);
  EXPECT_THAT(
      ptx.BeyondOf(nothing),
      ::testing::UnorderedElementsAre(
          HasSubstr("device variable kept"), HasSubstr("%clock"),
          HasSubstr("pmevent"), HasSubstr("printf"), HasSubstr("sleeps")));
  EXPECT_THAT(ptx.BeyondOf(ptx), IsEmpty());
  EXPECT_THAT(nothing.BeyondOf(ptx), ElementsAre(HasSubstr("prints nothing")));
}

TEST(CodeInventoryTest, IncludesThatLeaveTheUnitAreSuspect) {
  const auto suspects = [](const std::string& text) {
    return SuspectIncludes("a.cu", "#include \"/opt/known.h\"\n", text);
  };
  EXPECT_THAT(suspects("#include <mma.h>\n#include \"b.h\"\n"
                       "#include \"/opt/known.h\"\n"),
              IsEmpty());
  for (const char* text :
       {"#include \"/etc/passwd\"", "# include </etc/passwd>",
        "#include \"../../x\"", "#include NAME", "%:include \"/etc/passwd\"",
        "#inc\\\nlude \"/etc/passwd\"", "#/**/include \"/etc/passwd\"",
        "#embed \"x\""}) {
    EXPECT_THAT(suspects(text),
                ElementsAre(AllOf(HasSubstr("a.cu: "), HasSubstr("#"))))
        << text;
  }
}

}  // namespace
}  // namespace reprise
