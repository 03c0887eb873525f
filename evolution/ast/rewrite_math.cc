// Rewrites of arithmetic.
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clang/AST/Expr.h"
#include "clang/AST/ExprCXX.h"
#include "evolution/ast/rewrite.h"
#include "llvm/ADT/APFloat.h"

namespace reprise::evolution {
namespace {

using clang::BinaryOperator;
using clang::Expr;

// Implicit casts that change no value: parentheses, lvalue reads, and the
// widening of a float are looked through only where asked.
const Expr* Bare(const Expr* expr) { return expr->IgnoreParenImpCasts(); }

bool IsFloating(clang::QualType type) {
  const auto* builtin = type.getCanonicalType()->getAs<clang::BuiltinType>();
  return builtin != nullptr &&
         (builtin->getKind() == clang::BuiltinType::Float ||
          builtin->getKind() == clang::BuiltinType::Double);
}

bool IsFloat(clang::QualType type) {
  return type->isSpecificBuiltinType(clang::BuiltinType::Float);
}

bool IsOne(const Expr* expr) {
  const auto* literal = llvm::dyn_cast<clang::FloatingLiteral>(expr);
  if (literal != nullptr) return literal->getValue().isExactlyValue(1.0);
  const auto* integer = llvm::dyn_cast<clang::IntegerLiteral>(expr);
  return integer != nullptr && integer->getValue() == 1;
}

// The text of a function name at a call: `sqrtf`, `std::sqrt`.
std::optional<Span> CalleeSpan(const Body& body, const clang::CallExpr* call) {
  const auto* ref = llvm::dyn_cast<clang::DeclRefExpr>(
      call->getCallee()->IgnoreParenImpCasts());
  if (ref == nullptr || ref->hasExplicitTemplateArgs()) return std::nullopt;
  return body.code.Of(ref->getSourceRange());
}

std::string OneOf(clang::QualType type) {
  return IsFloat(type) ? "1.0f" : "1.0";
}

// Loop-invariant locals and constants: the reciprocal is computed once.
bool WorthAReciprocal(const Body& body, const Expr* divisor) {
  Expr::EvalResult value;
  if (divisor->EvaluateAsRValue(value, body.facts.ast()) &&
      value.Val.isFloat()) {
    return !value.Val.getFloat().isZero() && value.Val.getFloat().isFinite();
  }
  const clang::Stmt* loop = body.facts.InnermostLoop(divisor);
  return loop != nullptr && body.facts.IsInvariant(divisor, loop);
}

bool IsPowerOfTwo(const Body& body, const Expr* divisor) {
  Expr::EvalResult value;
  if (!divisor->EvaluateAsRValue(value, body.facts.ast()) ||
      !value.Val.isFloat()) {
    return false;
  }
  llvm::APFloat inverse(value.Val.getFloat().getSemantics());
  return value.Val.getFloat().getExactInverse(&inverse) &&
         !inverse.isDenormal();
}

}  // namespace

// a / sqrt(b) -> a * rsqrt(b); 1 / sqrt(b) -> rsqrt(b).
void FindReciprocalSquareRoots(const Body& body, MoveSet& moves) {
  for (const Expr* expr : body.facts.expressions()) {
    const auto* division = llvm::dyn_cast<BinaryOperator>(expr);
    if (division == nullptr || (division->getOpcode() != clang::BO_Div &&
                                division->getOpcode() != clang::BO_DivAssign)) {
      continue;
    }
    const auto* call =
        llvm::dyn_cast<clang::CallExpr>(division->getRHS()->IgnoreImpCasts());
    if (call == nullptr || call->getNumArgs() != 1 ||
        !IsFloating(call->getType()) ||
        IsFloat(Bare(call->getArg(0))->getType()) != IsFloat(call->getType()) ||
        !IsFloating(Bare(call->getArg(0))->getType())) {
      continue;
    }
    const std::string name = MathName(body.facts.ast(), call);
    if (name != "sqrt" && name != "sqrtf") continue;
    const auto callee = CalleeSpan(body, call);
    const auto slash = body.code.Token(division->getOperatorLoc());
    const auto left =
        body.code.OfMaybeMacro(division->getLHS()->getSourceRange());
    if (!callee || !slash || !left) continue;
    const std::string root = IsFloat(call->getType()) ? "rsqrtf" : "rsqrt";
    MoveBuilder move(body, "rsqrt", *slash);
    if (IsOne(Bare(division->getLHS())) &&
        IsFloat(division->getType()) == IsFloat(call->getType()) &&
        division->getOpcode() == clang::BO_Div) {
      move.Replace({left->path, left->begin, callee->end}, root);
    } else {
      move.Replace(*slash, division->getOpcode() == clang::BO_Div ? "*" : "*=")
          .Replace(*callee, root);
    }
    move.Inexact().AddTo(
        moves, "",
        absl::StrCat("multiply by the reciprocal square root at ",
                     body.code.Where(*slash)));
  }
}

// a / c -> a * (1 / c).
void FindReciprocals(const Body& body, MoveSet& moves) {
  for (const Expr* expr : body.facts.expressions()) {
    const auto* division = llvm::dyn_cast<BinaryOperator>(expr);
    if (division == nullptr || !IsFloating(division->getType())) continue;
    const bool assigns = division->getOpcode() == clang::BO_DivAssign;
    if (!assigns && division->getOpcode() != clang::BO_Div) continue;
    const Expr* divisor = division->getRHS();
    if (IsOne(Bare(division->getLHS())) || !WorthAReciprocal(body, divisor)) {
      continue;
    }
    // In the type the division has: an int divisor is converted as before.
    if (assigns &&
        IsFloat(division->getType()) != IsFloat(divisor->getType())) {
      continue;
    }
    const auto slash = body.code.Token(division->getOperatorLoc());
    const auto right = body.code.OfMaybeMacro(divisor->getSourceRange());
    if (!slash || !right) continue;
    MoveBuilder move(body, "reciprocal", *slash);
    move.Replace(*slash, assigns ? "*=" : "*")
        .Wrap(*right, absl::StrCat("(", OneOf(divisor->getType()), " / "), ")",
              kWrapOuter);
    if (!IsPowerOfTwo(body, divisor)) move.Inexact();
    move.AddTo(moves, "",
               absl::StrCat("multiply by the reciprocal of ",
                            std::string(body.code.Text(*right)), " at ",
                            body.code.Where(*slash)));
  }
}

namespace {

// A component of threadIdx, blockIdx, blockDim or gridDim.
bool IsBuiltinIndex(const Expr* expr) {
  expr = Bare(expr);
  const Expr* base = nullptr;
  if (const auto* pseudo = llvm::dyn_cast<clang::PseudoObjectExpr>(expr)) {
    const auto* property = llvm::dyn_cast<clang::MSPropertyRefExpr>(
        pseudo->getSyntacticForm()->IgnoreParenImpCasts());
    if (property != nullptr) base = property->getBaseExpr();
  } else if (const auto* member = llvm::dyn_cast<clang::MemberExpr>(expr)) {
    base = member->getBase();
  }
  if (const auto* opaque =
          llvm::dyn_cast_or_null<clang::OpaqueValueExpr>(base)) {
    base = opaque->getSourceExpr();
  }
  const clang::VarDecl* variable = AsVariable(base);
  if (variable == nullptr || !variable->getDeclName().isIdentifier()) {
    return false;
  }
  const llvm::StringRef name = variable->getName();
  return name == "threadIdx" || name == "blockIdx" || name == "blockDim" ||
         name == "gridDim";
}

// Unsigned, or a variable that only ever holds a thread's or block's index.
bool IsNonNegative(const Body& body, const Expr* expr) {
  expr = Bare(expr);
  if (expr->getType()->isUnsignedIntegerType()) return true;
  const clang::VarDecl* variable = AsVariable(expr);
  return variable != nullptr && variable->hasInit() &&
         variable->getInit() != nullptr &&
         body.facts.IsNeverModified(variable) &&
         IsBuiltinIndex(variable->getInit());
}

}  // namespace

// u / 32 -> (u >> 5), u % 32 -> (u & 31).
void FindIntegerPowersOfTwo(const Body& body, MoveSet& moves) {
  for (const Expr* expr : body.facts.expressions()) {
    const auto* operation = llvm::dyn_cast<BinaryOperator>(expr);
    if (operation == nullptr ||
        (operation->getOpcode() != clang::BO_Div &&
         operation->getOpcode() != clang::BO_Rem) ||
        !operation->getType()->isIntegerType()) {
      continue;
    }
    Expr::EvalResult value;
    if (!operation->getRHS()->EvaluateAsInt(value, body.facts.ast())) continue;
    const llvm::APSInt& divisor = value.Val.getInt();
    const Expr* dividend = Bare(operation->getLHS());
    if (!divisor.isStrictlyPositive() || !divisor.isPowerOf2() ||
        divisor == 1 || !IsNonNegative(body, dividend) ||
        dividend->getType().getCanonicalType().getUnqualifiedType() !=
            operation->getType().getCanonicalType()) {
      continue;
    }
    const auto whole = body.code.Of(operation);
    const auto sign = body.code.Token(operation->getOperatorLoc());
    const auto right =
        body.code.OfMaybeMacro(operation->getRHS()->getSourceRange());
    if (!whole || !sign || !right || whole->path != right->path) continue;
    const bool divides = operation->getOpcode() == clang::BO_Div;
    const std::string number = divides
                                   ? absl::StrCat(divisor.logBase2())
                                   : absl::StrCat(divisor.getZExtValue() - 1) +
                                         (operation->getRHS()
                                                  ->IgnoreParenImpCasts()
                                                  ->getType()
                                                  ->isUnsignedIntegerType()
                                              ? "u"
                                              : "");
    MoveBuilder(body, "int_pow2", *sign)
        .Wrap(*whole, "(", ")", kWrapOuter)
        .Replace(*sign, divides ? ">>" : "&")
        .Replace(*right, number)
        .AddTo(moves, "",
               absl::StrCat(
                   divides ? "shift" : "mask", " in place of the division by ",
                   divisor.getZExtValue(), " at ", body.code.Where(*sign)));
  }
}

namespace {

// x as a factor of its own type `type`; "" when writing it twice would do
// something twice.
std::string Factor(const Body& body, const Expr* base, clang::QualType type) {
  const auto span = body.code.Of(base);
  const Expr* bare = Bare(base);
  if (!span || !body.facts.IsPure(base) || body.facts.EffectsOf(base).calls) {
    return "";
  }
  std::string text(body.code.Text(*span));
  const bool simple = llvm::isa<clang::DeclRefExpr>(bare) ||
                      llvm::isa<clang::ParenExpr>(base->IgnoreImpCasts()) ||
                      llvm::isa<clang::ArraySubscriptExpr>(bare) ||
                      llvm::isa<clang::MemberExpr>(bare);
  if (!simple) text = absl::StrCat("(", text, ")");
  if (IsFloat(type) != IsFloat(bare->getType()) ||
      !IsFloating(bare->getType())) {
    text = absl::StrCat("static_cast<", IsFloat(type) ? "float" : "double",
                        ">(", text, ")");
  }
  return text;
}

// What pow(x, exponent) becomes; "": nothing simpler.
std::string PowerText(const std::string& x, double exponent, bool is_float) {
  const std::string one = is_float ? "1.0f" : "1.0";
  const std::string root = is_float ? "sqrtf" : "sqrt";
  if (exponent == 2) return absl::StrCat("(", x, " * ", x, ")");
  if (exponent == 3) return absl::StrCat("(", x, " * ", x, " * ", x, ")");
  if (exponent == 4) {
    return absl::StrCat("((", x, " * ", x, ") * (", x, " * ", x, "))");
  }
  if (exponent == 0.5) return absl::StrCat(root, "(", x, ")");
  if (exponent == 1.5) return absl::StrCat("(", x, " * ", root, "(", x, "))");
  if (exponent == -0.5) return absl::StrCat("r", root, "(", x, ")");
  if (exponent == -1) return absl::StrCat("(", one, " / ", x, ")");
  if (exponent == -2) {
    return absl::StrCat("(", one, " / (", x, " * ", x, "))");
  }
  return "";
}

}  // namespace

void FindPowers(const Body& body, MoveSet& moves) {
  for (const Expr* expr : body.facts.expressions()) {
    const auto* call = llvm::dyn_cast<clang::CallExpr>(expr);
    if (call == nullptr || call->getNumArgs() != 2 ||
        !IsFloating(call->getType())) {
      continue;
    }
    const std::string name = MathName(body.facts.ast(), call);
    if (name != "pow" && name != "powf") continue;
    Expr::EvalResult value;
    double exponent = 0;
    if (!call->getArg(1)->EvaluateAsRValue(value, body.facts.ast())) continue;
    if (value.Val.isFloat()) {
      bool loses = false;
      llvm::APFloat number = value.Val.getFloat();
      number.convert(llvm::APFloat::IEEEdouble(),
                     llvm::APFloat::rmNearestTiesToEven, &loses);
      exponent = number.convertToDouble();
    } else if (value.Val.isInt()) {
      exponent = static_cast<double>(value.Val.getInt().getExtValue());
    }
    const auto whole = body.code.Of(call);
    const std::string factor = Factor(body, call->getArg(0), call->getType());
    const std::string text =
        factor.empty() ? ""
                       : PowerText(factor, exponent, IsFloat(call->getType()));
    if (!whole || text.empty()) continue;
    MoveBuilder(body, "pow", *whole)
        .Replace(*whole, text)
        .Inexact()
        .AddTo(moves, "",
               absl::StrCat("compute ", std::string(body.code.Text(*whole)),
                            " at ", body.code.Where(*whole), " without pow"));
  }
}

namespace {

// Finds the double literals that alone make a float computation one in double.
class LiteralFinder {
 public:
  explicit LiteralFinder(const Body& body) : body_(body) {}

