// Text to tree, for expression.cc. Thread-safe.
#ifndef REPRISE_BAYESOPT_EXPRESSION_PARSER_H_
#define REPRISE_BAYESOPT_EXPRESSION_PARSER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "bayesopt/expression.h"

namespace reprise::bayesopt {

enum class Operator {
  kLiteral,
  kName,
  kOr,
  kAnd,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
  kMinimum,
  kMaximum,
  kNot,
  kNegate,
};

struct Expression::Node {
  Operator op = Operator::kLiteral;
  size_t column = 0;  // of the operator in the text, from 1
  Value literal;      // kLiteral
  size_t name = 0;    // kName: index in the names
  int depth = 1;      // of the tree under it
  std::shared_ptr<const Node> left;
  std::shared_ptr<const Node> right;  // absent for kNot and kNegate
};

// As people write it: "<=".
std::string OperatorText(Operator op);

// Appends to `names` those of the text's parameters that it does not hold.
absl::StatusOr<std::shared_ptr<const Expression::Node>> ParseExpression(
    std::string_view text, std::vector<std::string>* names);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_EXPRESSION_PARSER_H_
