#include "replay/device/cpu/lowering/ptx_parser.h"

#include <cctype>
#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "replay/base/status_macros.h"

namespace reprise::cpu {
namespace {

absl::Status NotUnderstood(const std::string& what) {
  return absl::InvalidArgumentError(what);
}

// "$3" and "${3:x}" stay operands (as "$3"), "$$" becomes a plain '$'.
// A plain '$' is kept apart from an operand's as '@dollar'.
std::string Unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '$') {
      out += "__dollar__";
      ++i;
    } else if (i + 1 < text.size() && text[i + 1] == '{') {
      const size_t close = text.find('}', i);
      const size_t colon = text.find(':', i);
      out += '$' + text.substr(i + 2, std::min(close, colon) - i - 2);
      i = close;
    } else {
      out += '$';
    }
  }
  return out;
}

class Parser {
 public:
  explicit Parser(std::string text) : text_(std::move(text)) {}

  absl::StatusOr<PtxCode> Parse() {
    while (true) {
      SkipSpace();
      if (AtEnd()) break;
      const char c = text_[at_];
      if (c == '{' || c == '}' || c == ';') {
        ++at_;
      } else if (c == '.') {
        RETURN_IF_ERROR(Declaration());
      } else {
        RETURN_IF_ERROR(Instruction());
      }
    }
    return std::move(code_);
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek() const { return AtEnd() ? 0 : text_[at_]; }

  void SkipSpace() {
    while (!AtEnd()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else if (text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.compare(at_, 2, "/*") == 0) {
        const size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }
  bool Take(char c) {
    SkipSpace();
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  static bool IsNameCharacter(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' ||
           c == '$' || c == '%' || c == '@';
  }
  std::string Name() {
    SkipSpace();
    const size_t start = at_;
    while (!AtEnd() && IsNameCharacter(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }
  // An opcode or type: names, dots, and "L1::no_allocate".
  std::string DottedName() {
    SkipSpace();
    const size_t start = at_;
    while (!AtEnd() && (IsNameCharacter(text_[at_]) || text_[at_] == '.' ||
                        text_[at_] == ':')) {
      ++at_;
    }
    return text_.substr(start, at_ - start);
  }

  absl::Status Declaration();
  absl::Status Instruction();
  absl::Status Operand(PtxOperand* operand);
  absl::Status Number(PtxOperand* operand);

  const std::string text_;
  size_t at_ = 0;
  PtxCode code_;
};

// .reg .u32 a, b;
absl::Status Parser::Declaration() {
  std::string directive = DottedName();
  if (directive == ".reg") {
    SkipSpace();
    directive += DottedName();
  }
  const std::vector<std::string> parts =
      absl::StrSplit(directive, '.', absl::SkipEmpty());
  if (parts.size() != 2 || parts[0] != "reg") return NotUnderstood(directive);
  unsigned width = 1;
  if (parts[1] != "pred") {
    const size_t digit = parts[1].find_first_of("0123456789");
    if (digit == std::string::npos ||
        !absl::SimpleAtoi(parts[1].substr(digit), &width)) {
      if (parts[1] != "f16x2") return NotUnderstood(directive);
    }
    if (parts[1] == "f16x2" || parts[1] == "bf16x2") width = 32;
  }
  do {
    const std::string name = Name();
    if (name.empty()) return NotUnderstood(directive);
    code_.registers[name] = width;
  } while (Take(','));
  return Take(';') ? absl::OkStatus() : NotUnderstood(directive);
}

absl::Status Parser::Instruction() {
  PtxInstruction instruction;
  if (Peek() == '@') {
    ++at_;
    instruction.guard_negated = Take('!');
    instruction.guard = Name();
    SkipSpace();
  }
  instruction.text = DottedName();
  if (instruction.text.empty() || instruction.text.back() == ':') {
    return NotUnderstood(instruction.text.empty() ? text_.substr(at_, 20)
                                                  : instruction.text);
  }
  instruction.opcode = absl::StrSplit(instruction.text, '.');
  SkipSpace();
  while (!AtEnd() && Peek() != ';' && Peek() != '}') {
    PtxOperand operand;
    absl::Status status = Operand(&operand);
    if (!status.ok()) return NotUnderstood(instruction.text);
    instruction.operands.push_back(std::move(operand));
    if (Take('|')) {
      instruction.pair = true;
    } else if (!Take(',')) {
      SkipSpace();
      break;
    }
    SkipSpace();
  }
  SkipSpace();
  if (!AtEnd() && Peek() != ';' && Peek() != '}')
    return NotUnderstood(instruction.text);
  if (Peek() == ';') ++at_;
  code_.instructions.push_back(std::move(instruction));
  return absl::OkStatus();
}

absl::Status Parser::Number(PtxOperand* operand) {
  operand->kind = PtxOperand::kImmediate;
  const bool negative = Take('-');
  const std::string word = Name();
  if (word.size() == 10 &&
      (word.compare(0, 2, "0f") == 0 || word.compare(0, 2, "0F") == 0)) {
    operand->bits = std::strtoull(word.c_str() + 2, nullptr, 16);
    operand->is_float = true;
    return absl::OkStatus();
  }
  if (word.size() == 18 &&
      (word.compare(0, 2, "0d") == 0 || word.compare(0, 2, "0D") == 0)) {
    operand->bits = std::strtoull(word.c_str() + 2, nullptr, 16);
    operand->is_double = true;
    return absl::OkStatus();
  }
  char* end = nullptr;
  operand->bits = std::strtoull(word.c_str(), &end, 0);
  if (*end == 'U' || *end == 'u') ++end;
  if (*end != 0 || word.empty()) return NotUnderstood(word);
  if (Peek() == '.') {  // 1.0
    const size_t start = at_;
    ++at_;
    const double value =
        std::strtod((word + text_.substr(start, 1) + Name()).c_str(), nullptr);
    const double number = negative ? -value : value;
    std::memcpy(&operand->bits, &number, sizeof(number));
    operand->is_double = true;
    return absl::OkStatus();
  }
  if (negative) operand->bits = -operand->bits;
  return absl::OkStatus();
}

absl::Status Parser::Operand(PtxOperand* operand) {
  SkipSpace();
  const char c = Peek();
  if (c == '{' || c == '[') {
    operand->kind = c == '{' ? PtxOperand::kVector : PtxOperand::kAddress;
    ++at_;
    do {
      PtxOperand element;
      RETURN_IF_ERROR(Operand(&element));
      operand->elements.push_back(std::move(element));
      if (c == '[' && Take('+')) {
        PtxOperand offset;
        RETURN_IF_ERROR(Operand(&offset));
        operand->bits = offset.bits;
      }
    } while (Take(','));
    return Take(c == '{' ? '}' : ']') ? absl::OkStatus()
                                      : NotUnderstood("operand");
  }
  if (std::isdigit(static_cast<unsigned char>(c)) || c == '-')
    return Number(operand);
  operand->negated = Take('!');
  operand->name = Name();
  if (operand->name.empty()) return NotUnderstood("operand");
  if (operand->name == "_") operand->kind = PtxOperand::kIgnored;
  const bool declared = code_.registers.contains(operand->name);
  if (!declared && (operand->name[0] == '%' || operand->name == "WARP_SZ")) {
    operand->kind = PtxOperand::kSpecial;
    if (Peek() == '.') operand->name += DottedName();  // %tid.x
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PtxCode> ParsePtx(const std::string& text) {
  return Parser(Unescape(text)).Parse();
}

}  // namespace reprise::cpu
