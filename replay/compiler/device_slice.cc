#include "replay/compiler/device_slice.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clang/AST/ASTConsumer.h"
#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/ExprConcepts.h"
#include "clang/AST/Mangle.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "clang/Lex/Lexer.h"
#include "clang/Lex/PPCallbacks.h"
#include "clang/Lex/Preprocessor.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/clang_driver.h"
#include "replay/compiler/kernel_symbols.h"
#include "replay/compiler/nvrtc_headers.h"
#include "replay/compiler/prefix_pch.h"
#include "replay/compiler/source_files.h"
#include "replay/compiler/source_tree.h"

namespace reprise {
namespace {

// A #include in a file of the user that leads out of them.
struct SystemInclude {
  unsigned begin = 0;  // of the hash sign
  const clang::FileEntry* file = nullptr;
  bool toolkit = false;
  bool used = false;
};

using Includes = std::map<std::pair<clang::FileID, unsigned>, SystemInclude>;

bool IsUsers(const clang::SourceManager& sources, clang::SourceLocation where) {
  if (where.isInvalid()) return false;
  const clang::SourceLocation place = sources.getExpansionLoc(where);
  if (sources.isInSystemHeader(place)) return false;
  const auto entry = sources.getFileEntryRefForID(sources.getFileID(place));
  return entry && !IsToolchainHeader(entry->getName().str());
}

class IncludeFinder : public clang::PPCallbacks {
 public:
  IncludeFinder(const clang::SourceManager& sources, Includes& includes)
      : sources_(sources), includes_(includes) {}

  void InclusionDirective(clang::SourceLocation hash, const clang::Token&,
                          llvm::StringRef, bool, clang::CharSourceRange,
                          clang::OptionalFileEntryRef file, llvm::StringRef,
                          llvm::StringRef, const clang::Module*, bool,
                          clang::SrcMgr::CharacteristicKind kind) override {
    if (!file || !IsUsers(sources_, hash)) return;
    const std::string name = file->getName().str();
    if (!clang::SrcMgr::isSystem(kind) && !IsToolchainHeader(name)) return;
    const auto [id, offset] = sources_.getDecomposedLoc(hash);
    SystemInclude& include =
        includes_[{id, sources_.getLineNumber(id, offset)}];
    include.begin = offset;
    include.file = &file->getFileEntry();
    include.toolkit = !absl::StrContains(name, "/usr/include/") &&
                      !absl::StrContains(name, "/usr/lib/gcc/") &&
                      !absl::StrContains(name, "/include/c++/") &&
                      !absl::StrContains(name, "/lib/clang/");
  }

 private:
  const clang::SourceManager& sources_;
  Includes& includes_;
};

// What one declaration names. Members that are for the host alone are left to
// whoever names them.
class NameVisitor : public clang::RecursiveASTVisitor<NameVisitor> {
 public:
  explicit NameVisitor(const clang::Decl* root) : root_(root) {}
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return true; }

  bool TraverseDecl(clang::Decl* decl) {
    if (decl != nullptr && decl != root_ && IsHostMember(decl)) return true;
    return RecursiveASTVisitor::TraverseDecl(decl);
  }

  static bool IsHostMember(clang::Decl* decl) {
    const auto* described = llvm::dyn_cast<clang::FunctionTemplateDecl>(decl);
    clang::Decl* function =
        described != nullptr ? described->getTemplatedDecl() : decl;
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(function);
    return method != nullptr && !method->isImplicit() && !method->isVirtual() &&
           !method->isDefaulted() && !method->isDeleted() &&
           !method->getParent()->isLambda() && IsHostOnly(*function);
  }

