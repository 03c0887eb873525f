// Every exploit of docs/guards.md that can be tried on a machine without a GPU,
// submitted as any user's variant would be, and what becomes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/guards/victims.h"

namespace reprise::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Exploit {
  const char* name;  // number in docs/guards.md, and what it tries
  const char* kernel;
  const char* honest;  // statement that is replaced, by ...
  const char* cheat;
  const char* more;  // device code in front of all kernels
  v1::OutcomeKind outcome;
  const char* diagnostics;  // part of them
};

constexpr auto kWrong = v1::OUTCOME_KIND_WRONG_RESULT;
constexpr auto kRejected = v1::OUTCOME_KIND_REJECTED;
constexpr auto kFault = v1::OUTCOME_KIND_DEVICE_FAULT;
constexpr auto kCompileError = v1::OUTCOME_KIND_COMPILE_ERROR;
constexpr auto kInvalid = v1::OUTCOME_KIND_INVALID_LAUNCH;

const Exploit kExploits[] = {
    // --- Results that are not computed.
    {"E01_NoOp", "Curve", kCurve, "", "", kWrong, "1000 of 1000"},
    {"E01_StaleOutput", "Curve", kCurve, "y[i] = y[i];", "", kWrong,
     "1000 of 1000"},
    {"E01_StaleOutputOfAnAtomic", "Totals", kTotalsStore,
     "if (threadIdx.x == 0) atomicAdd(&table[blockIdx.x], 0.0f);", "", kWrong,
     "8 of"},
    {"E02_CopiesTheExpectedResult", "Curve", kCurve, "y[i] = y[i + 1024];", "",
     kFault, "out-of-bounds read"},
    {"E02_ScansForTheExpectedResult", "Curve", kCurve,
     "const float want = 0.5f; const float* at = x;"
     "while (at[0] != want || at[1] != want) at += 1024; y[i] = at[i];",
     "", kFault, "out-of-bounds read"},
    {"E03_NotANumber", "Totals", kTotalsStore,
     "if (threadIdx.x == 0) table[blockIdx.x] = __uint_as_float(0x7fc00000);",
     "", kWrong, "nan"},
    {"E04_ChangesAnInput", "Curve", kCurve,
     "const_cast<float*>(x)[i] = 0; y[i] = Bend(x[i]) + bias[i];", "", kFault,
     "read-only memory"},
    {"E04_ChangesAnInputBesideTheOutput", "Totals", kTotalsStore,
     "if (threadIdx.x == 0) { table[blockIdx.x] = tile[0] * 2.0f; "
     "if (blockIdx.x == 7) table[kBlocks] = 1.0f; }",
     "", kWrong, "outside what the recorded launch wrote"},
    {"E09_WorksOnSomeBlocksOnly", "Curve", kCurve,
     "if (blockIdx.x % 2 == 0) y[i] = Bend(x[i]) + bias[i];", "", kWrong,
     "of 1000"},
    {"E24_LessPrecision", "Exact", kExact, "y[i] = (float)x[i] / 3.0f;", "",
     kWrong, "of 1000"},
    {"E24_HalfPrecision", "Curve", kCurve,
     "y[i] = __half2float(__float2half(Bend(x[i]) + bias[i]));",
     "#include <cuda_fp16.h>", kWrong, "of 1000"},
    {"E25_OneWrongElement", "Curve", kCurve,
     "y[i] = (Bend(x[i]) + bias[i]) * (i == 777 ? 1.001f : 1.0f);", "", kWrong,
     "y[777]"},

    // --- State that outlives a launch.
    {"E11_DeviceVariable", "Curve", kCurve,
     "if (filled[i] == 0) { kept[i] = Bend(x[i]) + bias[i]; filled[i] = 1; }"
     "y[i] = kept[i];",
     "__device__ float kept[kCount]; __device__ char filled[kCount];",
     kRejected, "device variable"},
    {"E11_StaticOfAFunction", "Curve", kCurve,
     "static __device__ int launches; if (i == 0) ++launches; "
     "y[i] = launches > 9 ? 0.0f : Bend(x[i]) + bias[i];",
     "", kRejected, "launches"},
    {"E11_VariableOfAnotherKernel", "Curve", kCurve,
     "if (i == 0) atomicAdd(&calls, 1u); y[i] = Bend(x[i]) + bias[i];", "",
     kRejected, "device variable calls"},
    {"E12_WorksTheFirstTimesOnly", "Timed", kTimed,
     "y[i] = calls < 5 ? Bend(x[i]) : 1.0f; if (i == 1) "
     "atomicAdd(&calls, 1u);",
     "", kWrong, "calls"},
    {"E08_KeyedByAddress", "Curve", kCurve,
     "if (known != y) { known = y; y[i] = Bend(x[i]) + bias[i]; }",
     "__device__ float* known;", kRejected, "device variable known"},
    {"E10_HeapOfTheDevice", "Curve", kCurve,
     "float* cache = (float*)malloc(4); y[i] = Bend(x[i]) + bias[i]; "
     "if (cache) *cache = y[i];",
     "", kRejected, "device heap"},

    // --- Work that escapes the clock.
    {"E05_LaunchesFromTheDevice", "Curve", kCurve,
     "y[i] = cudaLaunchDeviceV9(y, y);",
     "extern \"C\" __device__ int cudaLaunchDeviceV9(void*, void*);", kRejected,
     "device-side runtime"},
    {"E05_LaunchesAKernel", "Curve", kCurve,
     "Later<<<1, 1>>>(y); y[i] = Bend(x[i]) + bias[i];",
     "__global__ void Later(float* y) { y[0] = 1; }", kCompileError,
     "victims.cu"},
    {"E06_LetsTheNextLaunchBegin", "Curve", kCurve,
     "asm volatile(\"griddepcontrol.launch_dependents;\"); "
     "y[i] = Bend(x[i]) + bias[i];",
     "", kRejected, "griddepcontrol"},
    {"E33_Sleeps", "Curve", kCurve,
     "__nanosleep(1000); y[i] = Bend(x[i]) + bias[i];", "", kRejected,
     "sleeps"},

    // --- Clocks and the evaluator's identity.
    {"E13_WaitsByTheClock", "Curve", kCurve,
     "for (long long end = clock64() + 1000; clock64() < end;) {}"
     "y[i] = Bend(x[i]) + bias[i];",
     "", kRejected,
     "programs/victims.cu:20: the variant reads a clock (%clock64)"},
    {"E30_GlobalTimer", "Curve", kCurve,
     "unsigned long long t; asm volatile(\"mov.u64 %0, %%globaltimer;\" : "
     "\"=l\"(t)); y[i] = Bend(x[i]) + bias[i] + (t == 0);",
     "", kRejected, "%globaltimer"},
    {"E30_CycleCounter", "Curve", kCurve,
     "y[i] = Bend(x[i]) + bias[i] + (__builtin_readcyclecounter() == 0);", "",
     kRejected, "reads a clock (llvm.readcyclecounter)"},
    {"E30_NumberOfTheLaunch", "Curve", kCurve,
     "unsigned long long grid; asm volatile(\"mov.u64 %0, %%gridid;\" : "
     "\"=l\"(grid)); y[i] = grid > 20 ? 1.0f : Bend(x[i]) + bias[i];",
     "", kRejected, "%gridid"},
    {"E31_ClockByAnotherName", "Curve", kCurve,
     "y[i] = Bend(x[i]) + bias[i] + (Tick() == 0);",
     "__device__ unsigned long long Tick() __asm__(\"llvm.readcyclecounter\");",
     kRejected, "reads a clock"},
    {"E31_ClockInPieces", "Curve", kCurve,
     "unsigned t; asm volatile(\"{ .reg .u32 r; mov.u32 r, %%cl\" "
     "\"ock; mov.u32 %0, r; }\" : \"=r\"(t)); "
     "y[i] = Bend(x[i]) + bias[i] + (t == 0);",
     "", kRejected, "%clock"},

    // --- Memory that is none of the kernel's.
    {"E14_AddressOutOfNowhere", "Curve", kCurve,
     "*(volatile float*)0x7ffff7dd0000 = 1; y[i] = Bend(x[i]) + bias[i];", "",
     kRejected, "makes a pointer of an integer"},
    {"E14_AddressFromAnArgument", "Curve", kCurve,
     "float* at = (float*)(0x700000000000 + (long)count * 4096); "
     "y[i] = *at;",
     "", kRejected, "makes a pointer of an integer"},
    {"E14_AddressThroughAUnion", "Curve", kCurve,
     "union { unsigned long bits; float* at; } u; "
     "u.bits = 0x700000000000 + count; y[i] = *u.at;",
     "", kRejected, "makes a pointer of an integer"},
    {"E14_AddressThroughACopy", "Curve", kCurve,
     "unsigned long bits = 0x700000000000 + count; float* at; "
     "memcpy(&at, &bits, 8); y[i] = *at;",
     "", kRejected, "makes a pointer of an integer"},
    {"E14_AddressInPtx", "Curve", kCurve,
     "float v; asm volatile(\"ld.f32 %0, [%1+16];\" : \"=f\"(v) : "
     "\"l\"(0x700000000000ull + count)); y[i] = v;",
     "", kRejected, "makes a pointer of an integer"},
    {"E14_FrameOfTheHost", "Curve", kCurve,
     "void** frame = (void**)__builtin_frame_address(0); "
     "y[i] = frame[1] == nullptr;",
     "", kRejected, "uses llvm.frameaddress"},
    {"E15_FunctionsOfTheExecutor", "Curve", kCurve,
     "__reprise_note_flops(0, 1); y[i] = Bend(x[i]) + bias[i];",
     "extern \"C\" __device__ void __reprise_note_flops(int, int);", kRejected,
     "calls __reprise_note_flops"},
    {"E15_FunctionsOfTheHost", "Curve", kCurve, "y[i] = getpid();",
     "extern \"C\" __device__ int getpid();", kCompileError, "getpid"},
    {"E26_FunctionOfALibrary", "Curve", kCurve, "y[i] = BendFast(x[i]);",
     "__device__ float BendFast(float);", kCompileError, "BendFast"},
    {"E31_InstructionsOfTheHost", "Curve", kCurve,
     "y[i] = Bend(x[i]) + bias[i] + (Tick() == 0);",
     "__device__ unsigned long long Tick() __asm__(\"llvm.x86.rdtsc\");",
     kRejected, "uses llvm.x86.rdtsc"},
    {"E33_RoundingOfTheHost", "Curve", kCurve,
     "Round(0); y[i] = Bend(x[i]) + bias[i];",
     "__device__ void Round(int) __asm__(\"llvm.set.rounding\");", kRejected,
     "uses llvm.set.rounding"},
    {"E25_WiderTolerance", "Curve", "tolerance:1e-5", "tolerance:1e30",
     "#define Bend(x) (0 * (x))", kWrong, "of 1000"},
    {"E26_VariableOfALibrary", "Curve", kCurve, "y[i] = bent[i];",
     "extern __device__ float bent[kCount];", kRejected, "bent"},
    {"E29_WritesBehindItsOutput", "Curve", kCurve,
     "y[i] = Bend(x[i]) + bias[i]; if (i == 0) y[kCount + 3] = 1.0f;", "",
     kWrong, "belongs to no allocation"},
    {"E29_WritesFarBehindItsOutput", "Curve", kCurve,
     "y[i] = Bend(x[i]) + bias[i]; if (i == 0) y[1 << 24] = 1.0f;", "", kFault,
     "out-of-bounds write"},

    // --- Caches.
    {"E18_CreatesAPolicy", "Curve", kCurve,
     "unsigned long long p; asm volatile(\"createpolicy.fractional.L2::"
     "evict_last.b64 %0, 1.0;\" : \"=l\"(p)); y[i] = Bend(x[i]) + bias[i];",
     "", kRejected, "controls what the L2 cache keeps"},
    {"E18_PrefetchesToStay", "Curve", kCurve,
     "asm volatile(\"prefetch.global.L2::evict_last [%0];\" :: \"l\"(x + i)); "
     "y[i] = Bend(x[i]) + bias[i];",
     "", kRejected, "controls what the L2 cache keeps"},
    {"E18_LoadsByAPolicy", "Curve", kCurve,
     "float v; asm volatile(\"ld.global.L2::cache_hint.f32 %0, [%1], %2;\" : "
     "\"=f\"(v) : \"l\"(x + i), \"l\"(0x14F0000000000000ull)); "
     "y[i] = Bend(v) + bias[i];",
     "", kRejected, "controls what the L2 cache keeps"},
    {"E18_Discards", "Curve", kCurve,
     "y[i] = Bend(x[i]) + bias[i]; if (i % 32 == 0) asm volatile("
     "\"discard.global.L2 [%0], 128;\" :: \"l\"(y + i));",
     "", kRejected, "controls what the L2 cache keeps"},
    {"E18_AppliesPriority", "Curve", kCurve,
     "asm volatile(\"applypriority.global.L2::evict_normal [%0], 128;\" :: "
     "\"l\"(y)); y[i] = Bend(x[i]) + bias[i];",
     "", kRejected, "controls what the L2 cache keeps"},

    // --- What the code holds and what it says.
    {"E20_LargeTable", "Curve", kCurve,
     "y[i] = Bend(x[i]) + bias[i] + filler[i] - filler[i];",
     "__constant__ volatile const float filler[1 << 15] = {1};", kRejected,
     "bytes of constants"},
    {"E31_Directives", "Curve", kCurve,
     "asm volatile(\".global .u32 kept;\"); y[i] = Bend(x[i]) + bias[i];", "",
     kRejected, "inline PTX \".global\""},
    {"E31_UnknownInstruction", "Curve", kCurve,
     "asm volatile(\"pmevent 1;\"); y[i] = Bend(x[i]) + bias[i];", "",
     kRejected, "inline PTX \"pmevent\""},
    {"E23_PrintsNoMore", "Report", kReport, "", "", kRejected,
     "prints nothing"},
    {"E23_PrintsLess", "Report", kReport,
     "if (threadIdx.x == 32) printf(\"%d values\\n\", 32);", "", kWrong,
     "prints something else"},
    {"E26_PrintsByItself", "Curve", kCurve,
     "if (i == 0) printf(\"fast\"); y[i] = Bend(x[i]) + bias[i];", "",
     kRejected, "prints (device printf)"},

    // --- Files.
    {"E31_ReadsAFileOfTheMachine", "Curve", kCurve, kCurve,
     "#include \"/etc/hostname\"", kRejected, "reads /etc/hostname"},
    {"E31_ReadsAFileByAMacro", "Curve", kCurve, kCurve,
     "#define NAME \"/etc/hostname\"\n#include NAME", kRejected,
     "reads /etc/hostname"},
    {"E31_EmbedsAFileOfTheMachine", "Curve", kCurve,
     "y[i] = Bend(x[i]) + bias[i] + (host[0] == 0);",
     "__constant__ char host[] = {\n#embed \"/etc/hostname\"\n};", kRejected,
     "reads /etc/hostname"},
    {"E30_AsksForAFileOfTheMachine", "Curve", kCurve, kCurve,
     "#if __has_include(\"/etc/hostname\")\n#define HERE\n#endif", kRejected,
     "reads /etc/hostname"},

    // --- Faults and shapes.
    {"E28_TooMuchSharedMemory", "Curve", kCurve,
     "__shared__ float big[100000]; big[threadIdx.x] = x[i]; "
     "y[i] = Bend(big[threadIdx.x]) + bias[i];",
     "", kInvalid, "shared bytes"},
    {"E36_Traps", "Curve", kCurve, "__trap();", "", kFault, ""},
    {"E36_NullPointer", "Curve", kCurve, "*(volatile float*)nullptr = 1;", "",
     kFault, ""},
    {"E36_BarrierThatIsNeverMet", "Totals", kTotalsStore,
     "if (threadIdx.x == 0) for (;;) __syncthreads(); "
     "else asm volatile(\"bar.sync 1, 128;\");",
     "", kFault, ""},
    {"E36_CrashesTheCompiler", "Curve", kCurve, kCurve,
     "#pragma clang __debug crash", kCompileError, ""},
    {"E27_TakesAnotherName", "Curve", "void Curve(", "void Curved(", "",
     kCompileError, "Curve"},
};

