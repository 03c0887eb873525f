#include "evolution/ast/facts.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "clang/AST/Attr.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/AST/StmtCXX.h"
#include "clang/Basic/SourceManager.h"

namespace reprise::evolution {
bool IsPlainLocal(const clang::VarDecl* variable) {
  return variable->hasLocalStorage() && !variable->getType()->isReferenceType();
}

const clang::VarDecl* AsVariable(const clang::Expr* expr) {
  if (expr == nullptr) return nullptr;
  const auto* ref =
      llvm::dyn_cast<clang::DeclRefExpr>(expr->IgnoreParenImpCasts());
  return ref == nullptr ? nullptr
                        : llvm::dyn_cast<clang::VarDecl>(ref->getDecl());
}

const clang::VarDecl* LocalRoot(const clang::Expr* lvalue) {
  while (true) {
    lvalue = lvalue->IgnoreParens();
    if (const auto* cast = llvm::dyn_cast<clang::ImplicitCastExpr>(lvalue)) {
      if (cast->getCastKind() != clang::CK_ArrayToPointerDecay &&
          cast->getCastKind() != clang::CK_NoOp) {
        return nullptr;
      }
      lvalue = cast->getSubExpr();
    } else if (const auto* member = llvm::dyn_cast<clang::MemberExpr>(lvalue)) {
      if (member->isArrow() ||
          !llvm::isa<clang::FieldDecl>(member->getMemberDecl())) {
        return nullptr;
      }
      lvalue = member->getBase();
    } else if (const auto* element =
                   llvm::dyn_cast<clang::ArraySubscriptExpr>(lvalue)) {
      lvalue = element->getBase();
    } else {
      break;
    }
  }
  const auto* ref = llvm::dyn_cast<clang::DeclRefExpr>(lvalue);
  if (ref == nullptr) return nullptr;
  const auto* variable = llvm::dyn_cast<clang::VarDecl>(ref->getDecl());
  return variable != nullptr && IsPlainLocal(variable) ? variable : nullptr;
}

class Facts::Collector : public clang::RecursiveASTVisitor<Facts::Collector> {
 public:
  explicit Collector(Facts& facts) : facts_(facts) {}
  bool shouldVisitImplicitCode() const { return true; }
  bool shouldVisitTemplateInstantiations() const { return true; }

  bool VisitDeclRefExpr(clang::DeclRefExpr* ref) {
    if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(ref->getDecl())) {
      facts_.uses_[variable].push_back({ref, facts_.Classify(ref)});
    }
    return true;
  }
  bool VisitForStmt(clang::ForStmt* loop) {
    facts_.loops_.push_back(loop);
    return true;
  }
  bool VisitVarDecl(clang::VarDecl* variable) {
    facts_.variables_.push_back(variable);
    return true;
  }
  bool VisitExpr(clang::Expr* expr) {
    facts_.expressions_.push_back(expr);
    return true;
  }

 private:
  Facts& facts_;
};

Facts::Facts(clang::ASTContext& ast, const clang::FunctionDecl* function)
    : ast_(ast), parents_(function->getBody()) {
  Collector(*this).TraverseStmt(function->getBody());
}

const clang::Stmt* Facts::RealParent(const clang::Stmt* stmt) const {
  do {
    stmt = Parent(stmt);
  } while (stmt != nullptr && (llvm::isa<clang::ParenExpr>(stmt) ||
                               llvm::isa<clang::ImplicitCastExpr>(stmt)));
  return stmt;
}

bool Facts::Within(const clang::Stmt* inner, const clang::Stmt* outer) const {
  for (; inner != nullptr; inner = Parent(inner)) {
    if (inner == outer) return true;
  }
  return false;
}

