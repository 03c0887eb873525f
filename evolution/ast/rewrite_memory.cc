// Rewrites of parameters, loads and shared arrays.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clang/AST/Attr.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/TypeLoc.h"
#include "evolution/ast/rewrite.h"

namespace reprise::evolution {
namespace {

bool WrittenAsPointer(const clang::ParmVarDecl* parameter) {
  // `float a[]` adjusts to a pointer, but takes no qualifier after the '*'.
  return parameter->getType()->isPointerType() &&
         !parameter->getOriginalType()->isArrayType() &&
         !parameter->getOriginalType()->isFunctionType();
}

bool HasFastReadOnlyLoad(clang::QualType type) {
  const auto* builtin = type.getCanonicalType()->getAs<clang::BuiltinType>();
  if (builtin == nullptr || type.isVolatileQualified()) return false;
  switch (builtin->getKind()) {
    case clang::BuiltinType::Char_S:
    case clang::BuiltinType::Char_U:
    case clang::BuiltinType::SChar:
    case clang::BuiltinType::UChar:
    case clang::BuiltinType::Short:
    case clang::BuiltinType::UShort:
    case clang::BuiltinType::Int:
    case clang::BuiltinType::UInt:
    case clang::BuiltinType::Long:
    case clang::BuiltinType::ULong:
    case clang::BuiltinType::LongLong:
    case clang::BuiltinType::ULongLong:
    case clang::BuiltinType::Float:
    case clang::BuiltinType::Double:
      return true;
    default:
      return false;
  }
}

// An extent that stays one number when " + 1" is written behind it.
bool TakesSum(const clang::Expr* extent) {
  extent = extent->IgnoreImpCasts();
  if (const auto* constant = llvm::dyn_cast<clang::ConstantExpr>(extent)) {
    extent = constant->getSubExpr()->IgnoreImpCasts();
  }
  if (const auto* replaced =
          llvm::dyn_cast<clang::SubstNonTypeTemplateParmExpr>(extent)) {
    return replaced->getBeginLoc().isFileID();
  }
  if (const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(extent)) {
    return binary->isAdditiveOp() || binary->isMultiplicativeOp();
  }
  return llvm::isa<clang::IntegerLiteral>(extent) ||
         llvm::isa<clang::DeclRefExpr>(extent) ||
         llvm::isa<clang::ParenExpr>(extent);
}

// Whether every use of an array goes through all its `dimensions`, so that its
// layout shows nowhere.
bool LayoutIsPrivate(const Body& body, const clang::VarDecl* array,
                     int dimensions) {
  for (const VariableUse& use : body.facts.UsesOf(array)) {
    const clang::Stmt* node = use.ref;
    for (int i = 0; i < dimensions; ++i) {
      const clang::Stmt* parent = body.facts.RealParent(node);
      const auto* element =
          llvm::dyn_cast_or_null<clang::ArraySubscriptExpr>(parent);
      if (element == nullptr ||
          element->getBase()->IgnoreParenImpCasts() != node) {
        return false;
      }
      node = element;
    }
    const clang::Stmt* user = body.facts.RealParent(node);
    const auto* address = llvm::dyn_cast_or_null<clang::UnaryOperator>(user);
    if (address == nullptr || address->getOpcode() != clang::UO_AddrOf) {
      continue;
    }
    // atomicAdd(&t[i][j], x) reaches one element.
    const auto* call =
        llvm::dyn_cast_or_null<clang::CallExpr>(body.facts.RealParent(address));
    const clang::FunctionDecl* callee =
        call == nullptr ? nullptr : call->getDirectCallee();
    if (callee == nullptr || !callee->getDeclName().isIdentifier() ||
        !callee->getName().starts_with("atomic")) {
      return false;
    }
  }
  return true;
}

}  // namespace

void FindRestrict(const Body& body, MoveSet& moves) {
  if (!body.kernel) return;
  std::vector<std::pair<std::string, Span>> names;
  int pointers = 0;
  for (const clang::ParmVarDecl* parameter : body.function->parameters()) {
    if (!parameter->getType()->isPointerType()) continue;
    ++pointers;
    if (parameter->getType().isRestrictQualified() ||
        !WrittenAsPointer(parameter) || parameter->getName().empty()) {
      continue;
    }
    const auto name = body.code.Token(parameter->getLocation());
    if (!name || body.code.Text(*name) != parameter->getNameAsString())
      continue;
    names.emplace_back(parameter->getName().str(), *name);
  }
  if (pointers < 2 || names.empty()) return;
  const std::string function = body.function->getNameAsString();
  MoveBuilder all(body, "restrict", names.front().second);
  all.Claim("the memory behind the kernel's pointers does not overlap");
  for (const auto& [name, span] : names) {
    MoveBuilder one(body, "restrict", span);
    one.Insert(span.path, span.begin, "__restrict__ ", kQualifier)
        .Tag(absl::StrCat("restrict:", name))
        .Claim(absl::StrCat("what ", name,
                            " points to is reached through no other pointer"));
    if (names.size() > 1) {
      one.AddTo(moves, name,
                absl::StrCat("declare parameter ", name, " of ", function,
                             " __restrict__"));
    }
    all.Insert(span.path, span.begin, "__restrict__ ", kQualifier)
        .Tag(absl::StrCat("restrict:", name));
  }
  all.AddTo(moves, "all",
            absl::StrCat("declare the pointer parameters of ", function,
                         " __restrict__"));
}

void FindReadOnlyLoads(const Body& body, MoveSet& moves) {
  if (!body.kernel || body.context.device_kind == "cpu") return;
  for (const clang::ParmVarDecl* parameter : body.function->parameters()) {
    if (!parameter->getType()->isPointerType() ||
        !HasFastReadOnlyLoad(parameter->getType()->getPointeeType()) ||
        !body.facts.IsNeverModified(parameter)) {
      continue;
    }
    const auto name = body.code.Token(parameter->getLocation());
    if (!name) continue;
    MoveBuilder move(body, "ldg", *name);
    bool only_reads = true;
    for (const PointeeUse& use : body.facts.PointeeUsesOf(parameter)) {
      only_reads &= use.element != nullptr && use.kind == UseKind::kRead;
      if (!only_reads) break;
      if (const auto span = body.code.Of(use.element)) {
        move.Wrap(*span, "__ldg(&", ")", kWrapInner);
      }
    }
    if (!only_reads || move.empty()) continue;
    move.Claim(absl::StrCat("what ", parameter->getName().str(),
                            " points to is not written while the kernel runs"))
        .AddTo(moves, parameter->getName().str(),
               absl::StrCat("load ", parameter->getName().str(),
                            " through the read-only cache"));
  }
}

void FindLaunchBounds(const Body& body, MoveSet& moves) {
  const unsigned threads = body.context.threads_per_block;
  if (!body.kernel || body.context.device_kind == "cpu" || threads == 0 ||
      body.function->hasAttr<clang::CUDALaunchBoundsAttr>() ||
      body.function->getQualifier()) {
    return;
  }
  const auto name = body.code.Token(body.function->getLocation());
  if (!name ||
      body.code.Text(*name) != body.function->getDeclName().getAsString()) {
    return;
  }
  for (const unsigned blocks : {0u, 2u, 3u, 4u, 6u, 8u}) {
    if (blocks * threads > 2048) break;
    const std::string bounds = blocks == 0
                                   ? absl::StrCat(threads)
                                   : absl::StrCat(threads, ", ", blocks);
    MoveBuilder(body, "launch_bounds", *name)
        .Insert(name->path, name->begin,
                absl::StrCat("__launch_bounds__(", bounds, ") "), kQualifier)
        .Claim(absl::StrCat("every launch has at most ", threads,
                            " threads in a block"))
        .AddTo(moves, absl::StrCat(threads, "x", blocks),
               absl::StrCat("declare ", body.function->getNameAsString(),
                            " __launch_bounds__(", bounds, ")"));
  }
}

void FindSharedPadding(const Body& body, MoveSet& moves) {
  for (const clang::VarDecl* array : body.facts.variables()) {
    if (!array->hasAttr<clang::CUDASharedAttr>() ||
        array->getTypeSourceInfo() == nullptr) {
      continue;
    }
    clang::TypeLoc type = array->getTypeSourceInfo()->getTypeLoc();
    clang::ArrayTypeLoc innermost;
    int dimensions = 0;
    while (auto dimension = type.getAs<clang::ArrayTypeLoc>()) {
      innermost = dimension;
      ++dimensions;
      type = dimension.getElementLoc();
    }
    if (dimensions < 2 || innermost.getSizeExpr() == nullptr) continue;
    const clang::ConstantArrayType* row = nullptr;
    clang::QualType element = array->getType();
    while (const auto* next =
               body.facts.ast().getAsConstantArrayType(element)) {
      row = next;
      element = next->getElementType();
    }
    // Rows of a power of two meet the same banks.
    if (row == nullptr) continue;
    const uint64_t extent = row->getSize().getZExtValue();
    if (extent < 16 || extent % 16 != 0) continue;
    const clang::Expr* size = innermost.getSizeExpr();
    const auto span = body.code.OfMaybeMacro(size->getSourceRange());
    if (!span || !TakesSum(size) || !LayoutIsPrivate(body, array, dimensions)) {
      continue;
    }
    for (const int padding : {1, 2, 4}) {
      MoveBuilder(body, "shared_pad", *span)
          .Insert(span->path, span->end, absl::StrCat(" + ", padding),
                  -kWrapOuter)
          .AddTo(moves, absl::StrCat(padding),
                 absl::StrCat("pad the rows of shared array ",
                              array->getNameAsString(), " by ", padding,
                              padding == 1 ? " element" : " elements"));
    }
  }
}

void FindAlignment(const Body& body, MoveSet& moves) {
  if (!body.kernel) return;
  const auto brace = body.code.Token(body.function->getBody()->getBeginLoc());
  if (!brace || body.code.Text(*brace) != "{") return;
  // As the first statement, or one step into the function.
  std::string indent = "  ";
  const auto* statements_of =
      llvm::dyn_cast<clang::CompoundStmt>(body.function->getBody());
  if (statements_of != nullptr && !statements_of->body_empty()) {
    const auto first =
        body.code.Token(statements_of->body_front()->getBeginLoc());
    if (first && body.code.FirstInLine(first->path, first->begin)) {
      indent = body.code.Indent(first->path, first->begin);
    }
  }
  std::string statements;
  for (const clang::ParmVarDecl* parameter : body.function->parameters()) {
    const clang::QualType type = parameter->getType();
    if (!type->isPointerType() || type.isConstQualified() ||
        parameter->getName().empty() || !WrittenAsPointer(parameter)) {
      continue;
    }
    const clang::QualType pointee = type->getPointeeType();
    if (!pointee->isBuiltinType() || pointee->isVoidType() ||
        pointee.isVolatileQualified() ||
        pointee->getAs<clang::TypedefType>() != nullptr ||
        pointee->getAs<clang::SubstTemplateTypeParmType>() != nullptr) {
      continue;
    }
    const std::string name = parameter->getName().str();
    absl::StrAppend(&statements, "\n", indent, name, " = static_cast<",
                    pointee.getAsString(body.facts.ast().getPrintingPolicy()),
                    "*>(__builtin_assume_aligned(", name, ", 16));");
  }
  if (statements.empty()) return;
  MoveBuilder(body, "assume_aligned", *brace)
      .Insert(brace->path, brace->end, statements, kBeforeStatement)
      .Claim("the kernel's pointers are multiples of 16")
      .AddTo(moves, "16",
             absl::StrCat("state that the pointer parameters of ",
                          body.function->getNameAsString(),
                          " are aligned to 16 bytes"));
}

}  // namespace reprise::evolution
