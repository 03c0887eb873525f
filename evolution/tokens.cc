#include "evolution/tokens.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace reprise::evolution {
namespace {

bool IsDigit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool IsBlank(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

}  // namespace

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool Lexer::Next() {
  SkipBlanksAndComments();
  if (text_.empty()) return false;
  const std::string_view before = text_;
  if (IsDigit(text_[0]) ||
      (text_[0] == '.' && text_.size() > 1 && IsDigit(text_[1])) ||
      IsWordCharacter(text_[0])) {
    kind_ = IsWordCharacter(text_[0]) && !IsDigit(text_[0])
                ? TokenKind::kWord
                : TokenKind::kNumber;
    SkipWordOrNumber();
  } else if (text_[0] == '"' || text_[0] == '\'') {
    kind_ = TokenKind::kLiteral;
    SkipLiteral(text_[0]);
  } else {
    kind_ = TokenKind::kPunctuation;
    SkipPunctuation();
  }
  token_ = before.substr(0, before.size() - text_.size());
  return true;
}

void Lexer::SkipBlanksAndComments() {
  first_in_line_ = text_.size() == all_.size();
  for (;;) {
    size_t at = 0;
    while (at < text_.size() && IsBlank(text_[at])) {
      first_in_line_ |= text_[at] == '\n';
      ++at;
    }
    text_.remove_prefix(at);
    if (text_.starts_with("//")) {
      SkipLineComment();
    } else if (text_.starts_with("/*")) {
      RemoveThrough("*/", 2);
    } else if (text_.starts_with("\\\n")) {
      open_line_ |= text_.size() == 2;
      text_.remove_prefix(2);
    } else if (text_.starts_with("\\\r\n")) {
      open_line_ |= text_.size() == 3;
      text_.remove_prefix(3);
    } else {
      return;
    }
  }
}

void Lexer::RemoveThrough(std::string_view end, size_t from) {
  const size_t found = text_.find(end, from);
  unfinished_ |= found == std::string_view::npos;
  text_.remove_prefix(found == std::string_view::npos ? text_.size()
                                                      : found + end.size());
}

// Up to the newline, which tells what follows that it begins a line. A
// backslash at the end of the line takes the next one along.
void Lexer::SkipLineComment() {
  size_t end = 0;
  for (;;) {
    end = text_.find('\n', end);
    if (end == std::string_view::npos) break;
    const size_t last = end > 0 && text_[end - 1] == '\r' ? end - 1 : end;
    if (last == 0 || text_[last - 1] != '\\') break;
    ++end;
  }
  open_line_ |= end == std::string_view::npos;
  text_.remove_prefix(std::min(end, text_.size()));
}

// 1'000.5e-3f is one token.
void Lexer::SkipWordOrNumber() {
  const bool number = kind_ == TokenKind::kNumber;
  size_t at = 1;
  for (; at < text_.size(); ++at) {
    const char before = absl::ascii_tolower(text_[at - 1]);
    const bool of_number = number && (text_[at] == '.' || text_[at] == '\'' ||
                                      ((text_[at] == '+' || text_[at] == '-') &&
                                       (before == 'e' || before == 'p')));
    if (!IsWordCharacter(text_[at]) && !of_number) break;
  }
  const std::string_view word = text_.substr(0, at);
  text_.remove_prefix(at);
  // L"..." and R"x(...)x" are one token.
  if (number || text_.empty() || text_[0] != '"' || word.size() > 3) return;
  if (word.back() == 'R') {
    kind_ = TokenKind::kLiteral;
    SkipRawLiteral();
  } else if (word == "L" || word == "u" || word == "U" || word == "u8") {
    kind_ = TokenKind::kLiteral;
    SkipLiteral('"');
  }
}

void Lexer::SkipLiteral(char quote) {
  size_t at = 1;
  while (at < text_.size() && text_[at] != quote && text_[at] != '\n')
    at += text_[at] == '\\' ? 2 : 1;
  unfinished_ |= at >= text_.size() || text_[at] != quote;
  text_.remove_prefix(std::min(at + 1, text_.size()));
}

void Lexer::SkipRawLiteral() {
  const size_t open = text_.find('(');
  if (open == std::string_view::npos) {
    unfinished_ = true;
    text_.remove_prefix(1);
    return;
  }
  RemoveThrough(absl::StrCat(")", std::string(text_.substr(1, open - 1)), "\""),
                open);
}

void Lexer::SkipPunctuation() {
  static constexpr std::array<const char*, 28> kLong = {
      "<<<", ">>>", "<<=", ">>=", "...", "->*", "<=>", "::", "->", "++",
      "--",  "<<",  ">>",  "<=",  ">=",  "==",  "!=",  "&&", "||", "+=",
      "-=",  "*=",  "/=",  "##",  "%=",  "&=",  "|=",  "^="};
  for (const char* punctuation : kLong) {
    if (!text_.starts_with(punctuation)) continue;
    text_.remove_prefix(std::string_view(punctuation).size());
    return;
  }
  text_.remove_prefix(1);
}

namespace {

char ClosingOf(char open) {
  switch (open) {
    case '(':
      return ')';
    case '[':
      return ']';
    case '{':
      return '}';
    default:
      return 0;
  }
}

// Conditionals of the preprocessor, seen token by token.
class Conditionals {
 public:
  // False: one that was never begun ends or goes on.
  bool See(const Lexer& lexer) {
    const std::string_view token = lexer.token();
    const bool directive = after_hash_;
    after_hash_ = token == "#" && lexer.first_in_line();
    if (!directive) return true;
    if (token == "if" || token == "ifdef" || token == "ifndef") ++depth_;
    if (token == "else" || token == "elif") return depth_ > 0;
    if (token == "endif") return depth_-- > 0;
    return true;
  }
  bool open() const { return depth_ > 0; }

