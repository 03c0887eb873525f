#include "bayesopt/expression.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::bayesopt {
namespace {

using std::string_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::optional<Value> Evaluate(const std::string& text,
                              const Assignment& at = {}) {
  const auto expression = Expression::Parse(text);
  EXPECT_TRUE(expression.ok()) << text << ": " << expression.status();
  std::vector<Value> values;
  for (const std::string& name : expression->names()) {
    values.push_back(at.at(name));
  }
  return expression->Evaluate(values);
}

Value Of(const std::string& text, const Assignment& at = {}) {
  const auto value = Evaluate(text, at);
  EXPECT_TRUE(value.has_value()) << text;
  return value.value_or(Value());
}

std::string ErrorOf(const std::string& text) {
  return std::string(Expression::Parse(text).status().message());
}

TEST(ExpressionTest, BindsAsTightlyAsInC) {
  EXPECT_EQ(Of("1 + 2 * 3"), Value(int64_t{7}));
  EXPECT_EQ(Of("(1 + 2) * 3"), Value(int64_t{9}));
  EXPECT_EQ(Of("10 - 3 - 2"), Value(int64_t{5}));
  EXPECT_EQ(Of("-2 * -3"), Value(int64_t{6}));
  EXPECT_EQ(Of("7 / 2 * 2"), Value(int64_t{6}));
  EXPECT_EQ(Of("-7 % 4"), Value(int64_t{-3}));
  EXPECT_EQ(Of("7 / 2.0"), Value(3.5));
  EXPECT_EQ(Of("1e3 + 1"), Value(1001.0));
  EXPECT_EQ(Of("true || false && false"), Value(true));
  EXPECT_EQ(Of("1 + 1 == 2 && !(2 < 1)"), Value(true));
  EXPECT_EQ(Of("1 < 2 == true"), Value(true));
  EXPECT_EQ(Of("max(2, min(5, 9)) % 3"), Value(int64_t{2}));
}

TEST(ExpressionTest, ReadsParametersWithDotsInTheirNames) {
  const std::string text =
      "launch.block.x*launch.block.y<=1024&&tile%4==0||layout=='row'";
  const auto expression = Expression::Parse(text);
  ASSERT_TRUE(expression.ok());
  EXPECT_THAT(
      expression->names(),
      ElementsAre("launch.block.x", "launch.block.y", "tile", "layout"));
  Assignment at = {{"launch.block.x", int64_t{64}},
                   {"launch.block.y", int64_t{16}},
                   {"tile", int64_t{8}},
                   {"layout", "column"s}};
  EXPECT_EQ(Of(text, at), Value(true));
  at["tile"] = int64_t{6};
  EXPECT_EQ(Of(text, at), Value(false));
  at["layout"] = "row"s;
  EXPECT_EQ(Of(text, at), Value(true));
}

TEST(ExpressionTest, ComparesNumbersByValueAndTextByText) {
  EXPECT_EQ(Of("2 == 2.0"), Value(true));
  EXPECT_EQ(Of("9007199254740993 == 9007199254740992"), Value(false));
  EXPECT_EQ(Of("'a' < \"b\""), Value(true));
  EXPECT_EQ(Of("'1' == 1"), Value(false));
  EXPECT_EQ(Of("'1' != 1"), Value(true));
}

TEST(ExpressionTest, HasNoValueWhereArithmeticHasNone) {
  for (const std::string text :
       {"1 / 0", "1 % 0", "1.0 / 0", "'a' + 1", "-'a'", "'a' < 1", "!1",
        "1 && true", "9223372036854775807 + 1", "1e308 * 10.0",
        "-9223372036854775807 - 2", "1 / 0 == 1 || true"}) {
    EXPECT_FALSE(Evaluate(text).has_value()) << text;
  }
  // The right side does not matter.
  EXPECT_EQ(Of("true || 1 / 0 == 1"), Value(true));
  EXPECT_EQ(Of("false && 1 / 0 == 1"), Value(false));
}

TEST(ExpressionTest, SaysWhereAndWhatIsWrong) {
  EXPECT_EQ(ErrorOf("x *"),
            "column 4: got the end, expected a number, a name, text or '('");
  EXPECT_EQ(ErrorOf("(x + 1"), "column 7: got the end, expected ')'");
  EXPECT_EQ(ErrorOf("x y"),
            "column 3: got 'y', expected an operator or the end");
  EXPECT_EQ(ErrorOf("x = 3"),
            "column 3: got '=', expected an operator or the end");
  EXPECT_EQ(ErrorOf("x == 'row"),
            "column 6: got text without its closing quote");
  EXPECT_EQ(ErrorOf("12ab < x"), "column 1: got '12ab', expected a number");
  EXPECT_THAT(ErrorOf("99999999999999999999 < x"), HasSubstr("column 1: got"));
  EXPECT_EQ(ErrorOf("sqrt(x) < 2"),
            "column 1: got the function 'sqrt', expected min or max");
  EXPECT_EQ(ErrorOf("min(x) < 2"), "column 6: got ')', expected ','");
  EXPECT_THAT(ErrorOf(std::string(300, '(') + "x"), HasSubstr("at most 200"));
  EXPECT_THAT(ErrorOf(std::string(300, '!') + "x"), HasSubstr("at most 200"));
  std::string chain = "x";
  for (int i = 0; i < 300; ++i) chain += "+1";
  EXPECT_THAT(ErrorOf(chain), HasSubstr("at most 200"));
  EXPECT_THAT(ErrorOf(std::string(70000, ' ')), HasSubstr("at most 65536"));
}

std::vector<Parameter> Parameters() {
  return {Parameter::Integer("x", 1, 8, 1), Parameter::Boolean("flag", false),
          Parameter::Categorical("layout", {"row"s, "column"s}, "row"s),
          Parameter::OrdinalLevels(
              "registers", {{"default"s, 0}, {int64_t{32}, 32}}, "default"s),
          Parameter::Permutation("order", {"i"s, "j"s})};
}

std::string CheckErrorOf(const std::string& text) {
  const auto constraint = ConstraintFromText(text, Parameters());
  return std::string(constraint.status().message());
}

TEST(ConstraintFromTextTest, RefusesWhatCanNeverHaveAValue) {
  EXPECT_THAT(CheckErrorOf("z < 1"),
              HasSubstr("got the unknown parameter 'z'"));
  EXPECT_THAT(CheckErrorOf("layout == row"),
              HasSubstr("'row', expected the name of a parameter; text goes"));
  EXPECT_THAT(CheckErrorOf("x + layout < 3"),
              HasSubstr("column 3: got text beside '+', expected a number"));
  EXPECT_THAT(CheckErrorOf("flag == 1"),
              HasSubstr("got true or false '==' a number"));
  EXPECT_THAT(CheckErrorOf("x && flag"),
              HasSubstr("got a number beside '&&', expected true or false"));
  EXPECT_THAT(CheckErrorOf("x * 2"),
              HasSubstr("got a number, expected true or false; compare it"));
  EXPECT_THAT(CheckErrorOf("flag < true"), HasSubstr("expected two values of"));
  EXPECT_EQ(CheckErrorOf("registers == 'default' || registers * x < 64"), "");
  EXPECT_EQ(CheckErrorOf("order != 'j,i' || flag"), "");
}

TEST(ConstraintFromTextTest, HoldsWhereTheTextIsTrueAndOnlyThere) {
  const auto constraint = ConstraintFromText(
      "registers == 'default' || 64 / (registers - 32) < x", Parameters());
  ASSERT_TRUE(constraint.ok()) << constraint.status();
  EXPECT_THAT(constraint->parameters, ElementsAre("registers", "x"));
  EXPECT_TRUE(constraint->holds({"default"s, int64_t{1}}));
  EXPECT_FALSE(constraint->holds({int64_t{32}, int64_t{1}}));  // 64 / 0
  EXPECT_FALSE(constraint->holds({int64_t{64}, int64_t{1}}));
  EXPECT_TRUE(constraint->holds({int64_t{64}, int64_t{3}}));
}

TEST(ConstraintFromTextTest, PrunesASpace) {
  std::vector<Parameter> parameters = {Parameter::Integer("x", 1, 20, 4),
                                       Parameter::Integer("y", 1, 20, 1)};
  auto constraint =
      ConstraintFromText("x * y <= 64 && x % 4 == 0", parameters, "it fits");
  const auto space =
      Space::Create(std::move(parameters), {*std::move(constraint)}).value();
  int found = 0;
  space->Enumerate(1, [&](const Configuration& at) {
    const auto x = std::get<int64_t>(at.values[0]);
    const auto y = std::get<int64_t>(at.values[1]);
    EXPECT_TRUE(x * y <= 64 && x % 4 == 0);
    return ++found > 0;
  });
  EXPECT_EQ(found, 16 + 8 + 5 + 4 + 3);
  EXPECT_THAT(space->Check(Configuration{{int64_t{5}, int64_t{1}}}).message(),
              HasSubstr("it fits"));
}

// Random expressions over whole numbers, with what they are worth.
class RandomExpression {
 public:
  explicit RandomExpression(uint64_t seed) : random_(seed) {}