  bool VisitDeclRefExpr(clang::DeclRefExpr* ref) {
    Add(ref->getDecl());
    Add(ref->getFoundDecl());
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
  bool VisitOverloadExpr(clang::OverloadExpr* overload) {
    for (const clang::NamedDecl* decl : overload->decls()) Add(decl);
    return true;
  }
  bool VisitConceptSpecializationExpr(clang::ConceptSpecializationExpr* expr) {
    Add(expr->getNamedConcept());
    return true;
  }
  bool VisitExpr(clang::Expr* expr) {
    AddType(expr->getType());
    return true;
  }
  bool VisitValueDecl(clang::ValueDecl* decl) {
    AddType(decl->getType());
    return true;
  }
  bool VisitFunctionDecl(clang::FunctionDecl* function) {
    if (const auto* list = function->getTemplateSpecializationArgs()) {
      for (const clang::TemplateArgument& argument : list->asArray())
        AddArgument(argument);
    }
    return true;
  }
  bool VisitTypeLoc(clang::TypeLoc type) {
    AddType(type.getType());
    return true;
  }
  bool TraverseTemplateArgument(const clang::TemplateArgument& argument) {
    AddArgument(argument);
    return RecursiveASTVisitor::TraverseTemplateArgument(argument);
  }
  bool TraverseTemplateArgumentLoc(const clang::TemplateArgumentLoc& argument) {
    AddArgument(argument.getArgument());
    return RecursiveASTVisitor::TraverseTemplateArgumentLoc(argument);
  }

  const std::set<const clang::Decl*>& names() const { return names_; }

 private:
  void Add(const clang::Decl* decl) {
    if (decl != nullptr) names_.insert(decl);
  }
  void AddArgument(const clang::TemplateArgument& argument) {
    if (argument.getKind() == clang::TemplateArgument::Type)
      AddType(argument.getAsType());
    if (argument.getKind() == clang::TemplateArgument::Declaration)
      Add(argument.getAsDecl());
    if (argument.getKind() == clang::TemplateArgument::Template)
      Add(argument.getAsTemplate().getAsTemplateDecl());
    if (argument.getKind() == clang::TemplateArgument::Pack) {
      for (const clang::TemplateArgument& part : argument.pack_elements())
        AddArgument(part);
    }
  }
  // Names on the way to the type itself, and what it points to.
  void AddType(clang::QualType type) {
    while (!type.isNull()) {
      const clang::Type* plain = type.getTypePtr();
      if (!types_.insert(plain).second) return;
      if (const auto* alias = llvm::dyn_cast<clang::TypedefType>(plain))
        Add(alias->getDecl());
      if (const auto* used = llvm::dyn_cast<clang::UsingType>(plain))
        Add(used->getDecl());
      if (const auto* special =
              llvm::dyn_cast<clang::TemplateSpecializationType>(plain)) {
        Add(special->getTemplateName().getAsTemplateDecl());
        for (const clang::TemplateArgument& argument :
             special->template_arguments())
          AddArgument(argument);
      }
      if (const clang::TagDecl* tag = plain->getAsTagDecl()) {
        Add(tag);
        if (const auto* record =
                llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(tag)) {
          for (const clang::TemplateArgument& argument :
               record->getTemplateArgs().asArray())
            AddArgument(argument);
        }
      }
      if (const auto* function = plain->getAs<clang::FunctionProtoType>()) {
        AddType(function->getReturnType());
        for (clang::QualType parameter : function->param_types())
          AddType(parameter);
        return;
      }
      clang::QualType next = plain->getPointeeType();
      if (next.isNull() && plain->getAsArrayTypeUnsafe() != nullptr)
        next = plain->getAsArrayTypeUnsafe()->getElementType();
      if (next.isNull()) {
        const clang::QualType shorter =
            plain->getLocallyUnqualifiedSingleStepDesugaredType();
        if (shorter.getTypePtr() != plain) next = shorter;
      }
      type = next;
    }
  }

  const clang::Decl* const root_;
  std::set<const clang::Decl*> names_;
  std::set<const clang::Type*> types_;
};

// A piece of a user's file that stays or goes as a whole.
struct Item {
  clang::FileID file;
  unsigned begin = 0;
  unsigned end = 0;
  std::vector<clang::Decl*> decls;
  bool kept = false;
};

class Slicer {
 public:
  Slicer(clang::ASTContext& context, Includes& includes,
         const SliceRoots& roots)
      : context_(context),
        sources_(context.getSourceManager()),
        includes_(includes),
        roots_(roots) {}

