#include "replay/compiler/inline_ptx.h"

#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "replay/device/cpu/lowering/ptx_parser.h"

namespace reprise {
namespace {

using cpu::PtxInstruction;
using cpu::PtxOperand;

bool HasPart(const PtxInstruction& in, absl::string_view part) {
  return std::find(in.opcode.begin(), in.opcode.end(), part) != in.opcode.end();
}

// Memory of the block, the thread or the launch, by the opcode's own words.
bool NamesPrivateMemory(const PtxInstruction& in) {
  for (const std::string& part : in.opcode) {
    for (absl::string_view space : {"shared", "local", "param"}) {
      absl::string_view rest = part;
      if (absl::ConsumePrefix(&rest, space) &&
          (rest.empty() || absl::StartsWith(rest, "::")))
        return true;
    }
  }
  return false;
}

struct DataType {
  char kind = 'b';  // b s u f
  unsigned bits = 0;
  v1::ElementType element = v1::ELEMENT_TYPE_UNTYPED;
};

v1::ElementType IntegerOf(unsigned bits) {
  switch (bits) {
    case 8:
      return v1::ELEMENT_TYPE_I8;
    case 16:
      return v1::ELEMENT_TYPE_I16;
    case 32:
      return v1::ELEMENT_TYPE_I32;
    case 64:
      return v1::ELEMENT_TYPE_I64;
    default:
      return v1::ELEMENT_TYPE_UNTYPED;
  }
}

// "f32", "bf16x2", "b128"; .b says nothing of the element.
std::optional<DataType> ParseDataType(absl::string_view part) {
  DataType type;
  const bool packed = absl::ConsumeSuffix(&part, "x2");
  if (absl::ConsumePrefix(&part, "bf")) {
    type.kind = 'f';
    type.element = v1::ELEMENT_TYPE_BF16;
  } else if (!part.empty() && absl::StrContains("bsuf", part.substr(0, 1))) {
    type.kind = part[0];
    part.remove_prefix(1);
  } else {
    return std::nullopt;
  }
  if (!absl::SimpleAtoi(part, &type.bits) || type.bits % 8 != 0)
    return std::nullopt;
  if (type.kind == 's' || type.kind == 'u') type.element = IntegerOf(type.bits);
  if (type.kind == 'f' && type.element == v1::ELEMENT_TYPE_UNTYPED) {
    type.element = type.bits == 16   ? v1::ELEMENT_TYPE_F16
                   : type.bits == 32 ? v1::ELEMENT_TYPE_F32
                                     : v1::ELEMENT_TYPE_F64;
  }
  if (packed) type.bits *= 2;
  return type;
}

// The last one the opcode names.
std::optional<DataType> TypeOf(const PtxInstruction& in) {
  for (auto part = in.opcode.rbegin(); part != in.opcode.rend(); ++part) {
    if (const auto type = ParseDataType(*part)) return type;
  }
  return std::nullopt;
}

// "m16n8k16": m * n * k.
uint64_t ShapeProduct(const PtxInstruction& in) {
  for (const std::string& part : in.opcode) {
    const size_t n = part.find('n');
    const size_t k = part.find('k');
    uint64_t rows = 0, columns = 0, depth = 0;
    if (part.empty() || part[0] != 'm' || n == std::string::npos ||
        k == std::string::npos || k < n)
      continue;
    if (absl::SimpleAtoi(part.substr(1, n - 1), &rows) &&
        absl::SimpleAtoi(part.substr(n + 1, k - n - 1), &columns) &&
        absl::SimpleAtoi(part.substr(k + 1), &depth))
      return rows * columns * depth;
  }
  return 0;
}

uint64_t FlopsOf(const PtxInstruction& in) {
  const std::optional<DataType> type = TypeOf(in);
  if (!type || type->kind != 'f') return 0;
  const std::string& name = in.opcode[0];
  // A warp's, and a warp group's, by thread.
  if (name == "mma" || (name == "wmma" && HasPart(in, "mma")))
    return 2 * ShapeProduct(in) / 32;
  if (name == "wgmma") return 2 * ShapeProduct(in) / 128;
  const bool packed = absl::EndsWith(in.opcode.back(), "x2") && name != "cvt";
  const uint64_t lanes = packed ? 2 : 1;
  if (name == "fma" || name == "mad") return 2 * lanes;
  for (absl::string_view one : {"add", "sub", "mul", "div", "sqrt", "rsqrt",
                                "rcp", "ex2", "lg2", "sin", "cos", "tanh"}) {
    if (name == one) return lanes;
  }
  return 0;
}

// Opcodes by their first word that access memory, or may.
bool AccessesMemory(absl::string_view name) {
  for (absl::string_view one :
       {"ld", "ldu", "st", "atom", "red", "cp", "wmma", "tex", "tld4", "suld",
        "sust", "sured", "multimem", "discard", "tensormap", "call",
        "fabric"}) {
    if (name == one) return true;
  }
  return false;
}

class Reader {
 public:
  explicit Reader(InlinePtx& out) : out_(out) {}
  void Read(const PtxInstruction& in);