// Climbs from an lvalue to what is done with it.
UseKind Facts::Classify(const clang::Stmt* node) const {
  while (true) {
    const clang::Stmt* parent = Parent(node);
    if (parent == nullptr) return UseKind::kEscape;
    if (llvm::isa<clang::ParenExpr>(parent)) {
      node = parent;
      continue;
    }
    if (const auto* cast = llvm::dyn_cast<clang::ImplicitCastExpr>(parent)) {
      switch (cast->getCastKind()) {
        case clang::CK_LValueToRValue:
          return UseKind::kRead;
        case clang::CK_NoOp:
        case clang::CK_DerivedToBase:
        case clang::CK_UncheckedDerivedToBase:
          node = parent;
          continue;
        case clang::CK_ArrayToPointerDecay: {
          const clang::Stmt* user = Parent(parent);
          while (user != nullptr && llvm::isa<clang::ParenExpr>(user)) {
            user = Parent(user);
          }
          const auto* element =
              llvm::dyn_cast_or_null<clang::ArraySubscriptExpr>(user);
          if (element == nullptr) return UseKind::kEscape;
          node = element;
          continue;
        }
        default:
          return UseKind::kEscape;
      }
    }
    if (const auto* member = llvm::dyn_cast<clang::MemberExpr>(parent)) {
      if (const auto* method =
              llvm::dyn_cast<clang::CXXMethodDecl>(member->getMemberDecl())) {
        return method->isConst() ? UseKind::kRead : UseKind::kEscape;
      }
      node = parent;
      continue;
    }
    if (const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(parent)) {
      if (!binary->isAssignmentOp() || binary->getLHS() != node) {
        return UseKind::kEscape;
      }
      return binary->isCompoundAssignmentOp() ? UseKind::kReadWrite
                                              : UseKind::kWrite;
    }
    if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(parent)) {
      return unary->isIncrementDecrementOp() ? UseKind::kReadWrite
                                             : UseKind::kEscape;
    }
    if (const auto* construct =
            llvm::dyn_cast<clang::CXXConstructExpr>(parent)) {
      const clang::CXXConstructorDecl* constructor =
          construct->getConstructor();
      return constructor->isCopyConstructor() && constructor->isTrivial()
                 ? UseKind::kRead
                 : UseKind::kEscape;
    }
    if (const auto* call = llvm::dyn_cast<clang::CXXOperatorCallExpr>(parent)) {
      const auto* method =
          llvm::dyn_cast_or_null<clang::CXXMethodDecl>(call->getDirectCallee());
      if (call->getOperator() == clang::OO_Equal && method != nullptr &&
          method->isTrivial() && call->getArg(0) == node) {
        return UseKind::kWrite;
      }
    }
    if (const auto* call = llvm::dyn_cast<clang::CallExpr>(parent)) {
      const clang::FunctionDecl* callee = call->getDirectCallee();
      const bool is_method =
          llvm::isa<clang::CXXOperatorCallExpr>(call) &&
          llvm::isa_and_nonnull<clang::CXXMethodDecl>(callee);
      for (unsigned i = 0; callee != nullptr && i < call->getNumArgs(); ++i) {
        const unsigned parameter = is_method ? i - 1 : i;
        if (call->getArg(i) != node || parameter >= callee->getNumParams()) {
          continue;
        }
        const clang::QualType type = callee->getParamDecl(parameter)->getType();
        return type->isReferenceType() &&
                       type->getPointeeType().isConstQualified()
                   ? UseKind::kRead
                   : UseKind::kEscape;
      }
    }
    return UseKind::kEscape;
  }
}

const std::vector<VariableUse>& Facts::UsesOf(
    const clang::VarDecl* variable) const {
  static const auto* const none = new std::vector<VariableUse>();
  const auto found = uses_.find(variable);
  return found == uses_.end() ? *none : found->second;
}

