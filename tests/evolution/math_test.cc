// Rewrites of arithmetic: what they give, and where they must not fire.
#include <string>

#include "ast_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<Move> MovesIn(const std::string& body, const std::string& kind) {
  std::vector<Move> moves;
  for (const Move& move : Analyze(Context(Kernel(body))).moves) {
    if (move.kind == kind) moves.push_back(move);
  }
  return moves;
}

TEST(RsqrtTest, DivisionByASquareRootBecomesAProduct) {
  EXPECT_EQ(BodyAfter("  c[0] = a[0] / sqrtf(b[0] + 1.0f);\n", "rsqrt"),
            "  c[0] = a[0] * rsqrtf(b[0] + 1.0f);\n");
  EXPECT_EQ(BodyAfter("  c[0] = a[0] / sqrt(b[0]);\n", "rsqrt"),
            "  c[0] = a[0] * rsqrtf(b[0]);\n");  // the float overload
  EXPECT_EQ(BodyAfter("  double d = n; c[0] = d / ::sqrt(d);\n", "rsqrt"),
            "  double d = n; c[0] = d * rsqrt(d);\n");
  EXPECT_EQ(BodyAfter("  c[0] /= sqrtf(b[0]);\n", "rsqrt"),
            "  c[0] *= rsqrtf(b[0]);\n");
}

TEST(RsqrtTest, OneOverASquareRootBecomesOneCall) {
  EXPECT_EQ(BodyAfter("  c[0] = 1.0f / sqrtf(b[0]);\n", "rsqrt"),
            "  c[0] = rsqrtf(b[0]);\n");
  // In double as before.
  EXPECT_EQ(BodyAfter("  c[0] = 1.0 / sqrtf(b[0]) + n;\n", "rsqrt"),
            "  c[0] = 1.0 * rsqrtf(b[0]) + n;\n");
}

TEST(RsqrtTest, IsInexactAndFiresNowhereElse) {
  EXPECT_THAT(MovesIn("  c[0] = a[0] / sqrtf(b[0]);\n", "rsqrt"),
              Each(Field(&Move::inexact, true)));
  EXPECT_THAT(KeysIn("  c[0] = a[0] * sqrtf(b[0]);\n", "rsqrt"), IsEmpty());
  EXPECT_THAT(KeysIn("  c[0] = sqrtf(b[0]) / a[0];\n", "rsqrt"), IsEmpty());
  EXPECT_THAT(KeysIn("  c[0] = a[0] / (sqrtf(b[0]) + 1);\n", "rsqrt"),
              IsEmpty());
  EXPECT_THAT(KeysIn("  c[0] = 2.0 / sqrt(n);\n", "rsqrt"), IsEmpty());
  const std::string macro =
      "#define NORM(x) ((x) / sqrtf(x))\n" + Kernel("  c[0] = NORM(a[0]);\n");
  EXPECT_THAT(Keys(Analyze(Context(macro)), "rsqrt"), IsEmpty());
  const std::string own = "__device__ float sqrtish(float x) { return x; }\n" +
                          Kernel("  c[0] = a[0] / sqrtish(b[0]);\n");
  EXPECT_THAT(Keys(Analyze(Context(own)), "rsqrt"), IsEmpty());
}

TEST(RsqrtTest, ALeftSideInAMacroStays) {
  const std::string source =
      "#define SCALE 2.0f\n" + Kernel("  c[0] = SCALE / sqrtf(b[0]);\n");
  EXPECT_THAT(After(Context(source), "rsqrt"),
              HasSubstr("c[0] = SCALE * rsqrtf(b[0]);"));
}

TEST(ReciprocalTest, OfAConstant) {
  EXPECT_EQ(BodyAfter("  c[0] = a[0] / 3.0f;\n", "reciprocal"),
            "  c[0] = a[0] * (1.0f / 3.0f);\n");
  EXPECT_EQ(BodyAfter("  c[0] = a[0] + b[0] / (2 * 3.0f) * 2;\n", "reciprocal"),
            "  c[0] = a[0] + b[0] * (1.0f / (2 * 3.0f)) * 2;\n");
  EXPECT_EQ(BodyAfter("  c[0] /= 7.0f;\n", "reciprocal"),
            "  c[0] *= (1.0f / 7.0f);\n");
}