  absl::StatusOr<DeviceSlice> Run(const std::string& directory) {
    Collect(*context_.getTranslationUnitDecl());
    MergeItems();
    if (!KeepRoots())
      return absl::NotFoundError("no such kernel is in the user's files");
    do {
      Follow();
    } while (KeepCompanions());
    KeepNamespaceNames();
    Follow();
    return Result(directory);
  }

 private:
  // --- Items.

  void Collect(clang::DeclContext& context) {
    for (clang::Decl* decl : context.decls()) {
      if (decl->isImplicit() || !IsUsers(sources_, decl->getBeginLoc()))
        continue;
      auto* linkage = llvm::dyn_cast<clang::LinkageSpecDecl>(decl);
      if (linkage != nullptr && !linkage->hasBraces()) {
        AddItem(*linkage, {linkage->decls_begin(), linkage->decls_end()});
      } else if (llvm::isa<clang::NamespaceDecl, clang::LinkageSpecDecl>(
                     decl)) {
        Collect(*llvm::cast<clang::DeclContext>(decl));
      } else {
        AddItem(*decl, {decl});
      }
    }
  }

  void AddItem(clang::Decl& whole, std::vector<clang::Decl*> decls) {
    Item item;
    if (!Range(whole, item)) return;
    item.decls = std::move(decls);
    items_.push_back(std::move(item));
  }

  // The declaration's text, with attributes in front and the semicolon after.
  bool Range(clang::Decl& decl, Item& item) const {
    clang::SourceLocation from = sources_.getExpansionLoc(decl.getBeginLoc());
    const clang::SourceLocation last =
        sources_.getExpansionRange(decl.getEndLoc()).getEnd();
    const clang::Decl* attributed = &decl;
    if (const auto* described = llvm::dyn_cast<clang::TemplateDecl>(&decl);
        described != nullptr && described->getTemplatedDecl() != nullptr)
      attributed = described->getTemplatedDecl();
    for (const clang::Attr* attribute : attributed->attrs()) {
      if (attribute->isImplicit() || attribute->isInherited()) continue;
      const clang::SourceLocation at =
          sources_.getExpansionLoc(attribute->getLocation());
      if (at.isValid() && sources_.getFileID(at) == sources_.getFileID(from) &&
          at < from)
        from = at;
    }
    const clang::SourceLocation end = clang::Lexer::getLocForEndOfToken(
        last, 0, sources_, context_.getLangOpts());
    if (from.isInvalid() || end.isInvalid()) return false;
    const auto [file, begin] = sources_.getDecomposedLoc(from);
    const auto [end_file, end_offset] = sources_.getDecomposedLoc(end);
    if (file != end_file || end_offset < begin) return false;
    const llvm::StringRef text = sources_.getBufferData(file);
    item.file = file;
    item.begin =
        static_cast<unsigned>(BeforeAttributeSyntax(text.substr(0, begin)));
    item.end = static_cast<unsigned>(AfterSemicolon(text, end_offset));
    return true;
  }

  static size_t BeforeAttributeSyntax(llvm::StringRef text) {
    for (bool found = true; found;) {
      found = false;
      const llvm::StringRef trimmed = text.rtrim();
      for (llvm::StringRef syntax : {"[[", "__attribute__((", "__managed__"}) {
        if (!trimmed.ends_with(syntax)) continue;
        text = trimmed.drop_back(syntax.size());
        found = true;
      }
    }
    return text.size();
  }

  static size_t AfterSemicolon(llvm::StringRef text, size_t at) {
    const size_t next = text.find_first_not_of(" \t\r\n", at);
    return next != llvm::StringRef::npos && text[next] == ';' ? next + 1 : at;
  }

