#include "bayesopt/expression.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bayesopt/expression_parser.h"

namespace reprise::bayesopt {
namespace {

using Node = Expression::Node;

std::optional<double> Decimal(const Value& value) {
  if (const auto* i = std::get_if<int64_t>(&value)) {
    return static_cast<double>(*i);
  }
  if (const auto* d = std::get_if<double>(&value)) return *d;
  return std::nullopt;
}

std::optional<Value> WholeArithmetic(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Operator::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::kSubtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::kMultiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::kMinimum:
      return std::min(a, b);
    case Operator::kMaximum:
      return std::max(a, b);
    default:
      if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
      return op == Operator::kDivide ? a / b : a % b;
  }
  if (overflow) return std::nullopt;
  return result;
}

std::optional<Value> DecimalArithmetic(Operator op, double a, double b) {
  double result = 0;
  switch (op) {
    case Operator::kAdd:
      result = a + b;
      break;
    case Operator::kSubtract:
      result = a - b;
      break;
    case Operator::kMultiply:
      result = a * b;
      break;
    case Operator::kMinimum:
      result = std::min(a, b);
      break;
    case Operator::kMaximum:
      result = std::max(a, b);
      break;
    case Operator::kDivide:
      result = a / b;
      break;
    default:
      result = std::fmod(a, b);
  }
  if (!std::isfinite(result)) return std::nullopt;
  return result;
}

std::optional<Value> Arithmetic(Operator op, const Value& a, const Value& b) {
  const auto* whole_a = std::get_if<int64_t>(&a);
  const auto* whole_b = std::get_if<int64_t>(&b);
  if (whole_a != nullptr && whole_b != nullptr) {
    return WholeArithmetic(op, *whole_a, *whole_b);
  }
  const auto decimal_a = Decimal(a);
  const auto decimal_b = Decimal(b);
  if (!decimal_a || !decimal_b) return std::nullopt;
  return DecimalArithmetic(op, *decimal_a, *decimal_b);
}

template <typename T>
bool Ordered(Operator op, const T& a, const T& b) {
  switch (op) {
    case Operator::kLess:
      return a < b;
    case Operator::kLessEqual:
      return a <= b;
    case Operator::kGreater:
      return a > b;
    default:
      return a >= b;
  }
}

std::optional<Value> Compare(Operator op, const Value& a, const Value& b) {
  if (a.index() == b.index()) {
    if (const auto* i = std::get_if<int64_t>(&a)) {
      return Ordered(op, *i, std::get<int64_t>(b));
    }
    if (const auto* s = std::get_if<std::string>(&a)) {
      return Ordered(op, *s, std::get<std::string>(b));
    }
  }
  const auto decimal_a = Decimal(a);
  const auto decimal_b = Decimal(b);
  if (!decimal_a || !decimal_b) return std::nullopt;
  return Ordered(op, *decimal_a, *decimal_b);
}

bool Equal(const Value& a, const Value& b) {
  const auto decimal_a = Decimal(a);
  const auto decimal_b = Decimal(b);
  if (decimal_a && decimal_b && a.index() != b.index()) {
    return *decimal_a == *decimal_b;
  }
  return a == b;
}

std::optional<bool> AsBool(const std::optional<Value>& value) {
  if (!value || !std::holds_alternative<bool>(*value)) return std::nullopt;
  return std::get<bool>(*value);
}

std::optional<Value> EvaluateNode(const Node& node,
                                  const std::vector<Value>& values);

std::optional<Value> EvaluateLogic(const Node& node,
                                   const std::vector<Value>& values) {
  const auto left = AsBool(EvaluateNode(*node.left, values));
  if (!left) return std::nullopt;
  if (node.op == Operator::kNot) return !*left;
  if (*left == (node.op == Operator::kOr)) return *left;
  const auto right = AsBool(EvaluateNode(*node.right, values));
  if (!right) return std::nullopt;
  return *right;
}

std::optional<Value> EvaluateNode(const Node& node,
                                  const std::vector<Value>& values) {
  switch (node.op) {
    case Operator::kLiteral:
      return node.literal;
    case Operator::kName:
      return values[node.name];
    case Operator::kOr:
    case Operator::kAnd:
    case Operator::kNot:
      return EvaluateLogic(node, values);
    default:
      break;
  }
  const std::optional<Value> left = EvaluateNode(*node.left, values);
  if (!left) return std::nullopt;
  if (node.op == Operator::kNegate) {
    return Arithmetic(Operator::kSubtract, int64_t{0}, *left);
  }
  const std::optional<Value> right = EvaluateNode(*node.right, values);
  if (!right) return std::nullopt;
  switch (node.op) {
    case Operator::kEqual:
      return Equal(*left, *right);
    case Operator::kNotEqual:
      return !Equal(*left, *right);
    case Operator::kLess:
    case Operator::kLessEqual:
    case Operator::kGreater:
    case Operator::kGreaterEqual:
      return Compare(node.op, *left, *right);
    default:
      return Arithmetic(node.op, *left, *right);
  }
}

// What a value can be: any of these bits.
using Types = unsigned;
constexpr Types kBool = 1;
constexpr Types kNumber = 2;
constexpr Types kText = 4;

Types TypeOf(const Value& value) {
  if (std::holds_alternative<bool>(value)) return kBool;
  return std::holds_alternative<std::string>(value) ? kText : kNumber;
}

Types TypesOf(const Parameter& parameter) {
  switch (parameter.kind) {
    case ParameterKind::kInteger:
      return kNumber;
    case ParameterKind::kPipeline:
    case ParameterKind::kPermutation:
      return kText;
    default: {
      Types types = 0;
      for (const Level& level : parameter.levels) types |= TypeOf(level.value);
      return types;
    }
  }
}

std::string Describe(Types types) {
  std::vector<std::string> words;
  if ((types & kBool) != 0) words.push_back("true or false");
  if ((types & kNumber) != 0) words.push_back("a number");
  if ((types & kText) != 0) words.push_back("text");
  return absl::StrJoin(words, " or ");
}

class Checker {
 public:
  explicit Checker(std::vector<Types> names) : names_(std::move(names)) {}