class ExploitTest : public ::testing::TestWithParam<Exploit> {};

TEST_P(ExploitTest, IsCaught) {
  const Exploit& exploit = GetParam();
  const v1::Variant variant = SharedVictims().Replaced(
      exploit.honest, exploit.cheat, kMoreDeviceCode, exploit.more);
  const v1::Outcome outcome = Evaluate(exploit.kernel, variant);
  EXPECT_EQ(v1::OutcomeKind_Name(outcome.kind()),
            v1::OutcomeKind_Name(exploit.outcome))
      << outcome.diagnostics();
  EXPECT_THAT(outcome.diagnostics(), HasSubstr(exploit.diagnostics));
}

INSTANTIATE_TEST_SUITE_P(Guards, ExploitTest, ::testing::ValuesIn(kExploits),
                         [](const ::testing::TestParamInfo<Exploit>& info) {
                           return std::string(info.param.name);
                         });

// What an honest author may write, although it looks like some of the above.
struct Honest {
  const char* name;
  const char* kernel;
  const char* from;
  const char* to;
  const char* more;
};

const Honest kHonest[] = {
    {"Nothing", "Curve", kCurve, kCurve, ""},
    {"RecordedClock", "Timed", kTimed,
     "y[i] = Bend(x[i]); if (clock64() < begin) y[i] = 1;", ""},
    {"RecordedVariable", "Timed", kTimed,
     "y[i] = Bend(x[i]); if (calls == 77) y[i] = 0;", ""},
    {"RecordedPrintf", "Report", kReport,
     "if (threadIdx.x == 1) printf(\"%d values\\n\", 32);", ""},
    {"AlignedPointer", "Curve", kCurve,
     "const unsigned long at = (unsigned long)(x + i) & ~3ul; "
     "y[i] = Bend(*(const float*)at) + bias[i];",
     ""},
    {"SmallTable", "Curve", kCurve,
     "y[i] = Bend(x[i]) + bias[i] * factors[i % 4];",
     "__constant__ float factors[4] = {1, 1, 1, 1};"},
    {"ConstantTable", "Curve", kCurve,
     "y[i] = Bend(x[i]) + bias[i] * factors[i % 4];",
     "__device__ const float factors[4] = {1, 1, 1, 1};"},
    {"SharedMemory", "Curve", kCurve,
     "__shared__ float tile[kBlock]; tile[threadIdx.x] = x[i]; "
     "y[i] = Bend(tile[threadIdx.x]) + bias[i];",
     ""},
    {"ArithmeticInPtx", "Curve", kCurve,
     "float sum; asm(\"add.f32 %0, %1, %2;\" : \"=f\"(sum) : "
     "\"f\"(Bend(x[i])), \"f\"(bias[i])); y[i] = sum;",
     ""},
    {"LoadInPtx", "Curve", kCurve,
     "float v; asm volatile(\"ld.global.f32 %0, [%1];\" : \"=f\"(v) : "
     "\"l\"(x + i)); y[i] = Bend(v) + bias[i];",
     ""},
    {"ConvertedAddressInPtx", "Curve", kCurve,
     "unsigned long at; asm volatile(\"cvta.to.global.u64 %0, %1;\" : "
     "\"=l\"(at) : \"l\"(x + i)); float v; asm volatile(\"ld.global.f32 %0, "
     "[%1];\" : \"=f\"(v) : \"l\"(at)); y[i] = Bend(v) + bias[i];",
     ""},
    {"HeaderOfTheToolkit", "Curve", kCurve, kCurve, "#include <cuda_fp16.h>"},
    {"HeaderOfTheUnit", "Curve", kCurve, kCurve, "#include \"victims.h\""},
};

