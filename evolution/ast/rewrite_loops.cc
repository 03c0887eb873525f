// Rewrites of loops.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clang/AST/ExprCXX.h"
#include "evolution/ast/rewrite.h"

namespace reprise::evolution {
namespace {

using clang::Expr;
using clang::ForStmt;
using clang::Stmt;
using clang::VarDecl;

constexpr int kMaxFullUnroll = 64;

// Iterations, where all of first, bound and step are known.
std::optional<int64_t> TripCount(const Body& body, const ForStmt* loop) {
  const auto counted = AsCountedLoop(body, loop);
  if (!counted) return std::nullopt;
  Expr::EvalResult first;
  Expr::EvalResult bound;
  Expr::EvalResult step;
  const clang::ASTContext& ast = body.facts.ast();
  if (!counted->first->EvaluateAsInt(first, ast) ||
      !counted->bound->EvaluateAsInt(bound, ast) ||
      (counted->step != nullptr && !counted->step->EvaluateAsInt(step, ast))) {
    return std::nullopt;
  }
  const auto number = [](const Expr::EvalResult& value) {
    return value.Val.getInt().tryExtValue().value_or(0);
  };
  const int64_t by = counted->step == nullptr ? 1 : number(step);
  const int64_t span = number(bound) - number(first) +
                       (counted->comparison == clang::BO_LE ? 1 : 0);
  if (by <= 0 || span <= 0) return std::nullopt;
  return (span + by - 1) / by;
}

// The line of a pragma about unrolling right above `offset`.
std::optional<Span> PragmaAbove(const Body& body, const Span& loop) {
  const std::string_view text = body.code.File(loop.path);
  size_t end = text.substr(0, loop.begin).find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  ++end;
  const size_t newline = text.substr(0, end).rfind('\n');
  const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  const std::string_view line = text.substr(begin, end - begin);
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string_view::npos || line[hash] != '#' ||
      line.back() == '\\' || line.find("unroll") == std::string_view::npos) {
    return std::nullopt;
  }
  return Span{loop.path, begin + hash, end};
}

}  // namespace

void FindUnrolls(const Body& body, MoveSet& moves) {
  for (const ForStmt* loop : body.facts.loops()) {
    const auto at = body.code.Token(loop->getForLoc());
    if (!at || body.code.Text(*at) != "for") continue;
    const auto trips = TripCount(body, loop);
    struct Choice {
      std::string name, text;
      int copies;
    };
    std::vector<Choice> choices;
    if (trips && *trips <= kMaxFullUnroll) {
      choices.push_back({"full", "#pragma unroll", static_cast<int>(*trips)});
    }
    for (const int factor : {1, 2, 4, 8, 16}) {
      if (trips && factor > 1 && factor >= *trips) break;
      choices.push_back({absl::StrCat(factor),
                         absl::StrCat("#pragma unroll ", factor), factor});
    }
    const auto pragma = PragmaAbove(body, *at);
    for (const auto& [name, text, copies] : choices) {
      MoveBuilder move(body, "unroll", *at);
      move.Copies(copies);
      if (pragma) {
        if (body.code.Text(*pragma) == text) continue;
        move.Replace(*pragma, text);
      } else {
        const bool first = body.code.FirstInLine(at->path, at->begin);
        const std::string indent = body.code.Indent(at->path, at->begin);
        move.Insert(at->path, at->begin,
                    absl::StrCat(first ? "" : "\n", text, "\n", indent),
                    kPragma);
      }
      move.AddTo(moves, name,
                 absl::StrCat(name == "1" ? "keep" : "unroll", " the loop at ",
                              body.code.Where(*at),
                              name == "1"      ? " from being unrolled"
                              : name == "full" ? " completely"
                                               : " by " + name));
    }
  }
}

