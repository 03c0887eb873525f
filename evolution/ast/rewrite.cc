#include "evolution/ast/rewrite.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace reprise::evolution {

MoveBuilder::MoveBuilder(const Body& body, std::string kind, const Span& at)
    : body_(body) {
  move_.site =
      absl::StrCat(kind, "@", body.code.Where(at), ":", body.code.Column(at));
  move_.kind = std::move(kind);
}

MoveBuilder& MoveBuilder::Replace(const Span& span, std::string text) {
  move_.edits.push_back(
      {span.path, span.begin, span.end - span.begin, std::move(text), 0});
  return *this;
}

MoveBuilder& MoveBuilder::Insert(const std::string& path, size_t offset,
                                 std::string text, int rank) {
  move_.edits.push_back({path, offset, 0, std::move(text), rank});
  return *this;
}

MoveBuilder& MoveBuilder::Wrap(const Span& span, std::string before,
                               std::string after, int rank) {
  Insert(span.path, span.begin, std::move(before), rank);
  return Insert(span.path, span.end, std::move(after), -rank);
}

MoveBuilder& MoveBuilder::Inexact() {
  move_.inexact = true;
  return *this;
}

MoveBuilder& MoveBuilder::Copies(int copies) {
  move_.copies = copies;
  return *this;
}

MoveBuilder& MoveBuilder::Claim(std::string claim) {
  move_.claim = std::move(claim);
  return *this;
}

MoveBuilder& MoveBuilder::Tag(std::string tag) {
  move_.tags.push_back(std::move(tag));
  return *this;
}

MoveBuilder& MoveBuilder::TagNest(const clang::Stmt* stmt) {
  const clang::Stmt* nest = body_.facts.Nest(stmt);
  if (const auto span = body_.code.Token(nest->getBeginLoc())) {
    Tag(absl::StrCat("nest:", span->path, ":", span->begin));
  }
  return *this;
}

void MoveBuilder::AddTo(MoveSet& moves, const std::string& parameter,
                        std::string description) {
  Move move = move_;
  move.key =
      parameter.empty() ? move.site : absl::StrCat(move.site, "=", parameter);
  move.description = std::move(description);
  std::string key = move.key;
  moves.emplace(std::move(key), std::move(move));
}

std::string FreshName(const Body& body, const Span& site,
                      const std::string& stem) {
  const std::string_view text = body.code.File(site.path);
  const std::string first = absl::StrCat(stem, "_", body.code.Line(site));
  std::string name = first;
  for (int i = 2; text.find(name) != std::string_view::npos; ++i) {
    name = absl::StrCat(first, "_", i);
  }
  return name;
}

const clang::CompoundStmt* StatementList(const Body& body,
                                         const clang::Stmt* stmt,
                                         const clang::Stmt** whole) {
  const clang::Stmt* parent = body.facts.Parent(stmt);
  while (llvm::isa_and_nonnull<clang::AttributedStmt>(parent)) {
    stmt = parent;
    parent = body.facts.Parent(stmt);
  }
  *whole = stmt;
  return llvm::dyn_cast_or_null<clang::CompoundStmt>(parent);
}

namespace {

// The step of i += step, i++, ++i or i = i + step.
bool FindStep(const clang::Expr* increment, const clang::VarDecl* variable,
              const clang::Expr** step) {
  *step = nullptr;
  if (increment == nullptr) return false;
  increment = increment->IgnoreParenImpCasts();
  if (const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(increment)) {
    return unary->isIncrementOp() &&
           AsVariable(unary->getSubExpr()) == variable;
  }
  const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(increment);
  if (binary == nullptr || AsVariable(binary->getLHS()) != variable) {
    return false;
  }
  if (binary->getOpcode() == clang::BO_AddAssign) {
    *step = binary->getRHS();
    return true;
  }
  const auto* sum = llvm::dyn_cast<clang::BinaryOperator>(
      binary->getRHS()->IgnoreParenImpCasts());
  if (binary->getOpcode() != clang::BO_Assign || sum == nullptr ||
      sum->getOpcode() != clang::BO_Add ||
      AsVariable(sum->getLHS()) != variable) {
    return false;
  }
  *step = sum->getRHS();
  return true;
}

}  // namespace

std::optional<CountedLoop> AsCountedLoop(const Body& body,
                                         const clang::ForStmt* loop) {
  CountedLoop counted;
  counted.loop = loop;
  const auto* declaration =
      llvm::dyn_cast_or_null<clang::DeclStmt>(loop->getInit());
  if (declaration == nullptr || !declaration->isSingleDecl()) {
    return std::nullopt;
  }
  counted.variable =
      llvm::dyn_cast<clang::VarDecl>(declaration->getSingleDecl());
  if (counted.variable == nullptr || !counted.variable->hasInit() ||
      counted.variable->getInitStyle() != clang::VarDecl::CInit ||
      !counted.variable->getType()->isIntegerType()) {
    return std::nullopt;
  }
  counted.first = counted.variable->getInit();
  const auto* condition = llvm::dyn_cast_or_null<clang::BinaryOperator>(
      loop->getCond() == nullptr ? nullptr
                                 : loop->getCond()->IgnoreParenImpCasts());
  if (condition == nullptr ||
      (condition->getOpcode() != clang::BO_LT &&
       condition->getOpcode() != clang::BO_LE) ||
      AsVariable(condition->getLHS()) != counted.variable) {
    return std::nullopt;
  }
  counted.comparison = condition->getOpcode();
  counted.bound = condition->getRHS();
  if (!FindStep(loop->getInc(), counted.variable, &counted.step)) {
    return std::nullopt;
  }
  const Facts& facts = body.facts;
  for (const VariableUse& use : facts.UsesOf(counted.variable)) {
    if (use.kind == UseKind::kEscape) return std::nullopt;
  }
  if (facts.EffectsOf(loop->getBody()).written.count(counted.variable) > 0 ||
      !facts.IsInvariant(counted.bound, loop) ||
      (counted.step != nullptr && !facts.IsInvariant(counted.step, loop))) {
    return std::nullopt;
  }
  return counted;
}

std::vector<const clang::Stmt*> Statements(const clang::Stmt* body) {
  const auto* compound = llvm::dyn_cast_or_null<clang::CompoundStmt>(body);
  if (compound == nullptr) return {body};
  return {compound->body_begin(), compound->body_end()};
}

}  // namespace reprise::evolution