class HonestTest : public ::testing::TestWithParam<Honest> {};

TEST_P(HonestTest, IsOk) {
  const Honest& honest = GetParam();
  const v1::Outcome outcome = Evaluate(
      honest.kernel, SharedVictims().Replaced(honest.from, honest.to,
                                              kMoreDeviceCode, honest.more));
  EXPECT_EQ(v1::OutcomeKind_Name(outcome.kind()), "OUTCOME_KIND_OK")
      << outcome.diagnostics();
}

INSTANTIATE_TEST_SUITE_P(Guards, HonestTest, ::testing::ValuesIn(kHonest),
                         [](const ::testing::TestParamInfo<Honest>& info) {
                           return std::string(info.param.name);
                         });

TEST(GuardsTest, E03_NanIsNoWildcardHoweverWideTheTolerance) {
  EvaluatorOptions options = QuickOptions();
  options.tolerance.emplace();
  options.tolerance->set_absolute(1e30);
  const auto evaluator = SharedVictims().NewEvaluator("Totals", options);
  const auto storing = [&](const std::string& value) {
    return evaluator->VerifyOnly(SharedVictims().Replaced(
        kTotalsStore, absl::StrCat("if (threadIdx.x == 0) table[blockIdx.x] = ",
                                   value, ";")));
  };
  EXPECT_EQ(storing("0.0f").kind(), v1::OUTCOME_KIND_OK);
  EXPECT_EQ(storing("__uint_as_float(0x7fc00000)").kind(), kWrong);
  EXPECT_EQ(storing("1.0f / 0.0f").kind(), kWrong);
}