 private:
  bool after_hash_ = false;
  int depth_ = 0;
};

}  // namespace

std::string WhyNotSelfContained(std::string_view code) {
  std::string open;  // closings that are due, the next one last
  Conditionals conditionals;
  Lexer lexer(code);
  while (lexer.Next()) {
    if (!conditionals.See(lexer)) return "an #else or #endif without its #if";
    if (lexer.kind() != TokenKind::kPunctuation) continue;
    const char c = lexer.token()[0];
    if (lexer.token().size() > 1) continue;
    if (const char closing = ClosingOf(c)) {
      open += closing;
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c)
        return absl::StrCat("a '", std::string(1, c),
                            "' that nothing before it opens");
      open.pop_back();
    }
  }
  if (lexer.unfinished()) return "a comment or literal that is not ended";
  if (lexer.open_line())
    return "a // comment or backslash at its end, which takes what follows "
           "along";
  if (!open.empty())
    return absl::StrCat("a '", std::string(1, open.back()), "' missing");
  if (conditionals.open()) return "an #if without its #endif";
  return "";
}

namespace {

struct Piece {
  std::string text;
  TokenKind kind;
};

bool In(std::string_view word, const std::set<std::string_view>& words) {
  return words.count(word) > 0;
}

// Words after which a name is used and not declared.
bool IsStatementWord(std::string_view word) {
  static const auto* const words = new std::set<std::string_view>{
      "return",  "else",     "do",      "goto",      "case",     "new",
      "delete",  "typename", "sizeof",  "operator",  "using",    "namespace",
      "throw",   "alignof",  "if",      "co_return", "co_yield", "enum",
      "define",  "undef",    "ifdef",   "ifndef",    "elif",     "pragma",
      "include", "public",   "private", "protected", "and",      "or",
      "not",     "error",    "endif"};
  return In(word, *words);
}

bool IsTypeWord(std::string_view word) {
  static const auto* const words = new std::set<std::string_view>{
      "float", "double", "int",  "unsigned", "signed", "long",
      "short", "char",   "bool", "auto",     "void"};
  return In(word, *words) ||
         (word.size() > 2 && word.substr(word.size() - 2) == "_t");
}

// Decimal digits where it is a plain integer, else lower case without what
// changes nothing.
std::string CanonicalNumber(std::string_view number) {
  std::string text = absl::AsciiStrToLower(std::string(number));
  std::erase(text, '\'');
  if (text.starts_with("0x") && text.size() <= 17 &&
      std::all_of(text.begin() + 2, text.end(), [](char c) {
        return std::isxdigit(static_cast<unsigned char>(c)) != 0;
      })) {
    return text.size() == 2
               ? text
               : absl::StrCat(std::stoull(text.substr(2), nullptr, 16));
  }
  const size_t point = text.find('.');
  if (text.starts_with("0x") || point == std::string::npos) return text;
  size_t end = point + 1;
  while (end < text.size() && IsDigit(text[end])) ++end;
  size_t last = end;
  while (last > point + 1 && text[last - 1] == '0') --last;
  return absl::StrCat(point == 0 ? "0" : "", text.substr(0, last),
                      text.substr(end));
}

std::vector<Piece> Pieces(std::string_view code) {
  std::vector<Piece> pieces;
  Lexer lexer(code);
  while (lexer.Next()) {
    std::string text(lexer.token());
    // A directive ends with its line, so that its start matters.
    if (text == "#" && lexer.first_in_line()) text = "\n#";
    if (lexer.kind() == TokenKind::kNumber) text = CanonicalNumber(text);
    const bool empty_statement =
        text == ";" && !pieces.empty() &&
        (pieces.back().text == ";" || pieces.back().text == "{") &&
        // for (;;)
        !(pieces.size() > 1 && pieces[pieces.size() - 2].text == "(");
    if (empty_statement) continue;
    pieces.push_back({std::move(text), lexer.kind()});
  }
  return pieces;
}

bool IsMember(const std::vector<Piece>& pieces, size_t at) {
  return at > 0 && (pieces[at - 1].text == "." || pieces[at - 1].text == "->" ||
                    pieces[at - 1].text == "::");
}

// Names with a type before them and what follows a declared name after them,
// but for those that are members anywhere.
std::set<std::string> DeclaredNames(const std::vector<Piece>& pieces) {
  static const auto* const followers =
      new std::set<std::string_view>{"=", ";", ",", ")", "[", ":", "{", "("};
  std::set<std::string> names;
  for (size_t i = 1; i + 1 < pieces.size(); ++i) {
    if (pieces[i].kind != TokenKind::kWord ||
        !In(pieces[i + 1].text, *followers) || IsTypeWord(pieces[i].text))
      continue;
    size_t before = i - 1;
    bool pointer = false;
    while (before > 0 &&
           (pieces[before].text == "*" || pieces[before].text == "&" ||
            pieces[before].text == "__restrict__")) {
      pointer |= pieces[before].text != "__restrict__";
      --before;
    }
    const Piece& type = pieces[before];
    if (type.kind != TokenKind::kWord || IsStatementWord(type.text)) continue;
    // Of a * b; only a built-in type says that it is no product; and a name
    // before a parenthesis may be called from elsewhere.
    if (pointer && !IsTypeWord(type.text)) continue;
    if (pieces[i + 1].text == "(") continue;
    names.insert(pieces[i].text);
  }
  for (size_t i = 1; i < pieces.size(); ++i) {
    if (IsMember(pieces, i)) names.erase(pieces[i].text);
  }
  return names;
}

bool IsStep(const std::vector<Piece>& pieces, size_t at) {
  return at < pieces.size() &&
         (pieces[at].text == "++" || pieces[at].text == "--");
}

// i++; and i++) become ++i; and ++i) where a statement or a step begins.
void PutStepsFirst(std::vector<Piece>& pieces) {
  for (size_t i = 1; i + 2 < pieces.size(); ++i) {
    const std::string& before = pieces[i - 1].text;
    const std::string& after = pieces[i + 2].text;
    if (pieces[i].kind == TokenKind::kWord && IsStep(pieces, i + 1) &&
        (before == ";" || before == "{" || before == "}") &&
        (after == ";" || after == ")")) {
      std::swap(pieces[i], pieces[i + 1]);
    }
  }
}

}  // namespace

std::string NormalForm(std::string_view code) {
  std::vector<Piece> pieces = Pieces(code);
  PutStepsFirst(pieces);
  const std::set<std::string> declared = DeclaredNames(pieces);
  std::map<std::string, size_t> numbers;
  std::string out;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::string& text = pieces[i].text;
    if (pieces[i].kind == TokenKind::kWord && declared.count(text) > 0) {
      const size_t number =
          numbers.try_emplace(text, numbers.size()).first->second;
      absl::StrAppend(&out, "$", number, " ");
    } else {
      absl::StrAppend(&out, text, " ");
    }
  }
  return out;
}

}  // namespace reprise::evolution
