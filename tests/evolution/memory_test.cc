// Rewrites of parameters, loads and shared arrays.
#include <string>

#include "ast_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(RestrictTest, QualifiesPointersAtTheirNames) {
  const std::string source = Kernel("  c[n] = a[n] + b[n];\n");
  EXPECT_THAT(After(Context(source), "restrict", "=all"),
              HasSubstr("kernel(const float* __restrict__ a, const float* "
                        "__restrict__ b,\n                                  "
                        "float* __restrict__ c, int n)"));
  EXPECT_THAT(After(Context(source), "restrict", "=b"),
              HasSubstr("(const float* a, const float* __restrict__ b,\n"));
}

// __restrict__ is a top-level qualifier: no part of the symbol.
TEST(RestrictTest, KeepsAMangledSymbol) {
  const std::string source =
      "namespace ns {\n"
      "template <typename T>\n"
      "__global__ void scale(const T* x, T* y) { y[0] = x[0]; }\n"
      "template __global__ void scale<float>(const float*, float*);\n"
      "}\n";
  const std::string symbol = "_ZN2ns5scaleIfEEvPKT_PS1_";
  // After() checks that the symbol is still defined.
  EXPECT_THAT(After(Context(source, symbol), "restrict", "=all"),
              HasSubstr("scale(const T* __restrict__ x, T* __restrict__ y)"));
}

TEST(RestrictTest, IsAClaimAndLeavesOthersAlone) {
  const SourceAnalysis analysis = Analyze(Context(
      "extern \"C\" __global__ void kernel(const float* __restrict a, float "
      "b[], float* c, float *) { c[0] = a[0]; }\n"));
  EXPECT_THAT(Keys(analysis, "restrict"),
              ElementsAre(testing::EndsWith("=all")));
  for (const Move& move : analysis.moves) {
    if (move.kind != "restrict") continue;
    EXPECT_EQ(move.edits.size(), 1u);  // c
    EXPECT_THAT(move.claim, HasSubstr("does not overlap"));
  }
  EXPECT_THAT(
      Keys(Analyze(Context("extern \"C\" __global__ void kernel(float* c) { "
                           "c[0] = 1; }\n")),
           "restrict"),
      IsEmpty());
}

TEST(LdgTest, WrapsEveryReadOfAnUnwrittenPointer) {
  EXPECT_EQ(
      BodyAfter("  c[n] = a[n] * a[n + 1] + *a + *(a + n);\n", "ldg", "=a"),
      "  c[n] = __ldg(&a[n]) * __ldg(&a[n + 1]) + __ldg(&*a) + "
      "__ldg(&*(a + n));\n");
}

TEST(LdgTest, NotWhereThePointerIsWrittenThroughOrGoesElsewhere) {
  const auto keys = [](const std::string& body) { return KeysIn(body, "ldg"); };
  EXPECT_THAT(keys("  c[n] = 1; c[0] = c[1];\n"), IsEmpty());
  EXPECT_THAT(keys("  const float* p = a; c[n] = p[0];\n"), IsEmpty());
  EXPECT_THAT(keys("  c[n] = a[n]; ++a;\n"), IsEmpty());
  EXPECT_THAT(keys("  const float& r = a[0]; c[n] = r + a[1];\n"), IsEmpty());
  EXPECT_THAT(
      Keys(Analyze(Context(Kernel("  c[n] = a[n];\n"), "kernel", "cpu")),
           "ldg"),
      IsEmpty());
}

TEST(LaunchBoundsTest, StandBeforeTheName) {
  const std::string source = Kernel("  c[n] = 0;\n");
  EXPECT_THAT(After(Context(source), "launch_bounds", "=256x0"),
              HasSubstr("__global__ void __launch_bounds__(256) kernel("));
  EXPECT_THAT(After(Context(source), "launch_bounds", "=256x4"),
              HasSubstr("__launch_bounds__(256, 4) kernel("));
  EXPECT_THAT(Keys(Analyze(Context(source)), "launch_bounds"), SizeIs(6));
}

TEST(LaunchBoundsTest, NotASecondTimeNorWithoutALaunch) {
  const std::string source =
      "extern \"C\" __global__ void __launch_bounds__(128) kernel(float* c) "
      "{ c[0] = 1; }\n";
  EXPECT_THAT(Keys(Analyze(Context(source)), "launch_bounds"), IsEmpty());
  SourceContext unknown = Context(Kernel("  c[n] = 0;\n"));
  unknown.threads_per_block = 0;
  EXPECT_THAT(Keys(Analyze(unknown), "launch_bounds"), IsEmpty());
}

TEST(SharedPadTest, WidensTheRows) {
  const std::string body =
      "  __shared__ float tile[32][32];\n"
      "  tile[threadIdx.y][threadIdx.x] = a[n];\n"
      "  __syncthreads();\n"
      "  c[n] = tile[threadIdx.x][threadIdx.y];\n";
  EXPECT_THAT(BodyAfter(body, "shared_pad", "=1"),
              HasSubstr("float tile[32][32 + 1];"));
}

TEST(SharedPadTest, ExtentsMayBeNamesOrMacros) {
  const auto source = [](const std::string& define) {
    return define + Kernel(
                        "  __shared__ float tile[TILE][TILE];\n"
                        "  tile[0][threadIdx.x] = a[n];\n"
                        "  c[n] = tile[0][0];\n");
  };
  EXPECT_THAT(
      After(Context(source("constexpr int TILE = 16;\n")), "shared_pad", "=1"),
      HasSubstr("tile[TILE][TILE + 1];"));
  EXPECT_THAT(After(Context(source("#define TILE 32\n")), "shared_pad", "=2"),
              HasSubstr("tile[TILE][TILE + 2];"));
  // TILE + 1 would be 1 << (5 + 1).
  EXPECT_THAT(
      Keys(Analyze(Context(source("#define TILE 1 << 5\n"))), "shared_pad"),
      IsEmpty());
}

TEST(SharedPadTest, NotWhereTheLayoutShows) {
  const auto none = [](const std::string& declaration, const std::string& use) {
    return KeysIn("  __shared__ float " + declaration + ";\n  " + use +
                      "\n  c[n] = 0;\n",
                  "shared_pad")
        .empty();
  };
  EXPECT_TRUE(none("t[32][32]", "float* p = &t[0][0]; p[33] = 1;"));
  EXPECT_TRUE(none("t[32][32]", "float* p = t[0]; p[33] = 1;"));
  EXPECT_TRUE(none("t[32][32]", "c[0] = sizeof(t);"));
  EXPECT_TRUE(none("t[32][32]", "auto& r = t; r[0][0] = 1;"));
  EXPECT_TRUE(none("t[1024]", "t[n] = 1;"));
  EXPECT_TRUE(none("t[32][33]", "t[n][n] = 1;"));
  EXPECT_FALSE(none("t[32][32]", "atomicAdd(&t[n][n], 1.0f);"));
  EXPECT_TRUE(KeysIn("  float t[32][32]; t[n][n] = 1; c[0] = t[n][n];\n",
                     "shared_pad")
                  .empty());  // not shared
}

TEST(AlignmentTest, StatesItAtTheTop) {
  EXPECT_EQ(BodyAfter("  c[n] = a[n];\n", "assume_aligned"),
            R"(  a = static_cast<const float*>(__builtin_assume_aligned(a, 16));
  b = static_cast<const float*>(__builtin_assume_aligned(b, 16));
  c = static_cast<float*>(__builtin_assume_aligned(c, 16));
  c[n] = a[n];
)");
}

}  // namespace
}  // namespace reprise::evolution