  struct Made {
    std::string text;
    std::optional<int64_t> value;
  };

  Made Number(int depth) {
    if (depth == 0 || random_.Chance(0.2)) {
      const auto value = static_cast<int64_t>(random_.Below(7));
      if (random_.Chance(0.5)) return {Spaced(absl::StrCat(value)), value};
      const std::string name = absl::StrCat("v.", value);
      names[name] = value;
      return {Spaced(name), value};
    }
    const Made a = Number(depth - 1);
    const Made b = Number(depth - 1);
    const bool known = a.value && b.value;
    const int64_t x = a.value.value_or(0);
    const int64_t y = b.value.value_or(0);
    const auto made = [&](const std::string& op, int64_t value, bool defined) {
      return Made{absl::StrCat("(", a.text, op, b.text, ")"),
                  known && defined ? std::optional(value) : std::nullopt};
    };
    switch (random_.Below(6)) {
      case 0:
        return made("+", x + y, true);
      case 1:
        return made("-", x - y, true);
      case 2:
        return made("*", x * y, true);
      case 3:
        return made("/", y == 0 ? 0 : x / y, y != 0);
      case 4:
        return made("%", y == 0 ? 0 : x % y, y != 0);
      default:
        return {absl::StrCat("max(", a.text, ",", b.text, ")"),
                known ? std::optional(std::max(x, y)) : std::nullopt};
    }
  }