  // What the node can be; 0 after an error.
  Types Check(const Node& node) {
    if (node.op == Operator::kLiteral) return TypeOf(node.literal);
    if (node.op == Operator::kName) return names_[node.name];
    const Types left = Check(*node.left);
    const Types right = node.right ? Check(*node.right) : left;
    if (!error_.ok()) return 0;
    switch (node.op) {
      case Operator::kOr:
      case Operator::kAnd:
      case Operator::kNot:
        return Need(node, left, right, kBool) ? kBool : 0;
      case Operator::kEqual:
      case Operator::kNotEqual:
        return Alike(node, left, right, kBool | kNumber | kText);
      case Operator::kLess:
      case Operator::kLessEqual:
      case Operator::kGreater:
      case Operator::kGreaterEqual:
        return Alike(node, left, right, kNumber | kText);
      default:
        return Need(node, left, right, kNumber) ? kNumber : 0;
    }
  }

  void Fail(const Node& node, const std::string& what) {
    error_ = absl::InvalidArgumentError(
        absl::StrCat("column ", node.column, ": ", what));
  }

  const absl::Status& error() const { return error_; }

 private:
  bool Need(const Node& node, Types left, Types right, Types needed) {
    for (const Types side : {left, right}) {
      if ((side & needed) != 0) continue;
      Fail(node, absl::StrCat("got ", Describe(side), " beside '",
                              OperatorText(node.op), "', expected ",
                              Describe(needed)));
      return false;
    }
    return true;
  }

  Types Alike(const Node& node, Types left, Types right, Types allowed) {
    if ((left & right & allowed) != 0) return kBool;
    Fail(node,
         absl::StrCat("got ", Describe(left), " '", OperatorText(node.op), "' ",
                      Describe(right), ", expected two values of one type, ",
                      Describe(allowed)));
    return 0;
  }

  const std::vector<Types> names_;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<Expression> Expression::Parse(std::string_view text) {
  Expression expression;
  expression.text_ = std::string(text);
  auto root = ParseExpression(text, &expression.names_);
  if (!root.ok()) return root.status();
  expression.root_ = *std::move(root);
  return expression;
}

absl::Status Expression::Check(const std::vector<Parameter>& parameters) const {
  std::vector<Types> types;
  for (const std::string& name : names_) {
    const auto parameter =
        std::find_if(parameters.begin(), parameters.end(),
                     [&](const Parameter& p) { return p.name == name; });
    if (parameter == parameters.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "got the unknown parameter '", name,
          "', expected the name of a parameter; text goes in quotes"));
    }
    types.push_back(TypesOf(*parameter));
  }
  Checker checker(std::move(types));
  const Types result = checker.Check(*root_);
  if (checker.error().ok() && (result & kBool) == 0) {
    checker.Fail(*root_, absl::StrCat("got ", Describe(result),
                                      ", expected true or false; compare it"));
  }
  return checker.error();
}

std::optional<Value> Expression::Evaluate(
    const std::vector<Value>& values) const {
  return EvaluateNode(*root_, values);
}

absl::StatusOr<Constraint> ConstraintFromText(
    std::string_view text, const std::vector<Parameter>& parameters,
    std::string because) {
  auto expression = Expression::Parse(text);
  absl::Status status = expression.status();
  if (status.ok()) status = expression->Check(parameters);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "constraint '", std::string(text), "': ", status.message()));
  }
  Constraint constraint;
  constraint.description = because.empty() ? std::string(text) : because;
  constraint.parameters = expression->names();
  constraint.holds =
      [expression = *std::move(expression)](const std::vector<Value>& values) {
        return AsBool(expression.Evaluate(values)).value_or(false);
      };
  return constraint;
}

}  // namespace reprise::bayesopt
