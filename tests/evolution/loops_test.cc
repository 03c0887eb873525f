// Rewrites of loops: what they give, and where they must not fire.
#include <string>

#include "ast_test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kSum[] =
    "  float sum = 0;\n"
    "  for (int i = 0; i < n; ++i) sum += a[i];\n"
    "  c[0] = sum;\n";

TEST(UnrollTest, PragmaComesOnItsOwnLineBeforeTheLoop) {
  EXPECT_EQ(BodyAfter(kSum, "unroll", "=4"),
            "  float sum = 0;\n"
            "  #pragma unroll 4\n"
            "  for (int i = 0; i < n; ++i) sum += a[i];\n"
            "  c[0] = sum;\n");
}

TEST(UnrollTest, LoopBehindAnElse) {
  EXPECT_EQ(BodyAfter("  if (n > 0) c[0] = 1;\n"
                      "  else for (int i = 0; i < n; ++i) c[i] = a[i];\n",
                      "unroll", "=8"),
            "  if (n > 0) c[0] = 1;\n"
            "  else \n#pragma unroll 8\n"
            "  for (int i = 0; i < n; ++i) c[i] = a[i];\n");
}

TEST(UnrollTest, FactorsFollowTheTripCount) {
  const auto keys = [](const std::string& header) {
    std::vector<std::string> parameters;
    for (const std::string& key :
         KeysIn("  for (" + header + ") c[i] = a[i];\n", "unroll")) {
      parameters.push_back(key.substr(key.rfind('=') + 1));
    }
    return parameters;
  };
  EXPECT_THAT(keys("int i = 0; i < n; ++i"),
              ElementsAre("1", "16", "2", "4", "8"));
  EXPECT_THAT(keys("int i = 0; i < 3; ++i"), ElementsAre("1", "2", "full"));
  EXPECT_THAT(keys("int i = 0; i <= 8; i += 2"),
              ElementsAre("1", "2", "4", "full"));
  EXPECT_THAT(keys("int i = 0; i < 1000; ++i"),
              ElementsAre("1", "16", "2", "4", "8"));
}

TEST(UnrollTest, AnOldPragmaIsReplaced) {
  const std::string body =
      "#pragma unroll 2\n"
      "  for (int i = 0; i < n; ++i) c[i] = a[i];\n";
  EXPECT_EQ(BodyAfter(body, "unroll", "=4"),
            "#pragma unroll 4\n"
            "  for (int i = 0; i < n; ++i) c[i] = a[i];\n");
  EXPECT_THAT(KeysIn(body, "unroll"),
              Not(testing::Contains(testing::EndsWith("=2"))));
}

TEST(UnrollTest, LoopsInMacrosAreLeftAlone) {
  const std::string source =
      "#define LOOP for (int i = 0; i < n; ++i) c[i] = a[i]\n" +
      Kernel("  LOOP;\n");
  EXPECT_THAT(Keys(Analyze(Context(source)), "unroll"), IsEmpty());
}

TEST(InterchangeTest, SwapsTheHeadersOfAPerfectNest) {
  const std::string body =
      "  __shared__ float t[64][64];\n"
      "  for (int i = 0; i < 64; ++i) {\n"
      "    for (int j = 0; j < n; ++j) t[j][i] = a[i];\n"
      "  }\n"
      "  c[0] = t[0][0];\n";
  EXPECT_THAT(BodyAfter(body, "interchange"),
              HasSubstr("  for (int j = 0; j < n; ++j) {\n"
                        "    for (int i = 0; i < 64; ++i) t[j][i] = a[i];\n"));
}

TEST(InterchangeTest, SumsOfFloatsAreInexactAndOfIntegersExact) {
  const auto moves = [](const std::string& type) {
    return Analyze(
        Context(Kernel("  " + type +
                       " s = 0;\n"
                       "  for (int i = 0; i < n; ++i)\n"
                       "    for (int j = 0; j < n; ++j) s += i ^ j;\n"
                       "  c[0] = s;\n")));
  };
  const auto inexact = [](const SourceAnalysis& analysis) {
    for (const Move& move : analysis.moves) {
      if (move.kind == "interchange") return move.inexact ? "yes" : "no";
    }
    return "none";
  };
  EXPECT_STREQ(inexact(moves("float")), "yes");
  EXPECT_STREQ(inexact(moves("int")), "no");
}