namespace {

// The only loop in `outer`'s body, if there is nothing else.
const ForStmt* PerfectInner(const ForStmt* outer) {
  const auto statements = Statements(outer->getBody());
  if (statements.size() != 1) return nullptr;
  return llvm::dyn_cast_or_null<ForStmt>(statements[0]);
}

// What interchanging the loops around `statement` changes.
enum class Order { kFree, kRounds, kUnknown };

Order OrderOf(const Body& body, const Stmt* statement, const VarDecl* outer,
              const VarDecl* inner) {
  const auto* assignment =
      llvm::dyn_cast_or_null<clang::BinaryOperator>(statement);
  if (assignment == nullptr || !body.facts.IsPure(assignment->getRHS())) {
    return Order::kUnknown;
  }
  const Expr* target = assignment->getLHS()->IgnoreParens();
  if (!body.facts.IsPure(target)) return Order::kUnknown;
  const VarDecl* scalar = AsVariable(target);
  const VarDecl* root = scalar != nullptr ? scalar : nullptr;
  std::vector<const Expr*> indices;
  if (root == nullptr) {
    const Expr* base = target;
    while (const auto* element = llvm::dyn_cast<clang::ArraySubscriptExpr>(
               base->IgnoreParenImpCasts())) {
      indices.push_back(element->getIdx());
      base = element->getBase();
    }
    root = AsVariable(base);
  }
  if (root == nullptr || body.facts.Mentions(assignment->getRHS(), root)) {
    return Order::kUnknown;
  }
  switch (assignment->getOpcode()) {
    case clang::BO_AddAssign:
    case clang::BO_SubAssign:
      return target->getType()->isFloatingType()  ? Order::kRounds
             : target->getType()->isIntegerType() ? Order::kFree
                                                  : Order::kUnknown;
    case clang::BO_AndAssign:
    case clang::BO_OrAssign:
    case clang::BO_XorAssign:
      return Order::kFree;
    case clang::BO_Assign: {
      // Every iteration has an element of its own: a[i][j].
      bool has_outer = false;
      bool has_inner = false;
      for (const Expr* index : indices) {
        has_outer |= AsVariable(index) == outer;
        has_inner |= AsVariable(index) == inner;
      }
      return has_outer && has_inner ? Order::kFree : Order::kUnknown;
    }
    default:
      return Order::kUnknown;
  }
}

// Between the parentheses of a for.
std::optional<Span> Header(const Body& body, const ForStmt* loop) {
  const auto open = body.code.Token(loop->getForLoc());
  const auto close = body.code.Token(loop->getRParenLoc());
  const auto left = body.code.Token(loop->getLParenLoc());
  if (!open || !close || !left || left->path != close->path) {
    return std::nullopt;
  }
  return Span{left->path, left->end, close->begin};
}

}  // namespace

void FindInterchanges(const Body& body, MoveSet& moves) {
  for (const ForStmt* outer : body.facts.loops()) {
    const ForStmt* inner = PerfectInner(outer);
    if (inner == nullptr) continue;
    const auto outside = AsCountedLoop(body, outer);
    const auto inside = AsCountedLoop(body, inner);
    if (!outside || !inside) continue;
    // The inner loop runs the same way in every round of the outer.
    if (!body.facts.IsInvariant(inside->first, outer) ||
        !body.facts.IsInvariant(inside->bound, outer) ||
        (inside->step != nullptr &&
         !body.facts.IsInvariant(inside->step, outer))) {
      continue;
    }
    const auto statements = Statements(inner->getBody());
    if (statements.size() != 1) continue;
    const Order order =
        OrderOf(body, statements[0], outside->variable, inside->variable);
    const auto above = Header(body, outer);
    const auto below = Header(body, inner);
    if (order == Order::kUnknown || !above || !below ||
        above->path != below->path) {
      continue;
    }
    const Effects& effects = body.facts.EffectsOf(statements[0]);
    MoveBuilder move(body, "interchange", *above);
    // One edit from the first header to the second: what another rewrite puts
    // between them would not survive.
    move.Replace({above->path, above->begin, below->end},
                 absl::StrCat(std::string(body.code.Text(*below)),
                              std::string(body.code.Text(
                                  {above->path, above->end, below->begin})),
                              std::string(body.code.Text(*above))))
        .TagNest(outer);
    if (order == Order::kRounds) move.Inexact();
    if (!effects.stores.empty() && !effects.loads.empty()) {
      move.Claim("what the loop writes is not what it reads");
    }
    move.AddTo(
        moves, "",
        absl::StrCat("interchange the loops at ", body.code.Where(*above)));
  }
}