TEST(ReciprocalTest, OnlyPowersOfTwoAreExact) {
  const auto inexact = [](const std::string& divisor) {
    const auto moves =
        MovesIn("  c[0] = a[0] / " + divisor + ";\n", "reciprocal");
    EXPECT_THAT(moves, SizeIs(1));
    return !moves.empty() && moves[0].inexact;
  };
  EXPECT_FALSE(inexact("4.0f"));
  EXPECT_FALSE(inexact("0.125f"));
  EXPECT_FALSE(inexact("8"));
  EXPECT_TRUE(inexact("3.0f"));
  EXPECT_TRUE(inexact("6.0f"));
}

TEST(ReciprocalTest, OfALoopInvariant) {
  const std::string body =
      "  const float scale = b[0];\n"
      "  for (int i = 0; i < n; ++i) c[i] = a[i] / scale;\n";
  EXPECT_EQ(BodyAfter(body, "reciprocal"),
            "  const float scale = b[0];\n"
            "  for (int i = 0; i < n; ++i) c[i] = a[i] * (1.0f / scale);\n");
  EXPECT_EQ(BodyAfter("  for (int i = 0; i < n; ++i) c[i] = a[i] / n;\n",
                      "reciprocal"),
            "  for (int i = 0; i < n; ++i) c[i] = a[i] * (1.0f / n);\n");
}

TEST(ReciprocalTest, NotOfWhatChangesNorOfIntegers) {
  const auto none = [](const std::string& body) {
    return KeysIn(body, "reciprocal").empty();
  };
  EXPECT_TRUE(none("  c[0] = a[0] / b[0];\n"));
  EXPECT_TRUE(none("  for (int i = 0; i < n; ++i) c[i] = a[i] / b[i];\n"));
  EXPECT_TRUE(none("  for (int i = 1; i < n; ++i) c[i] = a[i] / i;\n"));
  EXPECT_TRUE(none("  c[0] = n / 3;\n"));
  EXPECT_TRUE(none("  c[0] = a[0] / 0.0f;\n"));
  EXPECT_TRUE(none("  c[0] = 1.0f / 3.0f;\n"));
}

TEST(IntPow2Test, ShiftsAndMasksUnsignedValues) {
  EXPECT_EQ(BodyAfter("  c[threadIdx.x / 32 + 1] = 0;\n", "int_pow2"),
            "  c[(threadIdx.x >> 5) + 1] = 0;\n");
  EXPECT_EQ(BodyAfter("  unsigned u = n; c[u * 3 % 16u] = 0;\n", "int_pow2"),
            "  unsigned u = n; c[(u * 3 & 15u)] = 0;\n");
  EXPECT_EQ(BodyAfter("  int t = threadIdx.x; c[t % 8] = 0;\n", "int_pow2"),
            "  int t = threadIdx.x; c[(t & 7)] = 0;\n");
}

TEST(IntPow2Test, NotWhereAValueMayBeNegative) {
  const auto none = [](const std::string& body) {
    return KeysIn(body, "int_pow2").empty();
  };
  EXPECT_TRUE(none("  c[n / 32] = 0;\n"));
  EXPECT_TRUE(none("  int t = threadIdx.x; --t; c[t / 32] = 0;\n"));
  EXPECT_TRUE(
      none("  int t = blockIdx.x * blockDim.x + threadIdx.x; c[t % 4] = 0;\n"));
  EXPECT_TRUE(none("  c[threadIdx.x / 31] = 0;\n"));
  EXPECT_TRUE(none("  c[threadIdx.x / 1] = 0;\n"));
  EXPECT_TRUE(none("  c[threadIdx.x / 32ll - 5] = 0;\n"));  // long long before
}