TEST(InterchangeTest, RefusesWhatItCannotProve) {
  const auto none = [](const std::string& body) {
    return KeysIn("  __shared__ float t[64][64];\n  float s = 0;\n" + body +
                      "  c[0] = s + t[0][0];\n",
                  "interchange")
        .empty();
  };
  EXPECT_TRUE(
      none("  for (int i = 0; i < n; ++i)\n"  // triangle
           "    for (int j = 0; j < i; ++j) s += a[j];\n"));
  EXPECT_TRUE(
      none("  for (int i = 0; i < n; ++i)\n"  // reads what it writes
           "    for (int j = 1; j < n; ++j) t[i][j] = t[i][j - 1];\n"));
  EXPECT_TRUE(
      none("  for (int i = 0; i < n; ++i)\n"  // the last one wins
           "    for (int j = 0; j < n; ++j) c[i + j] = a[i];\n"));
  EXPECT_TRUE(
      none("  for (int i = 0; i < n; ++i) {\n"  // not perfect
           "    s *= 2;\n"
           "    for (int j = 0; j < n; ++j) s += a[j];\n"
           "  }\n"));
  EXPECT_TRUE(
      none("  for (int i = 0; i < n; ++i)\n"  // the bound moves
           "    for (int j = 0; j < n; ++j) n -= 1;\n"));
  EXPECT_TRUE(
      none("  for (int i = 0; i < n; ++i)\n"
           "    for (int j = 0; j < n; ++j) s += unknown(i);\n"));
}

TEST(HoistLoadTest, LoadsOnceBeforeTheLoop) {
  EXPECT_EQ(BodyAfter("  for (int i = 0; i < n; ++i) {\n"
                      "    c[i] = a[n - 1] * b[i] + a[n - 1];\n"
                      "  }\n",
                      "hoist_load"),
            "  const float a_once_4 = a[n - 1];\n"
            "  for (int i = 0; i < n; ++i) {\n"
            "    c[i] = a_once_4 * b[i] + a_once_4;\n"
            "  }\n");
}

TEST(HoistLoadTest, TwoLoadsOfOneLoopGoTogether) {
  const SourceContext context = Context(
      Kernel("  for (int i = 0; i < n; ++i) c[i] = a[0] + a[1] * b[0];\n"));
  const SourceAnalysis analysis = Analyze(context);
  std::vector<const Move*> all;
  for (const Move& move : analysis.moves) {
    if (move.kind == "hoist_load") all.push_back(&move);
  }
  ASSERT_THAT(all, SizeIs(3));
  const auto files = ApplyMoves(analysis.source, all);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_TRUE(CheckSource(context, *files).ok());
  EXPECT_THAT(files->at("/app/kernel.cu"),
              HasSubstr("c[i] = a_once_3 + a_once2_3 * b_once3_3;"));
}

TEST(HoistLoadTest, GoesBeforeAPragma) {
  EXPECT_EQ(BodyAfter("  #pragma unroll 2\n"
                      "  for (int i = 0; i < n; ++i) c[i] = a[0];\n",
                      "hoist_load"),
            "  const float a_once_4 = a[0];\n"
            "  #pragma unroll 2\n"
            "  for (int i = 0; i < n; ++i) c[i] = a_once_4;\n");
}

TEST(HoistLoadTest, RefusesWhatMayChangeOrMayNotBeRead) {
  const auto none = [](const std::string& body) {
    return KeysIn(body, "hoist_load").empty();
  };
  // Changes with the loop.
  EXPECT_TRUE(none("  for (int i = 0; i < n; ++i) c[i] = a[i];\n"));
  // Written through the same pointer.
  EXPECT_TRUE(none("  for (int i = 0; i < n; ++i) c[i] = c[0];\n"));
  // Read in some iterations only.
  EXPECT_TRUE(none("  for (int i = 0; i < n; ++i) c[i] = i > 2 ? a[0] : 0;\n"));
  EXPECT_TRUE(none("  for (int i = 0; i < n; ++i) if (i > n) c[i] = a[0];\n"));
  // Other threads come between.
  EXPECT_TRUE(
      none("  for (int i = 0; i < n; ++i) {\n"
           "    c[i] = a[0];\n    __syncthreads();\n  }\n"));
  // The index, or the pointer, moves.
  EXPECT_TRUE(
      none("  int k = 0;\n"
           "  for (int i = 0; i < n; ++i) { c[i] = a[k]; k += 2; }\n"));
  EXPECT_TRUE(none("  for (int i = 0; i < n; ++i) { c[i] = a[0]; a += 1; }\n"));
  // Nothing is stored: LLVM does it by itself.
  EXPECT_TRUE(
      none("  float s = 0;\n"
           "  for (int i = 0; i < n; ++i) s += a[0];\n"
           "  c[0] = s;\n"));
}