TEST(GuardsTest, E13_SlownessLeavesTheFewestPairs) {
  const v1::Outcome outcome = Evaluate(
      "Curve",
      SharedVictims().Replaced(kCurve,
                               "float v = x[i]; for (int k = 0; k < 40; ++k) "
                               "if (Bend(v + k) < -1.0f) v = 0.0f; "
                               "y[i] = Bend(v) + bias[i];"));
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_KIND_OK) << outcome.diagnostics();
  EXPECT_LT(outcome.speedup().ci95_high(), 1);
  EXPECT_GE(outcome.variant_ns_size(), 3);
}

TEST(GuardsTest, E17_FilesOfTheToolchainCannotBeEdited) {
  v1::Variant variant = SharedVictims().Replaced(kCurve, kCurve);
  v1::SourceOverlay* file = variant.add_sources();
  for (const v1::SourceFile& source :
       SharedVictims().Unit("Curve").manifest().translation_units(0).files()) {
    if (source.path().find("/cuda_runtime.h") != std::string::npos)
      file->set_path(source.path());
  }
  ASSERT_NE(file->path(), "");
  file->set_content("#define __global__\n");
  const v1::Outcome outcome = Evaluate("Curve", variant);
  EXPECT_EQ(outcome.kind(), kRejected);
  EXPECT_THAT(outcome.diagnostics(), HasSubstr("a file of the toolchain"));
}