TEST(PowTest, SmallExponentsAreWrittenOut) {
  EXPECT_EQ(BodyAfter("  c[0] = powf(a[n], 2.0f);\n", "pow"),
            "  c[0] = (a[n] * a[n]);\n");
  EXPECT_EQ(BodyAfter("  c[0] = 2 / powf(a[0] + 1, 3);\n", "pow"),
            "  c[0] = 2 / ((a[0] + 1) * (a[0] + 1) * (a[0] + 1));\n");
  EXPECT_EQ(BodyAfter("  c[0] = pow(a[0], 2);\n", "pow"),
            "  c[0] = (a[0] * a[0]);\n");
  EXPECT_EQ(BodyAfter("  c[0] = powf(a[0], 0.5f);\n", "pow"),
            "  c[0] = sqrtf(a[0]);\n");
  EXPECT_EQ(BodyAfter("  c[0] = pow((double)n, -0.5);\n", "pow"),
            "  c[0] = rsqrt(((double)n));\n");
  EXPECT_EQ(BodyAfter("  c[0] = pow(a[0], -1.0);\n", "pow"),
            "  c[0] = (1.0 / static_cast<double>(a[0]));\n");
}

TEST(PowTest, NotForOtherExponentsNorBasesWithEffects) {
  EXPECT_THAT(KeysIn("  c[0] = powf(a[0], 2.5f);\n", "pow"), IsEmpty());
  EXPECT_THAT(KeysIn("  c[0] = powf(a[0], b[0]);\n", "pow"), IsEmpty());
  EXPECT_THAT(KeysIn("  c[0] = powf(a[n++], 2);\n", "pow"), IsEmpty());
  EXPECT_THAT(KeysIn("  c[0] = powf(unknown(n), 2);\n", "pow"), IsEmpty());
  EXPECT_THAT(KeysIn("  c[0] = powf(expf(a[0]), 2);\n", "pow"), IsEmpty());
}

TEST(FloatLiteralTest, LiteralsBesideFloatsBecomeFloats) {
  EXPECT_EQ(
      BodyAfter("  c[0] = 0.5 * (1.0 + a[0]) - 2. / b[0];\n", "float_literal"),
      "  c[0] = 0.5f * (1.0f + a[0]) - 2.f / b[0];\n");
  EXPECT_EQ(BodyAfter("  c[0] += 1e-3 * a[0];\n", "float_literal"),
            "  c[0] += 1e-3f * a[0];\n");
  EXPECT_EQ(BodyAfter("  c[0] *= 0.5;\n", "float_literal"),
            "  c[0] *= 0.5f;\n");
  EXPECT_EQ(BodyAfter("  if (a[0] > 0.25) c[0] = expf(-2.0 * a[0]);\n",
                      "float_literal"),
            "  if (a[0] > 0.25f) c[0] = expf(-2.0f * a[0]);\n");
}

TEST(FloatLiteralTest, ComputationsInDoubleStay) {
  const auto none = [](const std::string& body) {
    return KeysIn(body, "float_literal").empty();
  };
  EXPECT_TRUE(none("  double d = 0.5 * a[0]; c[0] = d;\n"));
  EXPECT_TRUE(none("  double d = n; c[0] = 0.5 * d * a[0];\n"));
  EXPECT_TRUE(none("  c[0] = 0.5f * a[0];\n"));
  EXPECT_TRUE(none("  c[0] = 0.5;\n"));
  EXPECT_TRUE(none("  c[0] = 0.5 * n;\n"));
  const std::string macro =
      "#define HALF 0.5\n" + Kernel("  c[0] = HALF * a[0];\n");
  EXPECT_THAT(Keys(Analyze(Context(macro)), "float_literal"), IsEmpty());
}

TEST(FastFunctionTest, FloatCallsOnGpusOnly) {
  EXPECT_EQ(BodyAfter("  c[0] = expf(a[0]);\n", "fast_function"),
            "  c[0] = __expf(a[0]);\n");
  EXPECT_THAT(KeysIn("  c[0] = pow(a[0], n);\n", "fast_function"), IsEmpty());
  EXPECT_THAT(KeysIn("  c[0] = __expf(a[0]);\n", "fast_function"), IsEmpty());
  EXPECT_THAT(
      Keys(Analyze(Context(Kernel("  c[0] = expf(a[0]);\n"), "kernel", "cpu")),
           "fast_function"),
      IsEmpty());
}

}  // namespace
}  // namespace reprise::evolution