TEST(RegisterAccumulatorTest, KeepsTheElementInARegister) {
  EXPECT_EQ(BodyAfter("  const int t = threadIdx.x;\n"
                      "  for (int k = 0; k < n; ++k)\n"
                      "    c[t * n] += a[k] * b[k];\n",
                      "register_accumulator"),
            "  const int t = threadIdx.x;\n"
            "  float c_register_5 = c[t * n];\n"
            "  for (int k = 0; k < n; ++k)\n"
            "    c_register_5 += a[k] * b[k];\n"
            "  c[t * n] = c_register_5;\n");
}

TEST(RegisterAccumulatorTest, RefusesOtherUsesOfThePointer) {
  const auto none = [](const std::string& body) {
    return KeysIn(body, "register_accumulator").empty();
  };
  EXPECT_TRUE(none("  for (int k = 0; k < n; ++k) c[0] += c[k];\n"));
  EXPECT_TRUE(none("  for (int k = 0; k < n; ++k) c[k] += a[k];\n"));
  EXPECT_TRUE(none("  for (int k = 0; k < n; ++k) if (k > 3) c[0] += a[k];\n"));
  EXPECT_TRUE(
      none("  for (int k = 0; k < n; ++k) { c[0] += a[k]; atomicAdd(c, 1.f); "
           "}\n"));
  EXPECT_TRUE(
      none("  for (int k = 0; k < n; ++k) {\n"
           "    c[0] += a[k];\n    if (k > 5) return;\n  }\n"));
}

TEST(PartialSumsTest, SplitsASum) {
  EXPECT_EQ(BodyAfter(kSum, "partial_sums", "=2"),
            "  float sum = 0;\n"
            "  int i_next_4 = 0;\n"
            "  float sum_part1_4 = 0;\n"
            "  for (; i_next_4 + 1 < n; i_next_4 += 2) {\n"
            "    {\n"
            "      const int i = i_next_4;\n"
            "      sum += a[i];\n"
            "    }\n"
            "    {\n"
            "      const int i = i_next_4 + 1;\n"
            "      sum_part1_4 += a[i];\n"
            "    }\n"
            "  }\n"
            "  sum += sum_part1_4;\n"
            "  for (int i = i_next_4; i < n; ++i) sum += a[i];\n"
            "  c[0] = sum;\n");
}

TEST(PartialSumsTest, SplitsAMaximumWithTheLoopsOwnStep) {
  const std::string after = BodyAfter(
      "  float best = a[0];\n"
      "  for (int i = threadIdx.x; i < n; i += blockDim.x) {\n"
      "    const float x = a[i] * 2;\n"
      "    best = fmaxf(best, x);\n"
      "  }\n"
      "  c[0] = best;\n",
      "partial_sums", "=4");
  EXPECT_THAT(after, HasSubstr("float best_part3_4 = best;\n"));
  EXPECT_THAT(after, HasSubstr("i_next_4 + 3 * blockDim.x < n"));
  EXPECT_THAT(after,
              HasSubstr("      const int i = i_next_4 + 2 * blockDim.x;\n"
                        "      const float x = a[i] * 2;\n"
                        "      best_part2_4 = fmaxf(best_part2_4, x);\n"
                        "    }\n"));
  EXPECT_THAT(after, HasSubstr("  best = fmaxf(best, best_part1_4);\n"));
  EXPECT_THAT(after,
              HasSubstr("for (int i = i_next_4; i < n; i += blockDim.x)"));
}