namespace {

bool IsScalar(clang::QualType type) {
  const auto* builtin = type.getCanonicalType()->getAs<clang::BuiltinType>();
  return builtin != nullptr && !type.isVolatileQualified() &&
         (builtin->isInteger() || builtin->isFloatingPoint());
}

// Written as a type that means the same at this place of the file.
std::string TypeName(const Body& body, clang::QualType type) {
  return type.getCanonicalType().getUnqualifiedType().getAsString(
      body.facts.ast().getPrintingPolicy());
}

// p[i] over a pointer that the loop leaves alone, with an invariant index.
struct Element {
  const VarDecl* pointer = nullptr;
  const clang::ArraySubscriptExpr* expr = nullptr;
};

std::optional<Element> InvariantElement(const Body& body, const Expr* expr,
                                        const Stmt* loop) {
  const auto* element = llvm::dyn_cast<clang::ArraySubscriptExpr>(expr);
  if (element == nullptr || !IsScalar(element->getType())) return std::nullopt;
  const VarDecl* pointer = AsVariable(element->getBase());
  if (pointer == nullptr || !pointer->getType()->isPointerType() ||
      !body.facts.IsInvariant(element->getBase(), loop) ||
      !body.facts.IsInvariant(element->getIdx(), loop)) {
    return std::nullopt;
  }
  return Element{pointer, element};
}

// Where new statements around a loop go.
struct Surroundings {
  Span loop;  // with its pragma
  std::string indent;
};

std::optional<Surroundings> Around(const Body& body, const Stmt* loop) {
  const Stmt* whole = nullptr;
  if (StatementList(body, loop, &whole) == nullptr) return std::nullopt;
  const auto keyword = body.code.Token(loop->getBeginLoc());
  // The loop's own end: the brace, or the semicolon of its last statement.
  auto end = body.code.Of(loop);
  if (!keyword || !end ||
      !body.code.FirstInLine(keyword->path, keyword->begin)) {
    return std::nullopt;
  }
  const std::string_view text = body.code.File(end->path);
  if (text[end->end - 1] != '}') {
    const size_t semicolon = text.find_first_not_of(" \t\r\n", end->end);
    if (semicolon == std::string_view::npos || text[semicolon] != ';') {
      return std::nullopt;
    }
    end->end = semicolon + 1;
  }
  Surroundings around{*keyword,
                      body.code.Indent(keyword->path, keyword->begin)};
  around.loop.end = end->end;
  if (const auto pragma = PragmaAbove(body, *keyword)) {
    around.loop.begin = pragma->begin;
  }
  return around;
}

// Synchronization or unknown code would show the change to others.
bool IsPlainLoop(const Body& body, const ForStmt* loop) {
  const Effects& effects = body.facts.EffectsOf(loop);
  return !effects.unknown_calls && !effects.leaves;
}

}  // namespace