 private:
  // What a register or number is in terms of the statement's operands.
  std::optional<PtxValue> Resolve(const PtxOperand& operand) const;
  std::optional<PtxValue> Address(const PtxOperand& operand) const;
  void Follow(const PtxInstruction& in);
  bool Guard(const PtxInstruction& in, PtxAccess& access) const;
  bool Memory(const PtxInstruction& in);
  bool PlainAccess(const PtxInstruction& in);
  bool Copy(const PtxInstruction& in);

  struct Test {
    PtxValue value;
    bool is_zero = false;
  };
  InlinePtx& out_;
  std::map<std::string, PtxValue> registers_;
  std::map<std::string, Test> tests_;
};

std::optional<PtxValue> Reader::Resolve(const PtxOperand& operand) const {
  if (operand.kind == PtxOperand::kImmediate)
    return PtxValue{std::nullopt, operand.bits};
  if (operand.kind != PtxOperand::kRegister) return std::nullopt;
  unsigned number = 0;
  if (operand.name[0] == '$' &&
      absl::SimpleAtoi(operand.name.substr(1), &number))
    return PtxValue{number, 0};
  const auto known = registers_.find(operand.name);
  if (known == registers_.end()) return std::nullopt;
  return known->second;
}

std::optional<PtxValue> Reader::Address(const PtxOperand& operand) const {
  if (operand.kind != PtxOperand::kAddress || operand.elements.size() != 1)
    return std::nullopt;
  std::optional<PtxValue> value = Resolve(operand.elements[0]);
  if (value) value->constant += operand.bits;
  return value;
}

// Copies, sums with a constant and comparisons with 0, of registers.
void Reader::Follow(const PtxInstruction& in) {
  if (in.operands.empty()) return;
  const std::string& target = in.operands[0].name;
  const std::string& name = in.opcode[0];
  const size_t count = in.guard.empty() ? in.operands.size() : 0;
  const auto a = count > 1 ? Resolve(in.operands[1]) : std::nullopt;
  const auto b = count > 2 ? Resolve(in.operands[2]) : std::nullopt;
  registers_.erase(target);
  tests_.erase(target);
  if (a && count == 2 && (name == "mov" || name == "cvta")) {
    registers_[target] = *a;
  } else if (a && b && count == 3 && name == "add" &&
             !(a->operand && b->operand)) {
    registers_[target] = {a->operand ? a->operand : b->operand,
                          a->constant + b->constant};
  } else if (a && b && count == 3 && name == "setp" && in.opcode.size() == 3 &&
             (HasPart(in, "ne") || HasPart(in, "eq")) && !b->operand &&
             b->constant == 0) {
    tests_[target] = {*a, HasPart(in, "eq")};
  }
}

bool Reader::Guard(const PtxInstruction& in, PtxAccess& access) const {
  if (in.guard.empty()) return true;
  const auto test = tests_.find(in.guard);
  if (test == tests_.end()) return false;
  access.guard = test->second.value;
  access.guard_is_zero = test->second.is_zero != in.guard_negated;
  return true;
}

// ld, ldu, st, atom, red.
bool Reader::PlainAccess(const PtxInstruction& in) {
  const std::string& name = in.opcode[0];
  PtxAccess access;
  access.reads = name != "st";
  access.writes = name != "ld" && name != "ldu";
  const bool address_is_first = name == "st" || name == "red";
  const size_t place = address_is_first ? 0 : 1;
  const std::optional<DataType> type = TypeOf(in);
  if (!type || in.operands.size() <= place || HasPart(in, "const") ||
      HasPart(in, "bulk") || HasPart(in, "async"))
    return false;
  const std::optional<PtxValue> address = Address(in.operands[place]);
  if (!address || !Guard(in, access)) return false;
  unsigned lanes = 1;
  for (unsigned width : {2, 4, 8}) {
    if (HasPart(in, "v" + std::to_string(width))) lanes = width;
  }
  access.address = *address;
  access.bytes.constant = uint64_t{type->bits} / 8 * lanes;
  access.type = type->element;
  out_.accesses.push_back(access);
  return true;
}

// cp.async of threads, and of blocks where it is no tensor.
bool Reader::Copy(const PtxInstruction& in) {
  for (const char* none : {"commit_group", "wait_group", "wait_all", "mbarrier",
                           "prefetch", "wait_group.read"}) {
    if (HasPart(in, none)) return true;
  }
  if (HasPart(in, "tensor") || HasPart(in, "reduce") || !HasPart(in, "global"))
    return false;
  const bool bulk = HasPart(in, "bulk");
  // The destination's space stands first.
  const auto global = std::find(in.opcode.begin(), in.opcode.end(), "global");
  const bool writes = std::none_of(
      in.opcode.begin(), global,
      [](const std::string& part) { return absl::StartsWith(part, "shared"); });
  PtxAccess access;
  access.reads = !writes;
  access.writes = writes;
  if (in.operands.size() < 3 || (writes && !bulk) || !Guard(in, access))
    return false;
  const auto address = Address(in.operands[writes ? 0 : 1]);
  // cp.async may read less than it fills: the fourth operand, unless that is a
  // cache policy.
  const bool partial =
      !bulk && in.operands.size() > 3 &&
      !(in.operands.size() == 4 && HasPart(in, "L2::cache_hint"));
  const auto bytes = Resolve(in.operands[partial ? 3 : 2]);
  if (!address || !bytes) return false;
  access.address = *address;
  access.bytes = *bytes;
  out_.accesses.push_back(access);
  return true;
}

bool Reader::Memory(const PtxInstruction& in) {
  const std::string& name = in.opcode[0];
  if (name == "cp") return Copy(in);
  if (NamesPrivateMemory(in)) return true;
  if (name == "wmma" && HasPart(in, "mma")) return true;
  if (name == "ld" || name == "ldu" || name == "st" || name == "atom" ||
      name == "red")
    return PlainAccess(in);
  return false;
}

void Reader::Read(const PtxInstruction& in) {
  out_.flops += FlopsOf(in);
  if (in.opcode[0] == "exit") out_.exits = true;
  if (!AccessesMemory(in.opcode[0])) {
    Follow(in);
  } else if (!Memory(in)) {
    out_.not_understood.push_back(in.text);
  }
}

// For text that the parser does not know (labels, directives): opcodes alone.
void ReadOpcodes(const std::string& text, InlinePtx& out) {
  for (absl::string_view statement :
       absl::StrSplit(text, absl::ByAnyChar(";\n{}"), absl::SkipWhitespace())) {
    statement = absl::StripAsciiWhitespace(statement);
    while (absl::StartsWith(statement, "@") ||
           absl::EndsWith(statement.substr(0, statement.find(' ')), ":")) {
      const size_t space = statement.find_first_of(" \t");
      if (space == absl::string_view::npos) break;
      statement = absl::StripLeadingAsciiWhitespace(statement.substr(space));
    }
    const absl::string_view opcode =
        statement.substr(0, statement.find_first_of(" \t"));
    PtxInstruction in;
    in.opcode = absl::StrSplit(opcode, '.');
    if (in.opcode[0] == "exit") out.exits = true;
    if (AccessesMemory(in.opcode[0]) && !NamesPrivateMemory(in))
      out.not_understood.emplace_back(opcode);
  }
}

}  // namespace

InlinePtx ReadInlinePtx(const std::string& text) {
  InlinePtx out;
  const absl::StatusOr<cpu::PtxCode> code = cpu::ParsePtx(text);
  if (!code.ok()) {
    ReadOpcodes(text, out);
    return out;
  }
  Reader reader(out);
  for (const PtxInstruction& in : code->instructions) reader.Read(in);
  return out;
}

}  // namespace reprise