TEST(PartialSumsTest, TwoLoopsOfOneFunctionGoTogether) {
  const SourceContext context =
      Context(Kernel("  float s = 0;\n"
                     "  for (int i = 0; i < n; ++i) s += a[i];\n"
                     "  for (int i = 0; i < n; ++i) s += b[i];\n"
                     "  c[0] = s;\n"));
  const SourceAnalysis analysis = Analyze(context);
  std::vector<const Move*> both;
  for (const Move& move : analysis.moves) {
    if (move.kind == "partial_sums" && move.key.back() == '4') {
      both.push_back(&move);
    }
  }
  ASSERT_THAT(both, SizeIs(2));
  const auto files = ApplyMoves(analysis.source, both);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_TRUE(CheckSource(context, *files).ok());
}

TEST(PartialSumsTest, OnlyFloatSumsAreInexact) {
  const auto analysis =
      Analyze(Context(Kernel("  float s = 0;\n  int m = 0;\n"
                             "  for (int i = 0; i < n; ++i) s += a[i];\n"
                             "  for (int i = 0; i < n; ++i) m = max(m, i);\n"
                             "  c[0] = s + m;\n")));
  ASSERT_THAT(Keys(analysis, "partial_sums"), SizeIs(6));
  for (const Move& move : analysis.moves) {
    if (move.kind != "partial_sums") continue;
    EXPECT_EQ(move.inexact, move.key.find(":5:") != std::string::npos)
        << move.key;
  }
}

TEST(PartialSumsTest, RefusesWhatIsMoreThanASum) {
  const auto none = [](const std::string& loop) {
    return KeysIn("  float s = 0;\n" + loop + "  c[0] = s;\n", "partial_sums")
        .empty();
  };
  EXPECT_TRUE(none("  for (int i = 0; i < n; ++i) s += s * a[i];\n"));
  EXPECT_TRUE(none("  for (int i = 0; i < n; ++i) { c[i] = s; s += a[i]; }\n"));
  EXPECT_TRUE(none("  for (int i = 0; i < n; ++i) if (i > 3) s += a[i];\n"));
  EXPECT_TRUE(none("  for (int i = 0; i < n; ++i) s -= a[i];\n"));
  EXPECT_TRUE(
      none("  for (int i = 0; i < n; ++i) { float t = 0; t += a[i]; }\n"));
  EXPECT_TRUE(none("  for (int i = 0; s < n; ++i) s += a[i];\n"));
  EXPECT_TRUE(none("  for (int i = 0; i < n; ++i) { s += a[i]; ++i; }\n"));
  EXPECT_TRUE(none("  for (int i = n; i > 0; --i) s += a[i];\n"));
  EXPECT_TRUE(none("  for (int i = 0; i < n; ++i) s += unknown(i);\n"));
  EXPECT_TRUE(
      none("  for (int i = 0; i < n; ++i) { if (i == 7) break; s += "
           "a[i]; }\n"));
}

TEST(LoopConflictTest, RewritesThatRestOnALoopsShapeExcludeItsChange) {
  const SourceAnalysis analysis =
      Analyze(Context(Kernel("  for (int i = 0; i < n; ++i) {\n"
                             "    for (int j = 0; j < n; ++j)\n"
                             "      c[0] += a[j] * b[i] * b[n];\n"
                             "  }\n")));
  const auto find = [&](const std::string& kind, size_t line) {
    for (const Move& move : analysis.moves) {
      const bool there =
          move.key.find(":" + std::to_string(line)) != std::string::npos ||
          move.key.rfind("=" + std::to_string(line)) != std::string::npos;
      if (move.kind == kind && there) return &move;
    }
    return static_cast<const Move*>(nullptr);
  };
  const Move* interchange = find("interchange", 3);
  const Move* outer_unroll = find("unroll", 3);
  const Move* inner_hoist = nullptr;
  const Move* inner_register = nullptr;
  for (const Move& move : analysis.moves) {
    if (move.key.substr(move.key.size() - 2) != "=4") continue;  // inner loop
    if (move.kind == "hoist_load") inner_hoist = &move;
    if (move.kind == "register_accumulator") inner_register = &move;
  }
  ASSERT_TRUE(interchange && outer_unroll && inner_hoist && inner_register);
  EXPECT_TRUE(Compatible(*interchange, *outer_unroll));
  EXPECT_FALSE(Compatible(*interchange, *inner_hoist));
  EXPECT_FALSE(Compatible(*interchange, *inner_register));
  EXPECT_TRUE(Compatible(*inner_hoist, *inner_register));
}

}  // namespace
}  // namespace reprise::evolution