TEST(GuardsTest, E17_NoFileCanBeAdded) {
  v1::Variant variant = SharedVictims().Replaced(
      kMoreDeviceCode, "#include \"/usr/include/more.h\"");
  v1::SourceOverlay* file = variant.add_sources();
  file->set_path("/tmp/more.h");
  const v1::Outcome outcome = Evaluate("Curve", variant);
  EXPECT_EQ(outcome.kind(), kRejected);
  EXPECT_THAT(outcome.diagnostics(),
              HasSubstr("/tmp/more.h: the variant edits a file that is none"));
}

TEST(GuardsTest, E17_HeadersOfTheUserCanBeEdited) {
  v1::Variant variant = SharedVictims().Replaced(kCurve, kCurve);
  for (const v1::SourceFile& source :
       SharedVictims().Unit("Curve").manifest().translation_units(0).files()) {
    if (source.path().find("/victims.h") == std::string::npos) continue;
    v1::SourceOverlay* file = variant.add_sources();
    file->set_path(source.path());
    std::string text =
        *SharedVictims().Unit("Curve").chunks().GetString(source.content());
    text.insert(text.find("for (int step"), "#pragma unroll 4\n");
    file->set_content(text);
  }
  ASSERT_EQ(variant.sources_size(), 2);
  EXPECT_EQ(Evaluate("Curve", variant).kind(), v1::OUTCOME_KIND_OK);
}

