#include "evolution/tokens.h"

#include <string>
#include <vector>

#include "evolution/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Tokens(const std::string& code) {
  std::vector<std::string> tokens;
  Lexer lexer(code);
  while (lexer.Next()) tokens.emplace_back(lexer.token());
  return tokens;
}

TEST(LexerTest, GivesTokensWithTheirPlaces) {
  EXPECT_THAT(Tokens("a<<<b>>>(1.5e-3f); // c"),
              ElementsAre("a", "<<<", "b", ">>>", "(", "1.5e-3f", ")", ";"));
  EXPECT_THAT(Tokens("x = .5f; R\"(a)\" 'c'"),
              ElementsAre("x", "=", ".5f", ";", "R\"(a)\"", "'c'"));
  const std::string code = "/* c */ a\n #b c";
  Lexer lexer(code);
  ASSERT_TRUE(lexer.Next());
  EXPECT_EQ(lexer.offset(), 8u);
  ASSERT_TRUE(lexer.Next());
  EXPECT_EQ(lexer.token(), "#");
  EXPECT_TRUE(lexer.first_in_line());
  ASSERT_TRUE(lexer.Next());
  EXPECT_FALSE(lexer.first_in_line());
}

TEST(LexerTest, TakesAnyBytes) {
  const std::string alphabet = "ab1.'\"\\/*R(){}\n<>#=\x80\r ";
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    std::string text;
    for (size_t i = random.Below(60); i > 0; --i)
      text += alphabet[random.Below(alphabet.size())];
    Lexer lexer(text);
    size_t end = 0;
    while (lexer.Next()) {
      EXPECT_GE(lexer.offset(), end);
      end = lexer.offset() + lexer.token().size();
      EXPECT_GT(lexer.token().size(), 0u);
      EXPECT_LE(end, text.size());
    }
    EXPECT_EQ(NormalForm(text), NormalForm(text));
    WhyNotSelfContained(text);
  }
}

constexpr char kKernel[] = R"(
__global__ void k(const float* a, float* b, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; i++) sum += a[i] * 0x10;
  b[0] = expf(sum);  // the end
})";

std::string With(const std::string& from, const std::string& to) {
  std::string text = kKernel;
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  EXPECT_NE(text, kKernel) << from;
  return text;
}

TEST(NormalFormTest, IsBlindToWhatMakesNoDifference) {
  const std::string form = NormalForm(kKernel);
  EXPECT_EQ(NormalForm(With("sum", "total")), form);
  EXPECT_EQ(NormalForm(With("  // the end", "")), form);
  EXPECT_EQ(NormalForm(With("\n", "\n\n  ")), form);
  EXPECT_EQ(NormalForm(With("i++", "++i")), form);
  EXPECT_EQ(NormalForm(With("0x10", "16")), form);
  EXPECT_EQ(NormalForm(With("0.0f", "0.F")), form);
  EXPECT_EQ(NormalForm(With("= expf(sum);", "= expf(sum);;")), form);
}

TEST(NormalFormTest, SeesWhatDoes) {
  const std::string form = NormalForm(kKernel);
  EXPECT_NE(NormalForm(With("0x10", "32")), form);
  EXPECT_NE(NormalForm(With("expf", "sinf")), form);
  EXPECT_NE(NormalForm(With("a[i] *", "b[i] *")), form);
  EXPECT_NE(NormalForm(With("float sum", "double sum")), form);
  EXPECT_NE(NormalForm(With("const float*", "float*")), form);
  EXPECT_NE(NormalForm(With("i < n", "i < N")), form);
  // Members keep their names: another order is another layout.
  EXPECT_NE(NormalForm("struct P { float x; float y; }; f(p.x);"),
            NormalForm("struct P { float y; float x; }; f(p.x);"));
  // Constants that the code does not declare are no names of its own.
  EXPECT_NE(NormalForm("x = y * K1;"), NormalForm("x = y * K2;"));
  EXPECT_NE(NormalForm("return K1;"), NormalForm("return K2;"));
}

}  // namespace
}  // namespace reprise::evolution
