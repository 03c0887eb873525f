// Constraints as text:
//
//   launch.block.x * launch.block.y <= 1024 && tile % 4 == 0
//   layout != 'row' || (stages > 2 && !prefetch)
//
// From loosest to tightest: ||, &&, == and !=, < <= > >=, + and -, * / and %,
// unary ! and -; parentheses; min(a, b) and max(a, b). Literals are whole
// numbers, decimals, true, false, and text in single or double quotes without
// escapes. Everything else is the name of a parameter: letters, digits, '_' and
// '.', beginning with a letter or '_'.
//
// Whole numbers divide as in C++, towards zero; with a decimal on either side
// both are decimals. && and || evaluate the right side only when it matters. An
// evaluation that has no value (text where a number must be, a division by
// zero, an overflow) makes the whole expression have none.
//
// Immutable; cheap to copy; may be shared by threads.
#ifndef REPRISE_BAYESOPT_EXPRESSION_H_
#define REPRISE_BAYESOPT_EXPRESSION_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bayesopt/parameter.h"
#include "bayesopt/space.h"

namespace reprise::bayesopt {

class Expression {
 public:
  struct Node;  // expression_parser.h

  // INVALID_ARGUMENT says the column, what is there and what was expected; also
  // for more than 64 KiB, or 200 levels of nesting.
  static absl::StatusOr<Expression> Parse(std::string_view text);

  const std::string& text() const { return text_; }
  // The parameters it names, in order of their first appearance.
  const std::vector<std::string>& names() const { return names_; }

  // OK when the expression can be true or false: each of its parameters is one
  // of `parameters`, and each operator can get values of its types from them.
  // INVALID_ARGUMENT says the column and what is wrong.
  absl::Status Check(const std::vector<Parameter>& parameters) const;

  // `values` in the order of names(). nullopt: it has none, as above.
  std::optional<Value> Evaluate(const std::vector<Value>& values) const;

 private:
  Expression() = default;

  std::string text_;
  std::vector<std::string> names_;
  std::shared_ptr<const Node> root_;
};

// A constraint that holds where `text` is true, and neither where it is false
// nor where it has no value. Its description is `because`, or the text where
// that is empty. INVALID_ARGUMENT as Parse and Check.
absl::StatusOr<Constraint> ConstraintFromText(
    std::string_view text, const std::vector<Parameter>& parameters,
    std::string because = "");

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_EXPRESSION_H_
