#include "bayesopt/expression_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace reprise::bayesopt {
namespace {

using NodePointer = std::shared_ptr<const Expression::Node>;

constexpr size_t kMaximumBytes = 64 << 10;
constexpr int kMaximumDepth = 200;

struct Spelling {
  std::string_view text;
  Operator op;
};

// By precedence, loosest first; in each, what begins with another comes first.
const std::vector<std::vector<Spelling>>& Binary() {
  static const auto* levels = new std::vector<std::vector<Spelling>>{
      {{"||", Operator::kOr}},
      {{"&&", Operator::kAnd}},
      {{"==", Operator::kEqual}, {"!=", Operator::kNotEqual}},
      {{"<=", Operator::kLessEqual},
       {">=", Operator::kGreaterEqual},
       {"<", Operator::kLess},
       {">", Operator::kGreater}},
      {{"+", Operator::kAdd}, {"-", Operator::kSubtract}},
      {{"*", Operator::kMultiply},
       {"/", Operator::kDivide},
       {"%", Operator::kRemainder}}};
  return *levels;
}

bool StartsName(char c) {
  return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_';
}

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

class Parser {
 public:
  Parser(std::string_view text, std::vector<std::string>* names)
      : text_(text), names_(names) {}

  absl::StatusOr<NodePointer> Run() {
    absl::StatusOr<NodePointer> root = Level(0);
    if (root.ok() && !AtEnd()) return Expected("an operator or the end");
    return root;
  }

 private:
  // Counts how deep calls are nested.
  class Depth {
   public:
    explicit Depth(int* depth) : depth_(depth) { ++*depth_; }
    ~Depth() { --*depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    int* depth_;
  };

  void SkipSpace() {
    while (at_ < text_.size() &&
           absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    }
  }

  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size();
  }

  bool Take(std::string_view token) {
    SkipSpace();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  absl::Status Error(size_t at, const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("column ", at + 1, ": ", what));
  }

  absl::Status Expected(const std::string& what) {
    const std::string got =
        AtEnd() ? "the end"
                : absl::StrCat("'", std::string(text_.substr(at_, 1)), "'");
    return Error(at_, absl::StrCat("got ", got, ", expected ", what));
  }

  absl::StatusOr<NodePointer> New(Operator op, size_t at, NodePointer left,
                                  NodePointer right) const {
    auto node = std::make_shared<Expression::Node>();
    node->op = op;
    node->column = at + 1;
    node->depth = 1 + std::max(left->depth, right ? right->depth : 0);
    if (node->depth > kMaximumDepth) return TooDeep();
    node->left = std::move(left);
    node->right = std::move(right);
    return node;
  }

  static NodePointer Literal(size_t at, Value value) {
    auto node = std::make_shared<Expression::Node>();
    node->column = at + 1;
    node->literal = std::move(value);
    return node;
  }

  const Spelling* TakeOperator(size_t level) {
    for (const Spelling& spelling : Binary()[level]) {
      if (Take(spelling.text)) return &spelling;
    }
    return nullptr;
  }

  // Operators of this precedence and tighter ones; they associate to the left.
  absl::StatusOr<NodePointer> Level(size_t level) {
    if (level == Binary().size()) return Unary();
    absl::StatusOr<NodePointer> left = Level(level + 1);
    if (!left.ok()) return left;
    SkipSpace();
    size_t at = at_;
    while (const Spelling* spelling = TakeOperator(level)) {
      absl::StatusOr<NodePointer> right = Level(level + 1);
      if (!right.ok()) return right;
      left = New(spelling->op, at, *std::move(left), *std::move(right));
      if (!left.ok()) return left;
      SkipSpace();
      at = at_;
    }
    return left;
  }

  absl::Status TooDeep() const {
    return Error(at_, absl::StrCat("expected at most ", kMaximumDepth,
                                   " operators in a row or parentheses in one "
                                   "another; split the constraint"));
  }

  absl::StatusOr<NodePointer> Unary() {
    const Depth depth(&depth_);
    if (depth_ > kMaximumDepth) return TooDeep();
    SkipSpace();
    const size_t at = at_;
    if (text_.substr(at_).starts_with("!=")) return Expected("a value");
    for (const auto& [text, op] :
         {Spelling{"!", Operator::kNot}, Spelling{"-", Operator::kNegate}}) {
      if (!Take(text)) continue;
      absl::StatusOr<NodePointer> operand = Unary();
      if (!operand.ok()) return operand;
      return New(op, at, *std::move(operand), nullptr);
    }
    return Primary();
  }

