// What the expressions and statements of a function body do: reads, writes,
// calls, what stays the same in a loop. All answers err on the safe side.
// Internal to the AST library; not thread-safe.
#ifndef REPRISE_EVOLUTION_AST_FACTS_H_
#define REPRISE_EVOLUTION_AST_FACTS_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"
#include "clang/AST/ParentMap.h"
#include "clang/AST/Stmt.h"
#include "llvm/ADT/FoldingSet.h"

namespace reprise::evolution {

enum class UseKind {
  kRead,
  kWrite,
  kReadWrite,
  kEscape,  // its address or a reference is taken, or it is not understood
};

struct VariableUse {
  const clang::DeclRefExpr* ref = nullptr;
  UseKind kind = UseKind::kEscape;
};

// A memory access through a pointer variable.
struct PointeeUse {
  const clang::DeclRefExpr* ref = nullptr;
  // The element: p[i], *p, p->x. nullptr: the pointer itself goes elsewhere.
  const clang::Expr* element = nullptr;
  UseKind kind = UseKind::kEscape;
};

// What a statement may do beside computing values.
struct Effects {
  std::set<const clang::VarDecl*> written;  // local variables
  std::vector<const clang::Expr*> stores;   // lvalues that are no locals
  std::vector<const clang::Expr*> loads;    // the same, read
  bool unknown_calls = false;               // anything but known mathematics
  bool leaves = false;  // return, goto, or a break or continue
  bool calls = false;   // any, mathematics too
};

class Facts {
 public:
  Facts(clang::ASTContext& ast, const clang::FunctionDecl* function);

  clang::ASTContext& ast() const { return ast_; }
  const clang::Stmt* Parent(const clang::Stmt* stmt) const {
    return parents_.getParent(const_cast<clang::Stmt*>(stmt));
  }
  // Parent that is no parenthesis and no implicit cast.
  const clang::Stmt* RealParent(const clang::Stmt* stmt) const;
  bool Within(const clang::Stmt* inner, const clang::Stmt* outer) const;

  const std::vector<VariableUse>& UsesOf(const clang::VarDecl* variable) const;
  std::vector<PointeeUse> PointeeUsesOf(const clang::VarDecl* pointer) const;

  // Never written after its initialization, and never escapes.
  bool IsNeverModified(const clang::VarDecl* variable) const;

  const Effects& EffectsOf(const clang::Stmt* stmt) const;
  // Computes a value and nothing else; loads are allowed.
  bool IsPure(const clang::Expr* expr) const;
  // Pure, loads no memory but locals, and has the same value at every point of
  // `region`.
  bool IsInvariant(const clang::Expr* expr, const clang::Stmt* region) const;
  // Whether `variable` is declared within the text of `region`.
  bool DeclaredIn(const clang::VarDecl* variable,
                  const clang::Stmt* region) const;
  // Whether the value depends on `variable`.
  bool Mentions(const clang::Stmt* stmt, const clang::VarDecl* variable) const;
  // Whether `stmt` runs exactly once for every run of `region` to its end that
  // does not leave it: not under an if, a loop, ?:, && or ||.
  bool IsUnconditional(const clang::Stmt* stmt,
                       const clang::Stmt* region) const;

  // Same syntax over the same declarations.
  bool Same(const clang::Expr* a, const clang::Expr* b) const;

  // In the order they are written.
  const std::vector<const clang::ForStmt*>& loops() const { return loops_; }
  const std::vector<const clang::VarDecl*>& variables() const {
    return variables_;
  }
  const std::vector<const clang::Expr*>& expressions() const {
    return expressions_;
  }
  // Innermost loop of any sort around `stmt`; nullptr: none.
  const clang::Stmt* InnermostLoop(const clang::Stmt* stmt) const;
  // Outermost loop of any sort around `stmt`, itself if there is none.
  const clang::Stmt* Nest(const clang::Stmt* stmt) const;

 private:
  class Collector;
  UseKind Classify(const clang::Stmt* lvalue) const;
  void ClassifyPointee(const clang::DeclRefExpr* ref,
                       std::vector<PointeeUse>& out) const;

  clang::ASTContext& ast_;
  clang::ParentMap parents_;
  std::map<const clang::VarDecl*, std::vector<VariableUse>> uses_;
  std::vector<const clang::ForStmt*> loops_;
  std::vector<const clang::VarDecl*> variables_;
  std::vector<const clang::Expr*> expressions_;
  mutable std::map<const clang::Stmt*, Effects> effects_;
};

// A local of plain storage: not shared memory, not a reference.
bool IsPlainLocal(const clang::VarDecl* variable);

// The variable that a chain of member accesses and local array elements starts
// from, when it is a plain local; nullptr otherwise.
const clang::VarDecl* LocalRoot(const clang::Expr* lvalue);

// The variable an expression is, without parentheses and implicit casts.
const clang::VarDecl* AsVariable(const clang::Expr* expr);

// Name of a mathematics function of the toolkit or the language, "" otherwise:
// "sqrtf" for sqrtf, ::sqrt on floats is "sqrt".
std::string MathName(const clang::ASTContext& ast, const clang::CallExpr* call);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_AST_FACTS_H_
