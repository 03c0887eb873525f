// Splits a loop's reduction into independent partial results.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clang/AST/Expr.h"
#include "evolution/ast/rewrite.h"

namespace reprise::evolution {
namespace {

using clang::Expr;
using clang::Stmt;
using clang::VarDecl;

enum class Reduction { kSum, kExtreme };

struct Reduced {
  Reduction kind = Reduction::kSum;
  const VarDecl* variable = nullptr;
  std::string function;  // of an extreme: fmaxf, min
};

// The reduction that `stmt` is a step of: s += x, or s = fmaxf(s, x).
std::optional<Reduced> AsReduction(const Body& body, const Stmt* stmt) {
  const auto* assignment = llvm::dyn_cast_or_null<clang::BinaryOperator>(stmt);
  if (assignment == nullptr) return std::nullopt;
  Reduced reduced;
  reduced.variable = AsVariable(assignment->getLHS());
  if (reduced.variable == nullptr || !reduced.variable->hasLocalStorage() ||
      reduced.variable->getType()->isReferenceType() ||
      !reduced.variable->getType()->isArithmeticType()) {
    return std::nullopt;
  }
  const Facts& facts = body.facts;
  if (assignment->getOpcode() == clang::BO_AddAssign) {
    if (!facts.IsPure(assignment->getRHS()) ||
        facts.Mentions(assignment->getRHS(), reduced.variable)) {
      return std::nullopt;
    }
    return reduced;
  }
  if (assignment->getOpcode() != clang::BO_Assign) return std::nullopt;
  const auto* call = llvm::dyn_cast<clang::CallExpr>(
      assignment->getRHS()->IgnoreParenImpCasts());
  if (call == nullptr || call->getNumArgs() != 2) return std::nullopt;
  const std::string name = MathName(facts.ast(), call);
  if (name != "fmaxf" && name != "fminf" && name != "fmax" && name != "fmin" &&
      name != "max" && name != "min") {
    return std::nullopt;
  }
  const bool first = AsVariable(call->getArg(0)) == reduced.variable;
  const Expr* other = call->getArg(first ? 1 : 0);
  if ((!first && AsVariable(call->getArg(1)) != reduced.variable) ||
      !facts.IsPure(other) || facts.Mentions(other, reduced.variable)) {
    return std::nullopt;
  }
  reduced.kind = Reduction::kExtreme;
  reduced.function = body.code.Text(call->getCallee());
  if (reduced.function.empty()) return std::nullopt;
  return reduced;
}

// The loop's last statement is a reduction, and the others only declare.
std::optional<Reduced> ReductionOf(const Body& body, const CountedLoop& loop,
                                   const Stmt** step) {
  const std::vector<const Stmt*> statements = Statements(loop.loop->getBody());
  if (statements.empty()) return std::nullopt;
  *step = statements.back();
  for (size_t i = 0; i + 1 < statements.size(); ++i) {
    const auto* declaration = llvm::dyn_cast<clang::DeclStmt>(statements[i]);
    const Effects& effects = body.facts.EffectsOf(statements[i]);
    if (declaration == nullptr || effects.unknown_calls || effects.leaves ||
        !effects.stores.empty() || !effects.written.empty()) {
      return std::nullopt;
    }
    for (const clang::Decl* decl : declaration->decls()) {
      const auto* local = llvm::dyn_cast<VarDecl>(decl);
      if (local == nullptr || !local->hasLocalStorage()) return std::nullopt;
    }
  }
  auto reduced = AsReduction(body, *step);
  if (!reduced || body.facts.DeclaredIn(reduced->variable, loop.loop)) {
    return std::nullopt;
  }
  // Nothing else in the loop knows the variable, so that its place can be
  // taken; the header stays as it is.
  for (const VariableUse& use : body.facts.UsesOf(reduced->variable)) {
    if (use.kind == UseKind::kEscape) return std::nullopt;
    if (body.facts.Within(use.ref, loop.loop) &&
        !body.facts.Within(use.ref, *step)) {
      return std::nullopt;
    }
  }
  return reduced;
}

// `text`'s lines, the first one's indentation unknown, at `indent`.
std::string Reindent(std::string_view text, const std::string& indent) {
  std::vector<std::string> lines =
      absl::StrSplit(absl::string_view(text.data(), text.size()), '\n');
  size_t common = std::string::npos;
  for (size_t i = 1; i < lines.size(); ++i) {
    common = std::min(common, lines[i].find_first_not_of(" \t"));
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    if (common != std::string::npos && lines[i].size() > common) {
      lines[i] = indent + lines[i].substr(common);
    }
  }
  return indent + absl::StrJoin(lines, "\n");
}

// The body's statements at `indent`, with the reduction going to `partial`.
std::optional<std::string> BodyText(const Body& body, const CountedLoop& loop,
                                    const Stmt* step, const VarDecl* variable,
                                    const std::string& partial,
                                    const std::string& indent) {
  auto whole = body.code.Of(loop.loop->getBody());
  if (!whole) return std::nullopt;
  const bool braces = llvm::isa<clang::CompoundStmt>(loop.loop->getBody());
  if (braces) {
    ++whole->begin;
    --whole->end;
  }
  std::string text(body.code.Text(*whole));
  if (text.find('#') != std::string::npos) return std::nullopt;
  // From the back, so that offsets stay.
  std::vector<Span> uses;
  for (const VariableUse& use : body.facts.UsesOf(variable)) {
    if (!body.facts.Within(use.ref, step)) continue;
    const auto span = body.code.Of(use.ref);
    if (!span || span->path != whole->path) return std::nullopt;
    uses.push_back(*span);
  }
  std::sort(uses.begin(), uses.end(),
            [](const Span& a, const Span& b) { return a.begin > b.begin; });
  for (const Span& use : uses) {
    text.replace(use.begin - whole->begin, use.end - use.begin, partial);
  }
  if (!braces) text += ';';
  const absl::string_view stripped = absl::StripAsciiWhitespace(text);
  return Reindent(std::string_view(stripped.data(), stripped.size()), indent);
}

std::string TypeText(const Body& body, const VarDecl* variable) {
  return variable->getType()
      .getCanonicalType()
      .getUnqualifiedType()
      .getAsString(body.facts.ast().getPrintingPolicy());
}

// The loop's step as a factor; "": not to be had.
std::string StepText(const Body& body, const CountedLoop& loop) {
  if (loop.step == nullptr) return "1";
  const std::string text = body.code.Text(loop.step);
  const Expr* step = loop.step->IgnoreParenImpCasts();
  const bool simple = llvm::isa<clang::DeclRefExpr>(step) ||
                      llvm::isa<clang::IntegerLiteral>(step) ||
                      llvm::isa<clang::PseudoObjectExpr>(step) ||
                      llvm::isa<clang::MemberExpr>(step);
  return text.empty() || simple ? text : absl::StrCat("(", text, ")");
}

std::string Times(int times, const std::string& step) {
  if (step == "1") return absl::StrCat(times);
  return times == 1 ? step : absl::StrCat(times, " * ", step);
}

struct Plan {
  CountedLoop loop;
  const Stmt* step = nullptr;
  Reduced reduced;
  Span keyword;  // the loop's first token
  Span first;    // its initial value
  std::string indent;
};

// `index + times * step`.
std::string Ahead(const std::string& index, int times,
                  const std::string& step) {
  if (times == 0) return index;
  return absl::StrCat(index, " + ", Times(times, step));
}

// Statements that do `ways` iterations at a time as long as there are so many,
// and leave the rest to the loop behind them.
std::optional<std::string> Prologue(const Body& body, const Plan& plan,
                                    int ways, const std::string& index) {
  const std::string type = TypeText(body, plan.reduced.variable);
  const std::string index_type = TypeText(body, plan.loop.variable);
  const std::string variable = plan.reduced.variable->getNameAsString();
  const std::string step = StepText(body, plan.loop);
  const std::string bound = body.code.Text(plan.loop.bound);
  if (step.empty() || bound.empty()) return std::nullopt;
  const std::string& in = plan.indent;
  const bool sums = plan.reduced.kind == Reduction::kSum;
  std::string text =
      absl::StrCat(index_type, " ", index, " = ",
                   std::string(body.code.Text(plan.first)), ";\n", in);
  std::vector<std::string> partials;
  for (int way = 1; way < ways; ++way) {
    partials.push_back(
        FreshName(body, plan.keyword, absl::StrCat(variable, "_part", way)));
    absl::StrAppend(&text, type, " ", partials.back(), " = ",
                    sums ? "0" : variable, ";\n", in);
  }
  absl::StrAppend(&text, "for (; ", Ahead(index, ways - 1, step),
                  plan.loop.comparison == clang::BO_LT ? " < " : " <= ", bound,
                  "; ", index, " += ", Times(ways, step), ") {\n", in);
  for (int way = 0; way < ways; ++way) {
    const auto round =
        BodyText(body, plan.loop, plan.step, plan.reduced.variable,
                 way == 0 ? variable : partials[way - 1], in + "    ");
    if (!round) return std::nullopt;
    absl::StrAppend(&text, "  {\n", in, "    const ", index_type, " ",
                    plan.loop.variable->getNameAsString(), " = ",
                    Ahead(index, way, step), ";\n", *round, "\n", in, "  }\n",
                    in);
  }
  absl::StrAppend(&text, "}\n", in);
  if (sums) {
    absl::StrAppend(&text, variable, " += ", absl::StrJoin(partials, " + "),
                    ";\n", in);
  } else {
    for (const std::string& partial : partials) {
      absl::StrAppend(&text, variable, " = ", plan.reduced.function, "(",
                      variable, ", ", partial, ");\n", in);
    }
  }
  return text;
}

std::optional<Plan> MakePlan(const Body& body, const clang::ForStmt* loop) {
  const auto counted = AsCountedLoop(body, loop);
  const Stmt* whole = nullptr;
  if (!counted || StatementList(body, loop, &whole) == nullptr) {
    return std::nullopt;
  }
  Plan plan;
  plan.loop = *counted;
  const auto reduced = ReductionOf(body, *counted, &plan.step);
  const auto keyword = body.code.Token(whole->getBeginLoc());
  const auto loop_keyword = body.code.Token(loop->getForLoc());
  const auto first = body.code.Of(counted->first);
  // A pragma above would come to stand before the new statements.
  if (!reduced || !keyword || !loop_keyword || !first || whole != loop ||
      !body.code.FirstInLine(loop_keyword->path, loop_keyword->begin)) {
    return std::nullopt;
  }
  plan.reduced = *reduced;
  plan.keyword = *loop_keyword;
  plan.first = *first;
  plan.indent = body.code.Indent(loop_keyword->path, loop_keyword->begin);
  return plan;
}

}  // namespace

void FindPartialSums(const Body& body, MoveSet& moves) {
  for (const clang::ForStmt* loop : body.facts.loops()) {
    const auto plan = MakePlan(body, loop);
    if (!plan) continue;
    const std::string index = FreshName(
        body, plan->keyword, plan->loop.variable->getNameAsString() + "_next");
    const bool rounds = plan->reduced.kind == Reduction::kSum &&
                        plan->reduced.variable->getType()->isFloatingType();
    for (const int ways : {2, 4, 8}) {
      const auto text = Prologue(body, *plan, ways, index);
      if (!text) break;
      MoveBuilder move(body, "partial_sums", plan->keyword);
      move.Insert(plan->keyword.path, plan->keyword.begin, *text,
                  kBeforeStatement)
          .Replace(plan->first, index)
          .Copies(static_cast<int>(ways))
          .TagNest(loop);
      if (rounds) move.Inexact();
      move.AddTo(
          moves, absl::StrCat(ways),
          absl::StrCat("split ", plan->reduced.variable->getNameAsString(),
                       " at ", body.code.Where(plan->keyword), " into ", ways,
                       " partial results"));
    }
  }
}

}  // namespace reprise::evolution
