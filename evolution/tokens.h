// The tokens of C++ and CUDA text that need not be whole or right. Linear time,
// no exceptions, any bytes. Pure functions and plain values; thread-safe as
// such.
#ifndef REPRISE_EVOLUTION_TOKENS_H_
#define REPRISE_EVOLUTION_TOKENS_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::evolution {

// Whether `c` may be part of a name or a number.
bool IsWordCharacter(char c);

enum class TokenKind { kWord, kNumber, kLiteral, kPunctuation };

// Reads tokens from the front of a text, which it refers to. Blanks, comments
// and spliced lines are none.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : all_(text), text_(text) {}

  // False: there is none any more.
  bool Next();

  // Of the last one that Next() found.
  std::string_view token() const { return token_; }
  TokenKind kind() const { return kind_; }
  size_t offset() const { return token_.data() - all_.data(); }
  // Whether the token is the first of its line.
  bool first_in_line() const { return first_in_line_; }

  // Whether a comment or a literal so far was not ended: what would follow the
  // text would be part of it.
  bool unfinished() const { return unfinished_; }
  // Whether the text ends in a comment to the end of the line, or in a
  // backslash that would splice the next line.
  bool open_line() const { return open_line_; }

 private:
  void SkipBlanksAndComments();
  void RemoveThrough(std::string_view end, size_t from);
  void SkipLineComment();
  void SkipWordOrNumber();
  void SkipLiteral(char quote);
  void SkipRawLiteral();
  void SkipPunctuation();

  std::string_view all_;
  std::string_view text_;  // what is left
  std::string_view token_;
  TokenKind kind_ = TokenKind::kPunctuation;
  bool first_in_line_ = true;
  bool unfinished_ = false;
  bool open_line_ = false;
};

// Why a piece of code cannot stand between other pieces without changing what
// they mean: brackets that do not match, a comment, literal or conditional that
// is not ended. "": it can.
std::string WhyNotSelfContained(std::string_view code);

// A text that is the same for two pieces of code that differ only in what makes
// no difference to the machine code, by their tokens alone:
// - comments, blanks and empty statements;
// - names of what the code itself declares: numbered in the order of their
//   first use (members of structures keep theirs);
// - how a number is written (0x10, 16; 1.0f, 1.F);
// - i++ and ++i as a statement or a loop's step.
// Two that differ in one number or one called function have different ones.
std::string NormalForm(std::string_view code);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_TOKENS_H_