  // Declarations that share text ("int a, b;", one macro) are one item.
  void MergeItems() {
    std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
      return std::tuple(a.file, a.begin, a.end) <
             std::tuple(b.file, b.begin, b.end);
    });
    std::vector<Item> merged;
    for (Item& item : items_) {
      if (!merged.empty() && merged.back().file == item.file &&
          item.begin < merged.back().end) {
        merged.back().end = std::max(merged.back().end, item.end);
        merged.back().decls.insert(merged.back().decls.end(),
                                   item.decls.begin(), item.decls.end());
      } else {
        merged.push_back(std::move(item));
      }
    }
    items_ = std::move(merged);
  }

  Item* ItemAt(clang::SourceLocation where) {
    if (where.isInvalid()) return nullptr;
    const auto [file, offset] =
        sources_.getDecomposedLoc(sources_.getExpansionLoc(where));
    for (Item& item : items_) {
      if (item.file == file && item.begin <= offset && offset < item.end)
        return &item;
    }
    return nullptr;
  }

  // --- What stays.

  bool KeepRoots() {
    bool any = false;
    for (Item& item : items_) {
      for (clang::Decl* decl : item.decls) {
        if (IsWantedKernel(*decl)) {
          Keep(item);
          any = true;
        } else if ((roots_.variables && IsDeviceVariable(item, *decl)) ||
                   (roots_.functions && IsDeviceFunction(*decl))) {
          Keep(item);
          any = any || roots_.functions;
        }
      }
    }
    return any;
  }

  bool IsDeviceVariable(const Item& item, const clang::Decl& decl) const {
    return llvm::isa<clang::VarDecl>(decl) &&
           (decl.hasAttr<clang::CUDADeviceAttr>() ||
            decl.hasAttr<clang::CUDAConstantAttr>() || IsManaged(item));
  }

  // Clang does not know that attribute in CUDA, so only the text tells.
  bool IsManaged(const Item& item) const {
    return sources_.getBufferData(item.file)
        .substr(item.begin, item.end - item.begin)
        .contains("__managed__");
  }

  static bool IsDeviceFunction(clang::Decl& decl) {
    const auto* function = llvm::dyn_cast<clang::FunctionDecl>(&decl);
    return function != nullptr && !IsHostOnly(decl) &&
           !function->isConstexpr() &&
           !function->hasAttr<clang::CUDAGlobalAttr>();
  }

  // By name alone where it is a template.
  bool IsWantedKernel(clang::Decl& decl) const {
    const auto* described = llvm::dyn_cast<clang::FunctionTemplateDecl>(&decl);
    const auto* function = described != nullptr
                               ? described->getTemplatedDecl()
                               : llvm::dyn_cast<clang::FunctionDecl>(&decl);
    if (function == nullptr || !function->hasAttr<clang::CUDAGlobalAttr>() ||
        !function->doesThisDeclarationHaveABody())
      return false;
    if (roots_.kernels.empty()) return true;
    const std::string name =
        QualifiedKernelName(function->getQualifiedNameAsString());
    return std::any_of(roots_.kernels.begin(), roots_.kernels.end(),
                       [&](const std::string& kernel) {
                         return QualifiedKernelName(kernel) == name;
                       });
  }

  void Keep(Item& item) {
    if (item.kept) return;
    item.kept = true;
    for (clang::Decl* decl : item.decls) queue_.push_back(decl);
  }

  void Follow() {
    while (!queue_.empty()) {
      clang::Decl* decl = queue_.front();
      queue_.pop_front();
      NameVisitor names(decl);
      names.TraverseDecl(decl);
      for (const clang::Decl* name : names.names()) Reach(*name);
    }
  }

  // A lambda's text is in what holds it.
  static bool IsOfLambda(const clang::Decl& decl) {
    const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(&decl);
    if (record == nullptr)
      record = llvm::dyn_cast<clang::CXXRecordDecl>(decl.getDeclContext());
    return record != nullptr && record->isLambda();
  }

  void Reach(const clang::Decl& decl) {
    if (IsOfLambda(decl) || !reached_.insert(&decl).second) return;
    for (const clang::Decl* again : decl.redecls()) {
      if (Item* item = ItemAt(again->getLocation()); item != nullptr) {
        Keep(*item);
        FollowHostMember(*again);
      } else {
        UseOutside(*again);
      }
    }
  }