  std::vector<const clang::FloatingLiteral*> Find() {
    for (const Expr* expr : body_.facts.expressions()) {
      // A double computation that ends in a conversion to float.
      const auto* cast = llvm::dyn_cast<clang::CastExpr>(expr);
      if (cast == nullptr || cast->getCastKind() != clang::CK_FloatingCast ||
          !IsFloat(cast->getType()) ||
          !cast->getSubExpr()->getType()->isSpecificBuiltinType(
              clang::BuiltinType::Double)) {
        continue;
      }
      Take(cast->getSubExpr());
    }
    for (const Expr* expr : body_.facts.expressions()) {
      // x += 0.5 * y, where x is a float.
      const auto* assignment =
          llvm::dyn_cast<clang::CompoundAssignOperator>(expr);
      if (assignment == nullptr || !IsFloat(assignment->getLHS()->getType())) {
        continue;
      }
      Take(assignment->getRHS(), 1);
    }
    for (const Expr* expr : body_.facts.expressions()) {
      // A comparison with a widened float.
      const auto* comparison = llvm::dyn_cast<BinaryOperator>(expr);
      if (comparison == nullptr || !comparison->isComparisonOp() ||
          !comparison->getLHS()->getType()->isSpecificBuiltinType(
              clang::BuiltinType::Double)) {
        continue;
      }
      literals_.clear();
      floats_ = 0;
      if (Narrowable(comparison->getLHS()) &&
          Narrowable(comparison->getRHS()) && floats_ > 0) {
        Keep();
      }
    }
    return kept_;
  }