  absl::StatusOr<NodePointer> Primary() {
    SkipSpace();
    if (AtEnd()) return Expected("a number, a name, text or '('");
    const char c = text_[at_];
    if (c == '(') return Parenthesized();
    if (c == '\'' || c == '"') return Text();
    if (IsDigit(c)) return Number();
    if (StartsName(c)) return NameOrCall();
    return Expected("a number, a name, text or '('");
  }

  absl::StatusOr<NodePointer> Parenthesized() {
    Take("(");
    absl::StatusOr<NodePointer> inner = Level(0);
    if (inner.ok() && !Take(")")) return Expected("')'");
    return inner;
  }

  absl::StatusOr<NodePointer> Text() {
    const size_t at = at_;
    const size_t end = text_.find(text_[at], at + 1);
    if (end == std::string_view::npos) {
      return Error(at, "got text without its closing quote");
    }
    at_ = end + 1;
    return Literal(at, std::string(text_.substr(at + 1, end - at - 1)));
  }

  absl::StatusOr<NodePointer> Number() {
    const size_t at = at_;
    while (at_ < text_.size() &&
           (IsDigit(text_[at_]) || text_[at_] == '.' ||
            StartsName(text_[at_]) ||
            ((text_[at_] == '-' || text_[at_] == '+') &&
             (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E')))) {
      ++at_;
    }
    const std::string token(text_.substr(at, at_ - at));
    const char* end = token.data() + token.size();
    int64_t whole = 0;
    if (const auto [stop, error] = std::from_chars(token.data(), end, whole);
        stop == end && error == std::errc()) {
      return Literal(at, whole);
    }
    double decimal = 0;
    if (const auto [stop, error] = std::from_chars(token.data(), end, decimal);
        stop == end && error == std::errc() &&
        token.find_first_of(".eE") != std::string::npos) {
      return Literal(at, decimal);
    }
    return Error(at, absl::StrCat("got '", token, "', expected a number"));
  }

  absl::StatusOr<NodePointer> NameOrCall() {
    const size_t at = at_;
    while (at_ < text_.size() && (StartsName(text_[at_]) ||
                                  IsDigit(text_[at_]) || text_[at_] == '.')) {
      ++at_;
    }
    const std::string name(text_.substr(at, at_ - at));
    if (Take("(")) return Call(name, at);
    if (name == "true" || name == "false") return Literal(at, name == "true");
    auto node = std::make_shared<Expression::Node>();
    node->op = Operator::kName;
    node->column = at + 1;
    const auto known = std::find(names_->begin(), names_->end(), name);
    node->name = static_cast<size_t>(known - names_->begin());
    if (known == names_->end()) names_->push_back(name);
    return node;
  }

  absl::StatusOr<NodePointer> Call(const std::string& name, size_t at) {
    if (name != "min" && name != "max") {
      return Error(at, absl::StrCat("got the function '", name,
                                    "', expected min or max"));
    }
    absl::StatusOr<NodePointer> left = Level(0);
    if (!left.ok()) return left;
    if (!Take(",")) return Expected("','");
    absl::StatusOr<NodePointer> right = Level(0);
    if (!right.ok()) return right;
    if (!Take(")")) return Expected("')'");
    return New(name == "min" ? Operator::kMinimum : Operator::kMaximum, at,
               *std::move(left), *std::move(right));
  }

  const std::string_view text_;
  std::vector<std::string>* const names_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string OperatorText(Operator op) {
  for (const std::vector<Spelling>& level : Binary()) {
    for (const Spelling& spelling : level) {
      if (spelling.op == op) return std::string(spelling.text);
    }
  }
  switch (op) {
    case Operator::kMinimum:
      return "min";
    case Operator::kMaximum:
      return "max";
    case Operator::kNot:
      return "!";
    case Operator::kNegate:
      return "-";
    default:
      return "";
  }
}

absl::StatusOr<NodePointer> ParseExpression(std::string_view text,
                                            std::vector<std::string>* names) {
  if (text.size() > kMaximumBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", text.size(),
                     " bytes of expression, expected at "
                     "most ",
                     kMaximumBytes));
  }
  return Parser(text, names).Run();
}

}  // namespace reprise::bayesopt