  void FollowHostMember(const clang::Decl& decl) {
    auto* member = const_cast<clang::Decl*>(&decl);
    if (!NameVisitor::IsHostMember(member)) return;
    const auto [file, offset] =
        sources_.getDecomposedLoc(sources_.getExpansionLoc(decl.getLocation()));
    if (needed_members_.insert({file, offset}).second) queue_.push_back(member);
  }

  // Something of a system header: the include that brought it stays.
  void UseOutside(const clang::Decl& decl) {
    clang::SourceLocation at = sources_.getExpansionLoc(decl.getLocation());
    if (at.isInvalid()) return;
    for (const clang::DeclContext* scope = decl.getDeclContext();
         scope != nullptr; scope = scope->getParent()) {
      if (const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(scope))
        used_namespaces_.insert(space->getCanonicalDecl());
      if (scope->isStdNamespace()) uses_std_ |= !IsBasic(decl);
    }
    while (at.isValid()) {
      const clang::FileID file = sources_.getFileID(at);
      UseIncludesOf(file);
      at = sources_.getIncludeLoc(file);
      if (at.isInvalid() || !IsUsers(sources_, at)) continue;
      const auto [user, offset] = sources_.getDecomposedLoc(at);
      const auto include =
          includes_.find({user, sources_.getLineNumber(user, offset)});
      if (include != includes_.end()) include->second.used = true;
      return;
    }
  }

  // Clang's own wrapper may have read a header before the user's include did.
  void UseIncludesOf(clang::FileID file) {
    const clang::FileEntry* entry = sources_.getFileEntryForID(file);
    for (auto& [place, include] : includes_)
      if (include.file == entry && entry != nullptr) include.used = true;
  }

  // What is there without a header of the toolkit (nvrtc_headers.h).
  static bool IsBasic(const clang::Decl& decl) {
    if (llvm::isa<clang::UsingShadowDecl, clang::UsingDecl,
                  clang::NamespaceDecl>(decl))
      return true;
    const auto* named = llvm::dyn_cast<clang::NamedDecl>(&decl);
    return named != nullptr && named->getIdentifier() != nullptr &&
           IsBasicStdName(named->getNameAsString());
  }

  // Definitions of members, specializations and guides of what stays.
  bool KeepCompanions() {
    bool grew = false;
    for (Item& item : items_) {
      if (item.kept) continue;
      for (clang::Decl* decl : item.decls) {
        const clang::Decl* owner = Owner(*decl);
        Item* of = owner != nullptr ? ItemAt(owner->getLocation()) : nullptr;
        if (of == nullptr || !of->kept || of == &item) continue;
        Keep(item);
        grew = true;
        break;
      }
    }
    return grew;
  }

  static const clang::Decl* Owner(clang::Decl& decl) {
    const auto* described = llvm::dyn_cast<clang::FunctionTemplateDecl>(&decl);
    clang::Decl* plain =
        described != nullptr ? described->getTemplatedDecl() : &decl;
    if (auto* guide = llvm::dyn_cast<clang::CXXDeductionGuideDecl>(plain))
      return guide->getDeducedTemplate();
    if (auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(plain))
      return IsHostOnly(*plain) ? nullptr : method->getParent();
    if (auto* record =
            llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(plain))
      return record->getSpecializedTemplate();
    if (auto* variable =
            llvm::dyn_cast<clang::VarTemplateSpecializationDecl>(plain))
      return variable->getSpecializedTemplate();
    if (auto* variable = llvm::dyn_cast<clang::VarDecl>(plain);
        variable != nullptr && variable->isStaticDataMember())
      return llvm::dyn_cast<clang::Decl>(variable->getDeclContext());
    if (auto* function = llvm::dyn_cast<clang::FunctionDecl>(plain))
      return function->getPrimaryTemplate();
    return nullptr;
  }

