#include "replay/compiler/main_file_outline.h"

#include <algorithm>

#include "clang/Basic/LangOptions.h"
#include "clang/Basic/SourceLocation.h"
#include "clang/Lex/Lexer.h"
#include "clang/Lex/Token.h"

namespace reprise {
namespace {

class Outliner {
 public:
  Outliner(const std::string& text, const clang::LangOptions& language)
      : text_(text),
        lexer_(clang::SourceLocation(), language, text.data(), text.data(),
               text.data() + text.size()) {}

  MainFileOutline Run() {
    outline_.cuts.push_back(0);
    clang::Token token;
    for (lexer_.LexFromRawLexer(token); !token.is(clang::tok::eof);
         lexer_.LexFromRawLexer(token)) {
      if (token.is(clang::tok::hash) && token.isAtStartOfLine()) {
        TakeDirective(token);
      } else {
        TakeToken(token);
      }
    }
    if (!found_device_code_)
      outline_.first_device_code = outline_.CutBefore(after_last_include_);
    return std::move(outline_);
  }

 private:
  size_t OffsetOf(const clang::Token& token) const {
    return token.getLocation().getRawEncoding();
  }

  // A cut in front of the line that this first token of an item begins.
  void BeginItem(const clang::Token& token) {
    if (!token.isAtStartOfLine()) return;
    const size_t offset = OffsetOf(token);
    const size_t newline = text_.rfind('\n', offset);
    const size_t cut = newline == std::string::npos ? 0 : newline + 1;
    if (cut > outline_.cuts.back()) outline_.cuts.push_back(cut);
  }

  void TakeDirective(const clang::Token& hash) {
    // Directives may stand inside an item: only those between items are cuts.
    if (between_items_ && conditionals_ == 0 && depth_ == 0) BeginItem(hash);
    lexer_.setParsingPreprocessorDirective(true);
    clang::Token token;
    lexer_.LexFromRawLexer(token);
    if (token.is(clang::tok::raw_identifier)) {
      const llvm::StringRef name = token.getRawIdentifier();
      if (name == "if" || name == "ifdef" || name == "ifndef") ++conditionals_;
      if (name == "endif" && conditionals_ > 0) --conditionals_;
      if (name == "include" || name == "include_next") in_include_ = true;
    }
    while (!token.is(clang::tok::eod) && !token.is(clang::tok::eof))
      lexer_.LexFromRawLexer(token);
    lexer_.setParsingPreprocessorDirective(false);
    if (in_include_) after_last_include_ = OffsetOf(token) + 1;
    in_include_ = false;
  }

  void TakeToken(const clang::Token& token) {
    if (between_items_ && depth_ == 0) {
      if (conditionals_ == 0 && !ContinuesItem(token)) BeginItem(token);
      between_items_ = false;
    }
    switch (token.getKind()) {
      case clang::tok::l_brace:
      case clang::tok::l_paren:
      case clang::tok::l_square:
        ++depth_;
        break;
      case clang::tok::r_paren:
      case clang::tok::r_square:
        depth_ = std::max(0, depth_ - 1);
        break;
      case clang::tok::r_brace:
        depth_ = std::max(0, depth_ - 1);
        if (depth_ == 0) between_items_ = true;
        break;
      case clang::tok::semi:
        if (depth_ == 0) between_items_ = true;
        break;
      case clang::tok::raw_identifier:
        if (!found_device_code_ && IsDeviceWord(token.getRawIdentifier())) {
          found_device_code_ = true;
          outline_.first_device_code = outline_.cuts.back();
        }
        break;
      default:
        break;
    }
  }

  // After a closing brace an item may go on: `struct A {} a;`, `int a[] = {};`.
  // A name could also begin the next item, but then it stands on a line of its
  // own, as a declaration behind a function's body does.
  static bool ContinuesItem(const clang::Token& token) {
    return token.isOneOf(clang::tok::semi, clang::tok::comma,
                         clang::tok::l_paren, clang::tok::equal,
                         clang::tok::period, clang::tok::arrow) ||
           !token.isAtStartOfLine();
  }

  static bool IsDeviceWord(llvm::StringRef word) {
    return word == "__global__" || word == "__device__";
  }

  const std::string& text_;
  clang::Lexer lexer_;
  MainFileOutline outline_;
  int depth_ = 0;
  int conditionals_ = 0;
  bool between_items_ = true;
  bool found_device_code_ = false;
  bool in_include_ = false;
  size_t after_last_include_ = 0;
};

}  // namespace

size_t MainFileOutline::CutBefore(size_t offset) const {
  const auto after = std::upper_bound(cuts.begin(), cuts.end(), offset);
  return after == cuts.begin() ? 0 : *(after - 1);
}

MainFileOutline OutlineMainFile(const std::string& text,
                                const clang::LangOptions& language) {
  return Outliner(text, language).Run();
}

}  // namespace reprise
