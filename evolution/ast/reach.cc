#include "evolution/ast/reach.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clang/AST/Attr.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/Mangle.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Lex/Lexer.h"

namespace reprise::evolution {
namespace {

using clang::FunctionDecl;

const FunctionDecl* PatternOf(const FunctionDecl* function) {
  const FunctionDecl* pattern = function->getTemplateInstantiationPattern();
  return pattern == nullptr ? function : pattern;
}

// Every function body of the translation unit, by what it was written as.
class BodyCollector : public clang::RecursiveASTVisitor<BodyCollector> {
 public:
  explicit BodyCollector(const Code& code) : code_(code) {}
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return false; }
  bool shouldVisitLambdaBody() const { return true; }

  bool TraverseDecl(clang::Decl* decl) {
    // Headers of the toolkit are most of a translation unit, and none of it is
    // the user's.
    if (decl != nullptr && decl->getDeclContext() != nullptr &&
        decl->getDeclContext()->isTranslationUnit() &&
        code_.sources().isInSystemHeader(decl->getLocation())) {
      return true;
    }
    return RecursiveASTVisitor::TraverseDecl(decl);
  }

  bool VisitFunctionDecl(FunctionDecl* function) {
    if (!function->doesThisDeclarationHaveABody()) return true;
    if (!code_.OfUser(function->getLocation())) return true;
    const FunctionDecl* pattern = PatternOf(function);
    if (!seen_.insert(function).second) return true;
    if (function->isDependentContext()) return true;
    bodies_[pattern].push_back(function);
    all_.push_back(function);
    return true;
  }

  const std::vector<const FunctionDecl*>& Of(const FunctionDecl* pattern) {
    return bodies_[pattern];
  }
  const std::vector<const FunctionDecl*>& all() const { return all_; }

 private:
  const Code& code_;
  std::set<const FunctionDecl*> seen_;
  std::map<const FunctionDecl*, std::vector<const FunctionDecl*>> bodies_;
  std::vector<const FunctionDecl*> all_;
};

// The functions, variables and types that a body names.
class NameCollector : public clang::RecursiveASTVisitor<NameCollector> {
 public:
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return true; }

  bool VisitDeclRefExpr(clang::DeclRefExpr* ref) {
    Add(ref->getDecl());
    return true;
  }
  bool VisitMemberExpr(clang::MemberExpr* member) {
    Add(member->getMemberDecl());
    return true;
  }
  bool VisitCXXConstructExpr(clang::CXXConstructExpr* construct) {
    Add(construct->getConstructor());
    return true;
  }
  bool VisitExpr(clang::Expr* expr) {
    AddType(expr->getType());
    return true;
  }
  bool VisitVarDecl(clang::VarDecl* variable) {
    AddType(variable->getType());
    return true;
  }
  bool VisitTypeLoc(clang::TypeLoc type) {
    AddType(type.getType());
    return true;
  }

  std::vector<const FunctionDecl*> functions;
  std::vector<const clang::VarDecl*> variables;
  std::vector<const clang::TagDecl*> types;

 private:
  void Add(const clang::ValueDecl* decl) {
    if (const auto* function = llvm::dyn_cast<FunctionDecl>(decl)) {
      functions.push_back(function);
    } else if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(decl)) {
      if (!variable->isLocalVarDeclOrParm()) variables.push_back(variable);
    } else if (const auto* constant =
                   llvm::dyn_cast<clang::EnumConstantDecl>(decl)) {
      AddType(constant->getType());
    }
  }

  void AddType(clang::QualType type) {
    if (type.isNull()) return;
    while (true) {
      if (const clang::Type* pointee =
              type->getPointeeType().getTypePtrOrNull();
          pointee != nullptr) {
        type = type->getPointeeType();
      } else if (const clang::ArrayType* array = type->getAsArrayTypeUnsafe()) {
        type = array->getElementType();
      } else {
        break;
      }
    }
    if (const clang::TagDecl* tag = type->getAsTagDecl()) types.push_back(tag);
  }
};

class Finder {
 public:
  Finder(const Parsed& parsed, const Code& code)
      : parsed_(parsed), code_(code), bodies_(code) {}