  // using namespace x; namespace y = x;
  void KeepNamespaceNames() {
    for (Item& item : items_) {
      for (clang::Decl* decl : item.decls) {
        const clang::NamespaceDecl* of = nullptr;
        bool named = false;
        if (auto* directive = llvm::dyn_cast<clang::UsingDirectiveDecl>(decl))
          of = directive->getNominatedNamespace();
        if (auto* alias = llvm::dyn_cast<clang::NamespaceAliasDecl>(decl)) {
          of = alias->getNamespace();
          named = IsWritten(alias->getNameAsString() + "::");
        }
        if (of == nullptr) continue;
        if (named || used_namespaces_.count(of->getCanonicalDecl()) > 0 ||
            of->isStdNamespace() || IsUsers(sources_, of->getLocation()))
          Keep(item);
        // Clang may have dropped what names it, as an error.
        if (named) UseOutside(*of->getCanonicalDecl());
      }
    }
  }

  bool IsWritten(const std::string& text) const {
    return std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
      return item.kept && sources_.getBufferData(item.file)
                              .substr(item.begin, item.end - item.begin)
                              .contains(text);
    });
  }

  // --- What goes.

  struct Cut {
    unsigned begin, end;
  };

  void CutHostMembers(const clang::Decl& decl, const Item& item,
                      std::vector<Cut>& cuts) const {
    const auto* described = llvm::dyn_cast<clang::ClassTemplateDecl>(&decl);
    const auto* record = described != nullptr
                             ? described->getTemplatedDecl()
                             : llvm::dyn_cast<clang::CXXRecordDecl>(&decl);
    if (record == nullptr || !record->isThisDeclarationADefinition()) return;
    for (clang::Decl* member : record->decls()) {
      if (member->isImplicit()) continue;
      CutHostMembers(*member, item, cuts);
      if (!NameVisitor::IsHostMember(member)) continue;
      const auto [file, offset] = sources_.getDecomposedLoc(
          sources_.getExpansionLoc(member->getLocation()));
      Item range;
      if (needed_members_.count({file, offset}) > 0 || !Range(*member, range) ||
          range.file != item.file)
        continue;
      cuts.push_back({range.begin, range.end});
    }
  }

  DeviceSlice Result(const std::string& directory) const {
    std::map<clang::FileID, std::vector<Cut>> cuts;
    for (const Item& item : items_) {
      std::vector<Cut>& here = cuts[item.file];
      if (!item.kept) {
        here.push_back({item.begin, item.end});
        continue;
      }
      for (const clang::Decl* decl : item.decls)
        CutHostMembers(*decl, item, here);
    }
    DeviceSlice slice;
    slice.uses_std = uses_std_;
    for (const auto& [place, include] : includes_) {
      if (!include.toolkit) continue;
      if (include.used) {
        slice.includes_toolkit = true;
        continue;
      }
      // Up to the end of its line, which is a directive of its own.
      const llvm::StringRef text = sources_.getBufferData(place.first);
      cuts[place.first].push_back(
          {include.begin, static_cast<unsigned>(std::min(
                              text.find('\n', include.begin), text.size()))});
    }
    for (auto& [file, ranges] : cuts) AddPieces(file, ranges, directory, slice);
    return slice;
  }

  void AddPieces(clang::FileID file, std::vector<Cut>& ranges,
                 const std::string& directory, DeviceSlice& slice) const {
    std::sort(ranges.begin(), ranges.end(),
              [](const Cut& a, const Cut& b) { return a.begin < b.begin; });
    const auto entry = sources_.getFileEntryRefForID(file);
    if (!entry) return;
    const llvm::StringRef text = sources_.getBufferData(file);
    auto& pieces = slice.cuts[CleanPath(entry->getName().str(), directory)];
    unsigned done = 0;
    for (const Cut& cut : ranges) {
      if (cut.begin < done || cut.end <= cut.begin) continue;
      pieces.push_back(text.substr(cut.begin, cut.end - cut.begin).str());
      done = cut.end;
    }
  }

  clang::ASTContext& context_;
  const clang::SourceManager& sources_;
  Includes& includes_;
  const SliceRoots& roots_;
  std::vector<Item> items_;
  std::deque<clang::Decl*> queue_;
  std::set<const clang::Decl*> reached_;
  std::set<std::pair<clang::FileID, unsigned>> needed_members_;
  std::set<const clang::NamespaceDecl*> used_namespaces_;
  bool uses_std_ = false;
};

