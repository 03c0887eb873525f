// Side effects, purity and loop invariance.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "clang/AST/Attr.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/AST/StmtCXX.h"
#include "clang/Basic/SourceManager.h"
#include "evolution/ast/facts.h"

namespace reprise::evolution {
namespace {

using clang::Expr;
using clang::Stmt;
using clang::VarDecl;

const std::set<std::string>& MathFunctions() {
  // Without the suffix f of the float forms.
  static const auto* const names = new std::set<std::string>{
      "abs",   "acos",  "acosh", "asin",  "asinh", "atan",      "atan2",
      "atanh", "cbrt",  "ceil",  "cos",   "cosh",  "cospi",     "erf",
      "erfc",  "exp",   "exp10", "exp2",  "expm1", "fabs",      "fdim",
      "floor", "fma",   "fmax",  "fmin",  "fmod",  "hypot",     "isfinite",
      "isinf", "isnan", "log",   "log10", "log1p", "log2",      "max",
      "min",   "pow",   "rcbrt", "rint",  "round", "rsqrt",     "sin",
      "sinh",  "sinpi", "sqrt",  "tan",   "tanh",  "trunc",     "__cos",
      "__exp", "__log", "__pow", "__sin", "__tan", "__fdivide", "__saturate"};
  return *names;
}

// Reads of threadIdx and the like are calls of these.
bool IsBuiltinVariableRead(const clang::FunctionDecl* callee) {
  return callee->getDeclName().isIdentifier() &&
         callee->getName().starts_with("__fetch_builtin_");
}

}  // namespace

std::string MathName(const clang::ASTContext& ast,
                     const clang::CallExpr* call) {
  const clang::FunctionDecl* callee = call->getDirectCallee();
  if (callee == nullptr || !callee->getDeclName().isIdentifier() ||
      llvm::isa<clang::CXXMethodDecl>(callee)) {
    return "";
  }
  if (callee->getBuiltinID() == 0 &&
      !ast.getSourceManager().isInSystemHeader(callee->getLocation())) {
    return "";
  }
  const std::string name = callee->getName().str();
  const auto& known = MathFunctions();
  const bool is_float_form = name.size() > 1 && name.back() == 'f' &&
                             known.count(name.substr(0, name.size() - 1)) > 0;
  return is_float_form || known.count(name) > 0 ? name : "";
}

namespace {

class EffectCollector : public clang::RecursiveASTVisitor<EffectCollector> {
 public:
  explicit EffectCollector(const clang::ASTContext& ast) : ast_(ast) {}
  bool shouldVisitImplicitCode() const { return true; }

  // Reads of threadIdx.x: the semantic form is a call.
  bool TraversePseudoObjectExpr(clang::PseudoObjectExpr*) { return true; }

  bool VisitBinaryOperator(clang::BinaryOperator* binary) {
    if (binary->isAssignmentOp()) Write(binary->getLHS());
    return true;
  }
  bool VisitUnaryOperator(clang::UnaryOperator* unary) {
    if (unary->isIncrementDecrementOp()) Write(unary->getSubExpr());
    return true;
  }
  bool VisitImplicitCastExpr(clang::ImplicitCastExpr* cast) {
    if (cast->getCastKind() == clang::CK_LValueToRValue) {
      const Expr* lvalue = cast->getSubExpr()->IgnoreParens();
      if (LocalRoot(lvalue) == nullptr && !IsConstant(lvalue)) {
        effects.loads.push_back(lvalue);
      }
    }
    return true;
  }
  bool VisitCallExpr(clang::CallExpr* call) {
    const clang::FunctionDecl* callee = call->getDirectCallee();
    if (callee != nullptr && IsBuiltinVariableRead(callee)) return true;
    effects.calls = true;
    if (MathName(ast_, call).empty()) effects.unknown_calls = true;
    return true;
  }
  bool VisitCXXConstructExpr(clang::CXXConstructExpr* construct) {
    if (!construct->getConstructor()->isTrivial()) {
      effects.unknown_calls = true;
    } else if (construct->getConstructor()->isCopyConstructor() &&
               LocalRoot(construct->getArg(0)) == nullptr) {
      effects.loads.push_back(construct->getArg(0));
    }
    return true;
  }
  bool VisitAsmStmt(clang::AsmStmt*) { return Unknown(); }
  bool VisitLambdaExpr(clang::LambdaExpr*) { return Unknown(); }
  bool VisitStmtExpr(clang::StmtExpr*) { return Unknown(); }
  bool VisitCXXNewExpr(clang::CXXNewExpr*) { return Unknown(); }
  bool VisitCXXDeleteExpr(clang::CXXDeleteExpr*) { return Unknown(); }
  bool VisitReturnStmt(clang::ReturnStmt*) { return Leaves(); }
  bool VisitGotoStmt(clang::GotoStmt*) { return Leaves(); }
  bool VisitIndirectGotoStmt(clang::IndirectGotoStmt*) { return Leaves(); }
  bool VisitBreakStmt(clang::BreakStmt*) { return Leaves(); }
  bool VisitContinueStmt(clang::ContinueStmt*) { return Leaves(); }