 private:
  void Take(const Expr* expr, int floats = 0) {
    literals_.clear();
    floats_ = floats;
    if (Narrowable(expr) && floats_ > 0) Keep();
  }

  void Keep() {
    for (const auto* literal : literals_) {
      if (seen_.insert(literal->getLocation().getRawEncoding()).second) {
        kept_.push_back(literal);
      }
    }
  }

  // Whether `expr`, a double, becomes a float once its literals are floats.
  bool Narrowable(const Expr* expr) {
    expr = expr->IgnoreParens();
    if (const auto* literal = llvm::dyn_cast<clang::FloatingLiteral>(expr)) {
      const auto span = body_.code.Token(literal->getLocation());
      if (!span) return false;
      const std::string_view text = body_.code.Text(*span);
      if (text.empty() || text.find_first_of("fFlLxX") != text.npos) {
        return false;
      }
      literals_.push_back(literal);
      return true;
    }
    if (const auto* cast = llvm::dyn_cast<clang::ImplicitCastExpr>(expr)) {
      if (cast->getCastKind() == clang::CK_FloatingCast) {
        floats_ += IsFloat(cast->getSubExpr()->getType()) ? 1 : 0;
        return IsFloat(cast->getSubExpr()->getType());
      }
      return cast->getCastKind() == clang::CK_IntegralToFloating;
    }
    if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(expr)) {
      return (unary->getOpcode() == clang::UO_Minus ||
              unary->getOpcode() == clang::UO_Plus) &&
             Narrowable(unary->getSubExpr());
    }
    if (const auto* binary = llvm::dyn_cast<BinaryOperator>(expr)) {
      return (binary->isAdditiveOp() || binary->isMultiplicativeOp()) &&
             Narrowable(binary->getLHS()) && Narrowable(binary->getRHS());
    }
    if (const auto* choice = llvm::dyn_cast<clang::ConditionalOperator>(expr)) {
      return Narrowable(choice->getTrueExpr()) &&
             Narrowable(choice->getFalseExpr());
    }
    return false;
  }

