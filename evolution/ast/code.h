// The text behind a syntax tree: where things stand in the user's files, and
// what stands there. Internal to the AST library; not thread-safe.
#ifndef REPRISE_EVOLUTION_AST_CODE_H_
#define REPRISE_EVOLUTION_AST_CODE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"
#include "clang/AST/Stmt.h"
#include "clang/Basic/SourceLocation.h"
#include "clang/Basic/SourceManager.h"
#include "evolution/source.h"

namespace reprise::evolution {

// Bytes [begin, end) of a user's file.
struct Span {
  std::string path;
  size_t begin = 0;
  size_t end = 0;
};

class Code {
 public:
  Code(clang::ASTContext& ast, const SourceContext& context);

  // Whole tokens of `range`. nullopt: not in a file of the user, in more than
  // one, or touched by a macro.
  std::optional<Span> Of(clang::SourceRange range) const;
  std::optional<Span> Of(const clang::Stmt* stmt) const {
    return Of(stmt->getSourceRange());
  }
  // The same where the whole range may also be what one macro stands for.
  std::optional<Span> OfMaybeMacro(clang::SourceRange range) const;
  // The one token at `place`.
  std::optional<Span> Token(clang::SourceLocation place) const;
  // From the outermost expansions' start to their end: always the text in the
  // file, for regions.
  std::optional<Span> Expanded(clang::SourceRange range) const;

  std::string_view Text(const Span& span) const;
  std::string Text(const clang::Stmt* stmt) const;  // "": none

  // Content of a user's file.
  std::string_view File(const std::string& path) const;
  const std::map<std::string, std::string>& files() const { return files_; }

  // 1-based.
  size_t Line(const Span& span) const;
  size_t Column(const Span& span) const;
  // "kernel.cu:12".
  std::string Where(const Span& span) const;
  // White space that starts the line of `offset`.
  std::string Indent(const std::string& path, size_t offset) const;
  // Whether only white space comes before `offset` in its line.
  bool FirstInLine(const std::string& path, size_t offset) const;

  // Whether a declaration stands in a file of the user.
  bool OfUser(clang::SourceLocation place) const;

  clang::ASTContext& ast() const { return ast_; }
  const clang::SourceManager& sources() const { return sources_; }

 private:
  std::optional<Span> Make(clang::CharSourceRange range) const;
  const std::string* PathOf(clang::FileID file) const;

  clang::ASTContext& ast_;
  const clang::SourceManager& sources_;
  const SourceContext& context_;
  // Closure paths by their absolute form, and which of them are the user's.
  std::map<std::string, const SourceFile*> closure_;
  mutable std::map<clang::FileID, std::string> paths_;  // "" not the user's
  mutable std::map<std::string, std::string> files_;
};

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_AST_CODE_H_