// for (...) { ... p[i] ... } -> const float p_i = p[i]; for (...) { ... p_i ...
// }
void FindHoistedLoads(const Body& body, MoveSet& moves) {
  for (const ForStmt* loop : body.facts.loops()) {
    const Effects& effects = body.facts.EffectsOf(loop);
    // Without stores LLVM hoists by itself.
    if (!IsPlainLoop(body, loop) || effects.stores.empty()) continue;
    const auto around = Around(body, loop);
    if (!around) continue;
    std::vector<const Expr*> done;
    for (const Expr* load : effects.loads) {
      const auto element = InvariantElement(body, load, loop);
      if (!element || !body.facts.IsUnconditional(load, loop->getBody())) {
        continue;
      }
      const bool known = std::any_of(
          done.begin(), done.end(),
          [&](const Expr* other) { return body.facts.Same(other, load); });
      const bool stored = std::any_of(
          effects.stores.begin(), effects.stores.end(), [&](const Expr* store) {
            return body.facts.Mentions(store, element->pointer);
          });
      const auto first = body.code.Of(load);
      if (known || stored || !first) continue;
      done.push_back(load);
      // Of several, each has a name and a place of its own.
      const int order = std::min(static_cast<int>(done.size()) - 1, 9);
      const std::string name =
          FreshName(body, *first,
                    absl::StrCat(element->pointer->getNameAsString(), "_once",
                                 order == 0 ? "" : absl::StrCat(order + 1)));
      MoveBuilder move(body, "hoist_load", *first);
      bool whole = true;
      for (const Expr* other : effects.loads) {
        if (!body.facts.Same(other, load)) continue;
        const auto span = body.code.Of(other);
        whole &= span.has_value();
        if (span) move.Replace(*span, name);
      }
      if (!whole) continue;
      move.Insert(around->loop.path, around->loop.begin,
                  absl::StrCat("const ", TypeName(body, load->getType()), " ",
                               name, " = ", std::string(body.code.Text(*first)),
                               ";\n", around->indent),
                  kBeforeStatement + order)
          .Claim("what the loop writes is not what it reads, and it runs")
          .AddTo(moves, absl::StrCat(body.code.Line(around->loop)),
                 absl::StrCat("load ", std::string(body.code.Text(*first)),
                              " once before the loop at ",
                              body.code.Where(around->loop)));
    }
  }
}

// for (...) p[i] += x; -> float sum = p[i]; for (...) sum += x; p[i] = sum;
void FindRegisterAccumulators(const Body& body, MoveSet& moves) {
  for (const ForStmt* loop : body.facts.loops()) {
    if (!IsPlainLoop(body, loop)) continue;
    const Effects& effects = body.facts.EffectsOf(loop);
    for (const Expr* store : effects.stores) {
      const auto element = InvariantElement(body, store, loop);
      const auto around = Around(body, loop);
      if (!element || !around) continue;
      // Every use of the pointer in the loop is this element, and at least one
      // store is always reached.
      bool all_same = true;
      bool always = false;
      std::vector<Span> uses;
      for (const PointeeUse& use : body.facts.PointeeUsesOf(element->pointer)) {
        if (!body.facts.Within(use.ref, loop)) continue;
        const auto* other =
            llvm::dyn_cast_or_null<clang::ArraySubscriptExpr>(use.element);
        const auto span = other == nullptr ? std::nullopt : body.code.Of(other);
        all_same &= span && use.kind != UseKind::kEscape &&
                    body.facts.Same(other, store);
        if (!all_same) break;
        uses.push_back(*span);
        always |= use.kind != UseKind::kRead &&
                  body.facts.IsUnconditional(other, loop->getBody());
      }
      if (!all_same || !always) continue;
      const Span at = uses.front();
      const std::string text(body.code.Text(at));
      const std::string name = FreshName(
          body, at, element->pointer->getNameAsString() + "_register");
      MoveBuilder move(body, "register_accumulator", at);
      for (const Span& use : uses) move.Replace(use, name);
      move.Insert(around->loop.path, around->loop.begin,
                  absl::StrCat(TypeName(body, store->getType()), " ", name,
                               " = ", text, ";\n", around->indent),
                  kBeforeStatement)
          .Insert(around->loop.path, around->loop.end,
                  absl::StrCat("\n", around->indent, text, " = ", name, ";"),
                  kBeforeStatement)
          .Claim(
              "the element that the loop writes is reached through no other "
              "pointer")
          .TagNest(loop)
          .AddTo(moves, absl::StrCat(body.code.Line(around->loop)),
                 absl::StrCat("keep ", text, " in a register over the loop at ",
                              body.code.Where(around->loop)));
    }
  }
}

}  // namespace reprise::evolution