  absl::StatusOr<Reach> Find(const std::string& symbol) {
    bodies_.TraverseDecl(parsed_.ast.getTranslationUnitDecl());
    const FunctionDecl* kernel = Kernel(symbol);
    if (kernel == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("source: got no definition of kernel ", symbol,
                       " in the user's files, expected one in its main "
                       "translation unit"));
    }
    Visit(kernel, RegionKind::kKernel);
    while (!queue_.empty()) {
      const FunctionDecl* function = queue_.front();
      queue_.pop_front();
      Follow(function);
    }
    AddMacros();
    return std::move(reach_);
  }

 private:
  const FunctionDecl* Kernel(const std::string& symbol) {
    const std::unique_ptr<clang::MangleContext> mangler(
        parsed_.ast.createMangleContext());
    const FunctionDecl* close = nullptr;
    for (const FunctionDecl* function : bodies_.all()) {
      if (!function->hasAttr<clang::CUDAGlobalAttr>()) continue;
      std::string name = function->getNameAsString();
      if (mangler->shouldMangleDeclName(function)) {
        name.clear();
        llvm::raw_string_ostream stream(name);
        mangler->mangleName(
            clang::GlobalDecl(function, clang::KernelReferenceKind::Kernel),
            stream);
      }
      if (name == symbol) return function;
      // Under -rdc, static kernels get a suffix of their own.
      const std::string_view rest =
          std::string_view(symbol).substr(std::min(name.size(), symbol.size()));
      if (symbol.rfind(name, 0) == 0 &&
          (rest.rfind("__static__", 0) == 0 || rest[0] == '.')) {
        close = function;
      }
    }
    return close;
  }

  void Visit(const FunctionDecl* function, RegionKind kind) {
    const FunctionDecl* pattern = PatternOf(function);
    if (pattern->isImplicit() || !code_.OfUser(pattern->getLocation())) return;
    if (!visited_.insert(function).second) return;
    queue_.push_back(function);
    const auto [known, first] =
        reached_.try_emplace(pattern, reach_.functions.size());
    if (first) {
      AddRegion(pattern, kind, function->getNameAsString());
      reach_.functions.push_back(
          {pattern, bodies_.Of(pattern), kind == RegionKind::kKernel});
    }
    // Lambdas' bodies are found only here.
    auto& bodies = reach_.functions[known->second].bodies;
    if (std::find(bodies.begin(), bodies.end(), function) == bodies.end()) {
      bodies.push_back(function);
    }
  }

  void Follow(const FunctionDecl* function) {
    NameCollector names;
    names.TraverseDecl(const_cast<FunctionDecl*>(function));
    for (const FunctionDecl* callee : names.functions) {
      const FunctionDecl* definition = nullptr;
      if (callee->hasBody(definition)) {
        Visit(definition, RegionKind::kDeviceFunction);
      }
    }
    for (const clang::VarDecl* variable : names.variables) {
      const clang::VarDecl* definition = variable->getInitializingDeclaration();
      // Memory that host code fills is not the kernel's to change.
      if (definition == nullptr ||
          !(definition->isConstexpr() ||
            (definition->getType().isConstQualified() &&
             !definition->hasAttr<clang::CUDAConstantAttr>() &&
             !definition->hasAttr<clang::CUDADeviceAttr>()))) {
        continue;
      }
      AddRegion(definition, RegionKind::kConstant,
                definition->getNameAsString());
    }
    for (const clang::TagDecl* tag : names.types) AddTypeRegion(tag);
  }

  void AddTypeRegion(const clang::TagDecl* tag) {
    const clang::TagDecl* pattern = tag;
    if (const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(tag)) {
      if (record->isLambda()) return;
      if (const auto* from = record->getTemplateInstantiationPattern()) {
        pattern = from;
      }
    }
    if (const clang::TagDecl* definition = pattern->getDefinition()) {
      AddRegion(definition, RegionKind::kType, definition->getNameAsString());
    }
  }

  // A declaration's text from its template header and attributes on.
  void AddRegion(const clang::Decl* decl, RegionKind kind,
                 const std::string& name) {
    if (!regions_.insert(decl).second) return;
    std::optional<Span> span;
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(decl);
    if (method != nullptr && method->getParent()->isLambda()) {
      span = code_.Expanded(method->getBody()->getSourceRange());
    } else {
      const clang::Decl* whole = decl;
      if (const clang::TemplateDecl* described = decl->getDescribedTemplate()) {
        whole = described;
      }
      span = code_.Expanded(whole->getSourceRange());
      for (const clang::Attr* attribute : decl->attrs()) {
        const auto at = code_.Expanded(attribute->getRange());
        if (span && at && at->path == span->path && at->begin < span->begin) {
          // From the start of its line: the attribute's own syntax, too.
          const std::string_view text = code_.File(span->path);
          const size_t newline = text.substr(0, at->begin).rfind('\n');
          span->begin = newline == std::string_view::npos ? 0 : newline + 1;
        }
      }
    }
    if (!span) return;
    reach_.regions.push_back({span->path, span->begin, span->end, kind, name});
  }

  bool InRegion(const Span& span) const {
    for (const Region& region : reach_.regions) {
      if (region.path == span.path && region.begin <= span.begin &&
          span.begin < region.end) {
        return true;
      }
    }
    return false;
  }

  void AddMacros() {
    std::set<const clang::MacroInfo*> added;
    bool grew = true;
    while (grew) {  // macros used in macros that became regions
      grew = false;
      for (const MacroUse& use : parsed_.macros) {
        if (added.count(use.macro) > 0) continue;
        const auto place = code_.Token(use.place);
        if (!place || !InRegion(*place)) continue;
        added.insert(use.macro);
        grew = true;
        const auto body = code_.Of(clang::SourceRange(
            use.macro->getDefinitionLoc(), use.macro->getDefinitionEndLoc()));
        if (!body || InRegion(*body)) continue;
        reach_.regions.push_back(
            {body->path, body->begin, body->end, RegionKind::kMacro, use.name});
      }
    }
  }

  const Parsed& parsed_;
  const Code& code_;
  BodyCollector bodies_;
  Reach reach_;
  std::deque<const FunctionDecl*> queue_;
  std::set<const FunctionDecl*> visited_;
  std::map<const FunctionDecl*, size_t> reached_;  // index in reach_
  std::set<const clang::Decl*> regions_;
};

}  // namespace

absl::StatusOr<Reach> FindReach(const Parsed& parsed, const Code& code,
                                const std::string& kernel_symbol) {
  return Finder(parsed, code).Find(kernel_symbol);
}

}  // namespace reprise::evolution
