// What every rewrite gets and gives. A rewrite looks at one function body and
// adds a move for each place and parameter where its precondition holds.
// Internal to the AST library.
#ifndef REPRISE_EVOLUTION_AST_REWRITE_H_
#define REPRISE_EVOLUTION_AST_REWRITE_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"
#include "clang/AST/Stmt.h"
#include "evolution/ast/code.h"
#include "evolution/ast/facts.h"
#include "evolution/move.h"
#include "evolution/source.h"

namespace reprise::evolution {

// Among insertions at one place, what stands further left. Wrappers close in
// the opposite order: the rank of a closing insertion is the negative one.
enum InsertionRank : int {
  kBeforeStatement = 0,  // new statements ahead of a loop
  kPragma = 10,          // next to its loop
  kQualifier = 20,
  kWrapOuter = 30,
  kWrapInner = 40,
};

// Moves of one function body, by key.
using MoveSet = std::map<std::string, Move>;

struct Body {
  const Code& code;
  const SourceContext& context;
  const clang::FunctionDecl* function;
  bool kernel = false;
  const Facts& facts;
};

class MoveBuilder {
 public:
  // `at` names the site, with `kind`.
  MoveBuilder(const Body& body, std::string kind, const Span& at);

  MoveBuilder& Replace(const Span& span, std::string text);
  MoveBuilder& Insert(const std::string& path, size_t offset, std::string text,
                      int rank);
  // `before` and `after` around `span`.
  MoveBuilder& Wrap(const Span& span, std::string before, std::string after,
                    int rank);
  MoveBuilder& Inexact();
  MoveBuilder& Claim(std::string claim);
  MoveBuilder& Copies(int copies);
  MoveBuilder& Tag(std::string tag);
  // Conflicts with other structural rewrites of the same loop nest.
  MoveBuilder& TagNest(const clang::Stmt* stmt);

  bool empty() const { return move_.edits.empty(); }

  // `parameter` tells apart the moves of one site; may be empty.
  void AddTo(MoveSet& moves, const std::string& parameter,
             std::string description);

 private:
  const Body& body_;
  Move move_;
};

// A name that no text of the file holds yet and no other site gets: `stem` with
// the line of `site`.
std::string FreshName(const Body& body, const Span& site,
                      const std::string& stem);

// The statement list that `stmt` is an element of; nullptr: it is the body of
// an if or a loop, say. `whole` becomes the element: `stmt` with its
// attributes.
const clang::CompoundStmt* StatementList(const Body& body,
                                         const clang::Stmt* stmt,
                                         const clang::Stmt** whole);

// `for (T i = first; i < bound; i += step)` over an integer that the body
// leaves alone; bound and step stay the same in the loop.
struct CountedLoop {
  const clang::ForStmt* loop = nullptr;
  const clang::VarDecl* variable = nullptr;
  const clang::Expr* first = nullptr;
  const clang::Expr* bound = nullptr;
  const clang::Expr* step = nullptr;                    // nullptr: 1
  clang::BinaryOperatorKind comparison = clang::BO_LT;  // or LE
};
std::optional<CountedLoop> AsCountedLoop(const Body& body,
                                         const clang::ForStmt* loop);

// The loop's only statements, braces taken off.
std::vector<const clang::Stmt*> Statements(const clang::Stmt* body);

void FindUnrolls(const Body& body, MoveSet& moves);
void FindInterchanges(const Body& body, MoveSet& moves);
void FindHoistedLoads(const Body& body, MoveSet& moves);
void FindRegisterAccumulators(const Body& body, MoveSet& moves);
void FindPartialSums(const Body& body, MoveSet& moves);

void FindReciprocalSquareRoots(const Body& body, MoveSet& moves);
void FindReciprocals(const Body& body, MoveSet& moves);
void FindIntegerPowersOfTwo(const Body& body, MoveSet& moves);
void FindPowers(const Body& body, MoveSet& moves);
void FindFloatLiterals(const Body& body, MoveSet& moves);
void FindFastFunctions(const Body& body, MoveSet& moves);

void FindRestrict(const Body& body, MoveSet& moves);
void FindReadOnlyLoads(const Body& body, MoveSet& moves);
void FindLaunchBounds(const Body& body, MoveSet& moves);
void FindSharedPadding(const Body& body, MoveSet& moves);
void FindAlignment(const Body& body, MoveSet& moves);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_AST_REWRITE_H_