  const Body& body_;
  std::vector<const clang::FloatingLiteral*> literals_;
  int floats_ = 0;
  std::set<unsigned> seen_;
  std::vector<const clang::FloatingLiteral*> kept_;
};

}  // namespace

// 1.0 -> 1.0f where the rest of the computation is in float.
void FindFloatLiterals(const Body& body, MoveSet& moves) {
  const auto literals = LiteralFinder(body).Find();
  if (literals.empty()) return;
  const auto name = body.code.Token(body.function->getLocation());
  if (!name) return;
  MoveBuilder move(body, "float_literal", *name);
  for (const clang::FloatingLiteral* literal : literals) {
    const Span span = *body.code.Token(literal->getLocation());
    move.Insert(span.path, span.end, "f", kQualifier);
  }
  move.Inexact().AddTo(
      moves, "",
      absl::StrCat("write the literals of ", body.function->getNameAsString(),
                   " as float, so that it computes in float"));
}

// expf(x) -> __expf(x) and the like: the GPU's fast forms.
void FindFastFunctions(const Body& body, MoveSet& moves) {
  if (body.context.device_kind == "cpu") return;
  static const auto* const fast = new std::set<std::string>{
      "exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "pow"};
  for (const Expr* expr : body.facts.expressions()) {
    const auto* call = llvm::dyn_cast<clang::CallExpr>(expr);
    if (call == nullptr || !IsFloat(call->getType())) continue;
    std::string name = MathName(body.facts.ast(), call);
    if (name.empty()) continue;
    if (name.back() == 'f') name.pop_back();
    if (fast->count(name) == 0) continue;
    for (unsigned i = 0; i < call->getNumArgs(); ++i) {
      if (!IsFloat(call->getArg(i)->getType())) name.clear();  // pow(x, 2)
    }
    const auto callee = CalleeSpan(body, call);
    if (!callee || name.empty()) continue;
    const std::string replacement = absl::StrCat("__", name, "f");
    MoveBuilder(body, "fast_function", *callee)
        .Replace(*callee, replacement)
        .Inexact()
        .AddTo(moves, "",
               absl::StrCat("call ", replacement, " at ",
                            body.code.Where(*callee)));
  }
}

}  // namespace reprise::evolution
