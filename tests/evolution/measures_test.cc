#include "evolution/measures.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "evolution/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CountTokensTest, CountsWhatACompilerReads) {
  EXPECT_EQ(CountTokens(""), 0u);
  EXPECT_EQ(CountTokens(" // nothing\n /* at\n all */ "), 0u);
  EXPECT_EQ(CountTokens("a[i] += b->c << 2;"), 11u);
  EXPECT_EQ(CountTokens("k<<<grid, block>>>(x)"), 9u);
  EXPECT_EQ(CountTokens("x = 1'000.5e-3f + 0x1.8p+3;"), 6u);
  EXPECT_EQ(CountTokens("f(\"a // \\\" b\", '\\'')"), 6u);
  EXPECT_EQ(CountTokens("R\"x(a \" )\" b)x\" L\"w\" u8\"v\""), 3u);
  EXPECT_EQ(CountTokens("#define A(x) x##1 \\\n + 2"), 11u);
}

TEST(CountTokensTest, CommentsAndNamesDoNotCount) {
  const std::string plain = "float Sum(float a, float b) { return a + b; }";
  const std::string wordy =
      "float SumOfBothArguments(float first, /* the\n other */ float second) "
      "{\n"
      "  return first + second;  // here it is\n}";
  EXPECT_EQ(CountTokens(plain), CountTokens(wordy));
}

TEST(CountTokensTest, TakesAnyBytes) {
  const std::string alphabet = "ab1.'\"\\/*R(\n<>#=\x80\0 ";
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    std::string text;
    for (size_t i = random.Below(60); i > 0; --i)
      text += alphabet[random.Below(alphabet.size())];
    EXPECT_LE(CountTokens(text), text.size());
  }
  for (const char* unfinished : {"/* a", "\"a", "R\"x(a", "R\"x", "'\\"})
    EXPECT_LE(CountTokens(unfinished), 2u) << unfinished;
}

TEST(EvolvableTokensTest, CountsRegionsAlone) {
  const std::string text = "int before; void K() { a(); } int after;";
  const size_t begin = text.find("void"), end = text.find(" int after");
  const EvolvableSource source(
      {{.path = "/k.cu", .content = text}},
      {{.path = "/k.cu", .begin = begin, .end = end, .name = "K"}});
  EXPECT_EQ(EvolvableTokens(source, {}), 10u);
  std::string longer = text;
  longer.insert(text.find("a();"), "b(1); /* more */ ");
  EXPECT_EQ(EvolvableTokens(source, {{"/k.cu", longer}}), 15u);
}

TEST(MeasuresTest, AreThoseOfTheOutcome) {
  MeasuredVariant variant;
  variant.tokens = 120;
  variant.code.set_registers(40);
  variant.code.set_occupancy(0.5);
  variant.code.set_static_shared_bytes(4096);
  (*variant.code.mutable_ir_features())["fmul"] = 6;
  (*variant.code.mutable_ir_features())["fadd"] = 2;
  (*variant.code.mutable_ir_features())["load"] = 3;
  (*variant.code.mutable_ir_features())["store"] = 1;
  std::vector<Dimension> dimensions;
  for (const char* name : {"tokens", "registers", "occupancy", "shared_bytes",
                           "intensity", "ir_distance"}) {
    const auto dimension = StandardDimension(name);
    ASSERT_TRUE(dimension.ok()) << dimension.status();
    EXPECT_EQ(dimension->name, name);
    dimensions.push_back(*dimension);
  }
  EXPECT_TRUE(NewGridCells(dimensions).ok());
  EXPECT_THAT(*MeasuresOf(dimensions, variant),
              ElementsAre(120, 40, 0.5, 4096, 2, 0));
  const auto unknown = MeasuresOf({{.name = "colour"}}, variant).status();
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("got measure 'colour', expected one of tokens, "));
}

TEST(ParseCellsTest, ReadsWhatUsersWrite) {
  EXPECT_EQ((*ParseCells("kinds", 1))->count(), 0u);
  const auto grid = ParseCells("grid:tokens,registers", 1);
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_THAT((*grid)->dimensions(), testing::SizeIs(2));
  const auto cvt = ParseCells("cvt:32:tokens,occupancy,ir_distance", 1);
  ASSERT_TRUE(cvt.ok()) << cvt.status();
  EXPECT_EQ((*cvt)->count(), 32u);
  for (const char* wrong :
       {"", "grid", "grid:", "grid:colour", "cvt:tokens", "cvt:many:tokens",
        "cvt:1:tokens", "kinds:tokens"}) {
    EXPECT_EQ(ParseCells(wrong, 1).status().code(),
              absl::StatusCode::kInvalidArgument)
        << wrong;
  }
}

TEST(MeasuresTest, IrDistanceIsZeroForTheSameAndOneForNothingAlike) {
  const std::vector<Dimension> distance = {*StandardDimension("ir_distance")};
  MeasuredVariant variant;
  (*variant.recorded.mutable_ir_features())["load"] = 3;
  (*variant.recorded.mutable_ir_features())["fmul"] = 9;
  variant.code = variant.recorded;
  EXPECT_NEAR((*MeasuresOf(distance, variant))[0], 0, 1e-12);
  (*variant.code.mutable_ir_features())["fmul"] = 12;
  const double near = (*MeasuresOf(distance, variant))[0];
  (*variant.code.mutable_ir_features())["phi"] = 30;
  const double far = (*MeasuresOf(distance, variant))[0];
  EXPECT_GT(near, 0);
  EXPECT_GT(far, near);
  variant.code.clear_ir_features();
  (*variant.code.mutable_ir_features())["br"] = 1;
  EXPECT_EQ((*MeasuresOf(distance, variant))[0], 1);
}

}  // namespace
}  // namespace reprise::evolution