void Facts::ClassifyPointee(const clang::DeclRefExpr* ref,
                            std::vector<PointeeUse>& out) const {
  const clang::Stmt* node = ref;
  while (true) {
    const clang::Stmt* parent = Parent(node);
    if (const auto* cast =
            llvm::dyn_cast_or_null<clang::ImplicitCastExpr>(parent)) {
      if (cast->getCastKind() == clang::CK_PointerToBoolean) return;
      if (cast->getCastKind() != clang::CK_LValueToRValue &&
          cast->getCastKind() != clang::CK_NoOp) {
        break;
      }
    } else if (const auto* element =
                   llvm::dyn_cast_or_null<clang::ArraySubscriptExpr>(parent)) {
      if (element->getBase() != node) break;
      out.push_back({ref, element, Classify(element)});
      return;
    } else if (const auto* unary =
                   llvm::dyn_cast_or_null<clang::UnaryOperator>(parent)) {
      if (unary->getOpcode() != clang::UO_Deref) break;
      out.push_back({ref, unary, Classify(unary)});
      return;
    } else if (const auto* member =
                   llvm::dyn_cast_or_null<clang::MemberExpr>(parent)) {
      if (!llvm::isa<clang::FieldDecl>(member->getMemberDecl())) break;
      out.push_back({ref, member, Classify(member)});
      return;
    } else if (const auto* binary =
                   llvm::dyn_cast_or_null<clang::BinaryOperator>(parent)) {
      if (binary->isComparisonOp() || binary->isLogicalOp()) return;
      if (!binary->isAdditiveOp()) break;
      if (!binary->getType()->isPointerType()) return;  // a difference
    } else if (!llvm::isa_and_nonnull<clang::ParenExpr>(parent)) {
      break;
    }
    node = parent;
  }
  out.push_back({ref, nullptr, UseKind::kEscape});
}

std::vector<PointeeUse> Facts::PointeeUsesOf(
    const clang::VarDecl* pointer) const {
  std::vector<PointeeUse> out;
  for (const VariableUse& use : UsesOf(pointer)) {
    if (use.kind == UseKind::kRead) {
      ClassifyPointee(use.ref, out);
    } else {
      out.push_back({use.ref, nullptr, UseKind::kEscape});
    }
  }
  return out;
}

bool Facts::IsNeverModified(const clang::VarDecl* variable) const {
  const auto& uses = UsesOf(variable);
  return std::all_of(uses.begin(), uses.end(), [](const VariableUse& use) {
    return use.kind == UseKind::kRead;
  });
}

bool Facts::IsUnconditional(const clang::Stmt* stmt,
                            const clang::Stmt* region) const {
  const clang::Stmt* node = nullptr;
  for (const clang::Stmt* child = stmt; child != region; child = node) {
    node = Parent(child);
    if (node == nullptr) return false;
    if (const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(node)) {
      if (binary->isLogicalOp() && binary->getRHS() == child) return false;
    } else if (const auto* choice =
                   llvm::dyn_cast<clang::AbstractConditionalOperator>(node)) {
      if (choice->getCond() != child) return false;
    } else if (const auto* branch = llvm::dyn_cast<clang::IfStmt>(node)) {
      if (branch->getCond() != child) return false;
    } else if (!llvm::isa<clang::Expr>(node) &&
               !llvm::isa<clang::CompoundStmt>(node) &&
               !llvm::isa<clang::DeclStmt>(node) &&
               !llvm::isa<clang::AttributedStmt>(node)) {
      return false;  // loops, switches
    }
  }
  return true;
}

bool Facts::Same(const clang::Expr* a, const clang::Expr* b) const {
  llvm::FoldingSetNodeID left;
  llvm::FoldingSetNodeID right;
  a->IgnoreParenImpCasts()->Profile(left, ast_, /*Canonical=*/true);
  b->IgnoreParenImpCasts()->Profile(right, ast_, /*Canonical=*/true);
  return left == right;
}

namespace {

bool IsLoop(const clang::Stmt* stmt) {
  return llvm::isa<clang::ForStmt>(stmt) || llvm::isa<clang::WhileStmt>(stmt) ||
         llvm::isa<clang::DoStmt>(stmt);
}

}  // namespace

const clang::Stmt* Facts::InnermostLoop(const clang::Stmt* stmt) const {
  const clang::Stmt* loop = Parent(stmt);
  while (loop != nullptr && !IsLoop(loop)) loop = Parent(loop);
  return loop;
}

const clang::Stmt* Facts::Nest(const clang::Stmt* stmt) const {
  const clang::Stmt* nest = stmt;
  for (const clang::Stmt* node = stmt; node != nullptr; node = Parent(node)) {
    if (IsLoop(node)) nest = node;
  }
  return nest;
}

}  // namespace reprise::evolution