  Assignment names;

 private:
  std::string Spaced(const std::string& token) {
    return random_.Chance(0.3) ? absl::StrCat(" ", token, "\t") : token;
  }

  Random random_;
};

TEST(ExpressionTest, EvaluatesRandomExpressionsAsTheyWereMade) {
  int undefined = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    RandomExpression source(seed);
    const auto made = source.Number(5);
    const auto value = Evaluate(made.text, source.names);
    ASSERT_EQ(value.has_value(), made.value.has_value()) << made.text;
    if (made.value) {
      ASSERT_EQ(*value, Value(*made.value)) << made.text;
    } else {
      ++undefined;
    }
  }
  EXPECT_GT(undefined, 100);
  EXPECT_LT(undefined, 1900);
}

TEST(ExpressionTest, AnyBytesGiveAnExpressionOrAnError) {
  const std::string alphabet = "x1.(),'\"+-*/%<>=!&| min";
  Random random(1);
  int parsed = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (uint64_t length = random.Below(12); length > 0; --length) {
      text += alphabet[random.Below(alphabet.size())];
    }
    const auto expression = Expression::Parse(text);
    if (!expression.ok()) {
      EXPECT_THAT(std::string(expression.status().message()),
                  HasSubstr("column "));
      continue;
    }
    ++parsed;
    expression->Evaluate(
        std::vector<Value>(expression->names().size(), int64_t{1}));
  }
  EXPECT_GT(parsed, 100);
}

}  // namespace
}  // namespace reprise::bayesopt
