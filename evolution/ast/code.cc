#include "evolution/ast/code.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clang/Lex/Lexer.h"
#include "evolution/ast/frontend.h"

namespace reprise::evolution {

Code::Code(clang::ASTContext& ast, const SourceContext& context)
    : ast_(ast), sources_(ast.getSourceManager()), context_(context) {
  for (const SourceFile& file : context.files) {
    closure_[AbsolutePath(file.path, context.directory)] = &file;
  }
}

const std::string* Code::PathOf(clang::FileID file) const {
  const auto [at, added] = paths_.try_emplace(file);
  std::string& path = at->second;
  if (!added) return path.empty() ? nullptr : &path;
  const auto entry = sources_.getFileEntryRefForID(file);
  if (!entry) return nullptr;
  const std::string absolute =
      AbsolutePath(entry->getName().str(), context_.directory);
  const auto closure = closure_.find(absolute);
  if (closure != closure_.end()) {
    if (closure->second->system) return nullptr;
    path = closure->second->path;
  } else {
    // Without a closure, everything but system headers is the user's.
    if (!closure_.empty() ||
        sources_.isInSystemHeader(sources_.getLocForStartOfFile(file))) {
      return nullptr;
    }
    path = absolute;
  }
  files_.try_emplace(path, sources_.getBufferData(file).str());
  return &path;
}

std::optional<Span> Code::Make(clang::CharSourceRange range) const {
  if (range.isInvalid() || range.getBegin().isMacroID() ||
      range.getEnd().isMacroID()) {
    return std::nullopt;
  }
  const auto [begin_file, begin] = sources_.getDecomposedLoc(range.getBegin());
  auto [end_file, end] = sources_.getDecomposedLoc(range.getEnd());
  const std::string* path = PathOf(begin_file);
  if (path == nullptr || begin_file != end_file) return std::nullopt;
  if (range.isTokenRange()) {
    end += clang::Lexer::MeasureTokenLength(range.getEnd(), sources_,
                                            ast_.getLangOpts());
  }
  if (end < begin) return std::nullopt;
  return Span{*path, begin, end};
}

std::optional<Span> Code::Of(clang::SourceRange range) const {
  return Make(clang::CharSourceRange::getTokenRange(range));
}

std::optional<Span> Code::OfMaybeMacro(clang::SourceRange range) const {
  if (range.getBegin().isFileID() && range.getEnd().isFileID()) {
    return Of(range);
  }
  if (range.getBegin().isMacroID() &&
      sources_.isMacroArgExpansion(range.getBegin())) {
    return std::nullopt;
  }
  return Make(clang::Lexer::makeFileCharRange(
      clang::CharSourceRange::getTokenRange(range), sources_,
      ast_.getLangOpts()));
}

std::optional<Span> Code::Token(clang::SourceLocation place) const {
  return Of(clang::SourceRange(place, place));
}

std::optional<Span> Code::Expanded(clang::SourceRange range) const {
  if (range.isInvalid()) return std::nullopt;
  const clang::SourceLocation begin =
      sources_.getExpansionLoc(range.getBegin());
  const clang::SourceLocation end =
      sources_.getExpansionRange(range.getEnd()).getEnd();
  return Make(clang::CharSourceRange::getTokenRange(begin, end));
}

std::string_view Code::Text(const Span& span) const {
  return File(span.path).substr(span.begin, span.end - span.begin);
}

std::string Code::Text(const clang::Stmt* stmt) const {
  const auto span = Of(stmt);
  return span ? std::string(Text(*span)) : std::string();
}

std::string_view Code::File(const std::string& path) const {
  const auto found = files_.find(path);
  return found == files_.end() ? std::string_view()
                               : std::string_view(found->second);
}

size_t Code::Line(const Span& span) const {
  const std::string_view before = File(span.path).substr(0, span.begin);
  return 1 +
         static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
}

size_t Code::Column(const Span& span) const {
  const std::string_view before = File(span.path).substr(0, span.begin);
  const size_t newline = before.rfind('\n');
  return newline == std::string_view::npos ? span.begin + 1
                                           : span.begin - newline;
}

std::string Code::Where(const Span& span) const {
  return absl::StrCat(span.path.substr(span.path.rfind('/') + 1), ":",
                      Line(span));
}

std::string Code::Indent(const std::string& path, size_t offset) const {
  const std::string_view text = File(path);
  const size_t newline = text.substr(0, offset).rfind('\n');
  const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
  const size_t end = std::min(text.find_first_not_of(" \t", start), offset);
  return std::string(text.substr(start, end - start));
}

bool Code::FirstInLine(const std::string& path, size_t offset) const {
  const std::string_view text = File(path).substr(0, offset);
  const size_t last = text.find_last_not_of(" \t");
  return last == std::string_view::npos || text[last] == '\n';
}

bool Code::OfUser(clang::SourceLocation place) const {
  if (place.isInvalid()) return false;
  return PathOf(sources_.getFileID(sources_.getExpansionLoc(place))) != nullptr;
}

}  // namespace reprise::evolution
