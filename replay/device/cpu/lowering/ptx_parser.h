// The text of inline PTX as instructions. Knows syntax only. Internal to the
// lowering.
#ifndef REPRISE_REPLAY_DEVICE_CPU_LOWERING_PTX_PARSER_H_
#define REPRISE_REPLAY_DEVICE_CPU_LOWERING_PTX_PARSER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise::cpu {

struct PtxOperand {
  enum Kind {
    kRegister,   // name; "$3" for an operand of the asm statement
    kSpecial,    // "%laneid"
    kImmediate,  // bits
    kVector,     // {a, b}: elements
    kAddress,    // [a + 4]: elements[0], bits is the offset
    kIgnored,    // _
  };
  Kind kind = kRegister;
  std::string name;
  uint64_t bits = 0;
  bool is_float = false;   // an immediate of 32 bits ...
  bool is_double = false;  // ... or 64
  bool negated = false;    // !p
  std::vector<PtxOperand> elements;
};

struct PtxInstruction {
  std::string guard;  // name of a predicate; empty: none
  bool guard_negated = false;
  std::string text;                 // the whole opcode, for messages
  std::vector<std::string> opcode;  // split at its dots
  std::vector<PtxOperand> operands;
  bool pair = false;  // the first two operands are "d|p"
};

struct PtxCode {
  // Width in bits by name; 1 for a predicate.
  std::map<std::string, unsigned> registers;
  std::vector<PtxInstruction> instructions;
};

// `text` is the string of an LLVM inline asm call. INVALID_ARGUMENT names what
// is not understood (labels, directives other than .reg).
absl::StatusOr<PtxCode> ParsePtx(const std::string& text);

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_LOWERING_PTX_PARSER_H_