  Effects effects;

 private:
  bool Unknown() {
    effects.unknown_calls = true;
    return true;
  }
  bool Leaves() {
    effects.leaves = true;
    return true;
  }
  void Write(const Expr* lvalue) {
    if (const VarDecl* local = LocalRoot(lvalue)) {
      effects.written.insert(local);
    } else {
      effects.stores.push_back(lvalue->IgnoreParens());
    }
  }
  // Globals that no kernel can change, and references to locals count as
  // memory; enumerators and constexpr do not.
  bool IsConstant(const Expr* lvalue) const {
    const auto* ref = llvm::dyn_cast<clang::DeclRefExpr>(lvalue);
    const auto* variable =
        ref == nullptr ? nullptr : llvm::dyn_cast<VarDecl>(ref->getDecl());
    return variable != nullptr && !variable->getType()->isReferenceType() &&
           (variable->isConstexpr() || variable->getType().isConstQualified());
  }

  const clang::ASTContext& ast_;
};

// Whether a body names a variable.
class MentionFinder : public clang::RecursiveASTVisitor<MentionFinder> {
 public:
  explicit MentionFinder(const VarDecl* variable) : variable_(variable) {}
  bool VisitDeclRefExpr(clang::DeclRefExpr* ref) {
    found |= ref->getDecl() == variable_;
    return !found;
  }
  bool found = false;

 private:
  const VarDecl* variable_;
};

}  // namespace

const Effects& Facts::EffectsOf(const Stmt* stmt) const {
  const auto [at, added] = effects_.try_emplace(stmt);
  if (added) {
    EffectCollector collector(ast_);
    collector.TraverseStmt(const_cast<Stmt*>(stmt));
    at->second = std::move(collector.effects);
  }
  return at->second;
}

bool Facts::IsPure(const Expr* expr) const {
  const Effects& effects = EffectsOf(expr);
  return effects.written.empty() && effects.stores.empty() &&
         !effects.unknown_calls && !effects.leaves;
}

bool Facts::Mentions(const Stmt* stmt, const VarDecl* variable) const {
  MentionFinder finder(variable);
  finder.TraverseStmt(const_cast<Stmt*>(stmt));
  return finder.found;
}

bool Facts::DeclaredIn(const VarDecl* variable, const Stmt* region) const {
  if (llvm::isa<clang::ParmVarDecl>(variable)) return false;
  const clang::SourceManager& sources = ast_.getSourceManager();
  const auto at = sources.getExpansionLoc(variable->getLocation());
  const auto begin = sources.getExpansionLoc(region->getBeginLoc());
  const auto end = sources.getExpansionLoc(region->getEndLoc());
  return !sources.isBeforeInTranslationUnit(at, begin) &&
         !sources.isBeforeInTranslationUnit(end, at);
}

bool Facts::IsInvariant(const Expr* expr, const Stmt* region) const {
  if (!IsPure(expr) || !EffectsOf(expr).loads.empty()) return false;
  const Effects& around = EffectsOf(region);
  for (const auto& [variable, uses] : uses_) {
    bool used = false;
    bool escapes = false;
    for (const VariableUse& use : uses) {
      used |= Within(use.ref, expr);
      escapes |= use.kind == UseKind::kEscape;
    }
    if (!used || !IsPlainLocal(variable)) continue;
    if (escapes || around.written.count(variable) > 0) return false;
    // Declared inside: another variable every time.
    if (DeclaredIn(variable, region)) return false;
  }
  return true;
}

}  // namespace reprise::evolution