class SliceConsumer : public clang::ASTConsumer {
 public:
  explicit SliceConsumer(std::function<void(clang::ASTContext&)> done)
      : done_(std::move(done)) {}
  void HandleTranslationUnit(clang::ASTContext& context) override {
    done_(context);
  }

 private:
  const std::function<void(clang::ASTContext&)> done_;
};

class SliceAction : public clang::ASTFrontendAction {
 public:
  SliceAction(Includes& includes, std::function<void(clang::ASTContext&)> done)
      : includes_(includes), done_(std::move(done)) {}

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(
      clang::CompilerInstance& instance, llvm::StringRef) override {
    instance.getPreprocessor().addPPCallbacks(std::make_unique<IncludeFinder>(
        instance.getSourceManager(), includes_));
    return std::make_unique<SliceConsumer>(done_);
  }

 private:
  Includes& includes_;
  const std::function<void(clang::ASTContext&)> done_;
};

}  // namespace

absl::StatusOr<DeviceSlice> SliceForDevice(
    const v1::CompileTranslationUnit& unit, const std::string& architecture,
    const SliceRoots& roots,
    const google::protobuf::RepeatedPtrField<v1::SourceOverlay>& overlays,
    const Toolchain& tools) {
  for (const std::string& kernel : roots.kernels) {
    if (absl::StrContains(DemangledName(kernel), "{lambda"))
      return absl::UnimplementedError(absl::StrCat(
          kernel, " is made from a lambda, which host code may hold"));
  }
  ASSIGN_OR_RETURN(
      std::shared_ptr<clang::CompilerInvocation> invocation,
      CreateDeviceInvocation(unit, architecture, tools,
                             MakeUnitFileSystem(unit, tools, true)));
  std::string errors;
  llvm::raw_string_ostream stream(errors);
  clang::CompilerInstance instance(std::move(invocation));
  clang::TextDiagnosticPrinter printer(stream, instance.getDiagnosticOpts());
  instance.setVirtualFileSystem(AddOverlays(
      MakeUnitFileSystem(unit, tools, false), unit.directory(), overlays));
  instance.createDiagnostics(&printer, /*ShouldOwnClient=*/false);
  instance.setVerboseOutputStream(llvm::nulls());
  Includes includes;
  absl::StatusOr<DeviceSlice> slice = absl::InvalidArgumentError("not parsed");
  SliceAction action(includes, [&](clang::ASTContext& context) {
    slice = Slicer(context, includes, roots).Run(unit.directory());
  });
  instance.ExecuteAction(action);
  return slice;
}

std::optional<std::string> CutPieces(const std::string& text,
                                     const std::vector<std::string>& pieces) {
  std::string cut;
  size_t from = 0;
  for (const std::string& piece : pieces) {
    const size_t at = text.find(piece, from);
    if (at == std::string::npos) return std::nullopt;
    cut.append(text, from, at - from);
    // A directive that begins a piece is the piece; others stay.
    bool first = true, continued = false;
    for (size_t line = 0; line < piece.size();) {
      const size_t end = std::min(piece.find('\n', line), piece.size());
      const size_t word = piece.find_first_not_of(" \t", line);
      const bool directive =
          continued || (!first && word < end && piece[word] == '#');
      if (directive) cut.append(piece, line, end - line);
      continued = directive && end > line && piece[end - 1] == '\\';
      if (end < piece.size()) cut += '\n';
      line = end + 1;
      first = false;
    }
    from = at + piece.size();
  }
  return cut.append(text, from);
}

}  // namespace reprise