TEST(GuardsTest, E27_BranchThatIsNeverTakenIsNoSpeedup) {
  const v1::Outcome outcome =
      Evaluate("Curve", SharedVictims().Replaced(
                            kCurve,
                            "if (false) { y[i] = 1; } else { y[i] = Bend(x[i]) "
                            "+ bias[i]; }"));
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_KIND_OK);
  EXPECT_EQ(outcome.speedup().ratio(), 1);
  EXPECT_EQ(outcome.baseline_ns_size(), 0);
}

TEST(GuardsTest, E17_PassesThatLeaveTheModule) {
  for (const char* pipeline :
       {"function(dot-cfg)", "default<O3>,function(view-cfg)",
        "print<memoryssa>", "module(function(dot-dom-only))",
        "pgo-instr-gen"}) {
    v1::Variant variant;
    variant.set_pipeline(pipeline);
    const v1::Outcome outcome = Evaluate("Curve", variant);
    EXPECT_EQ(outcome.kind(), kRejected) << pipeline;
    EXPECT_THAT(outcome.diagnostics(), HasSubstr("pipeline: pass "));
  }
}

TEST(GuardsTest, E28_TooMuchDynamicSharedMemoryIsNoLaunch) {
  v1::Variant variant;
  variant.mutable_launch()->set_dynamic_shared_bytes(1 << 20);
  EXPECT_EQ(Evaluate("Curve", variant).kind(), kInvalid);
}

TEST(GuardsTest, E36_WhatHangsTimesOutAndTheNextOneRuns) {
  const v1::Outcome hung = Evaluate(
      "Curve", SharedVictims().Replaced(
                   kCurve, "for (volatile int k = 0; k < 1;) { k = 0; }"));
  EXPECT_EQ(hung.kind(), v1::OUTCOME_KIND_TIMEOUT) << hung.diagnostics();
  const v1::Outcome next = Evaluate(
      "Curve",
      SharedVictims().Replaced(kCurve, "y[i] = bias[i] + Bend(x[i]);"));
  EXPECT_EQ(next.kind(), v1::OUTCOME_KIND_OK) << next.diagnostics();
}

}  // namespace
}  // namespace reprise::testing
