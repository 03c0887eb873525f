// Inline PTX to IR: what the parts share. Internal to the lowering.
#ifndef REPRISE_REPLAY_DEVICE_CPU_LOWERING_PTX_H_
#define REPRISE_REPLAY_DEVICE_CPU_LOWERING_PTX_H_

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>

#include <map>
#include <string>
#include <vector>

#include "replay/device/cpu/lowering/internal.h"
#include "replay/device/cpu/lowering/ptx_parser.h"

namespace reprise::cpu {

// "f32", "u16", "bf16x2", "b64", "pred".
struct PtxType {
  char kind = 'b';  // s u b f h (half) r (bfloat) p
  unsigned bits = 32;
  bool packed = false;  // two of them in one register

  bool is_float() const { return kind == 'f' || kind == 'h' || kind == 'r'; }
  bool is_signed() const { return kind == 's'; }
  unsigned register_bits() const { return packed ? 2 * bits : bits; }
};
bool ParsePtxType(const std::string& token, PtxType* type);

// One asm statement being turned into IR. Registers hold integers of their
// width; Read and Write convert to and from what an instruction works on.
class PtxTranslator {
 public:
  PtxTranslator(LoweringState& state, llvm::CallInst& call, PtxCode code);

  // FAILED_PRECONDITION names the first instruction that is not known.
  absl::Status Translate();

 private:
  // True when the instruction was one of the group's and is done.
  bool Move(const PtxInstruction& in);
  bool Integer(const PtxInstruction& in);
  bool IntegerBits(const PtxInstruction& in);
  bool Multiply(const PtxInstruction& in);
  bool Carry(const PtxInstruction& in);
  bool Float(const PtxInstruction& in);
  bool Compare(const PtxInstruction& in);
  bool Choose(const PtxInstruction& in);
  bool Convert(const PtxInstruction& in);
  bool Memory(const PtxInstruction& in);
  bool CopyAsync(const PtxInstruction& in);
  bool Atomic(const PtxInstruction& in);
  bool Barrier(const PtxInstruction& in);
  bool Synchronize(const PtxInstruction& in);

  bool PackedInteger(const PtxInstruction& in, const PtxType& type);
  llvm::Value* NotNegative(llvm::Value* value);
  llvm::Value* Condition(const PtxInstruction& in, const PtxType& type);
  bool WritePredicates(const PtxInstruction& in, const PtxType& type,
                       llvm::Value* condition);
  bool WriteSet(const PtxInstruction& in, const PtxType& type,
                llvm::Value* condition);
  static std::string ShortFormat(const PtxInstruction& in);
  bool ToShortFormat(const PtxInstruction& in, const std::string& format);
  bool FromShortFormat(const PtxInstruction& in, const std::string& format);
  bool Pack(const PtxInstruction& in);
  bool AtomicVector(const PtxInstruction& in, const PtxType& type,
                    llvm::Value* pointer);
  bool WarpWide(const PtxInstruction& in);
  bool BlockBarrier(const PtxInstruction& in,
                    llvm::ArrayRef<llvm::Value*> args);
  bool DotProduct(const PtxInstruction& in);
  bool Video(const PtxInstruction& in);
  llvm::Value* VideoLane(const PtxInstruction& in, llvm::StringRef op,
                         llvm::Value* a, llvm::Value* b, bool is_signed);

  bool Instruction(const PtxInstruction& in);
  // What Instruction does with what is no pure function of registers.
  bool Effect(const PtxInstruction& in);
  bool GuardedEffect(const PtxInstruction& in);
  void DefineInputs();
  void ReturnOutputs();

  // The last type of the opcode, or of its end after `skip` types.
  static bool TypeOf(const PtxInstruction& in, PtxType* type, int skip = 0);
  static bool Has(const PtxInstruction& in, const char* token);
  static char RoundingOf(const PtxInstruction& in, bool* to_integer);

  llvm::Type* IrType(const PtxType& type);
  llvm::Value* Bits(const PtxOperand& operand, unsigned width);
  llvm::Value* Read(const PtxOperand& operand, const PtxType& type);
  void Write(const PtxOperand& target, llvm::Value* value);
  // Of a result or a declared register; 0 for others.
  unsigned WidthOf(const PtxOperand& target) const;
  llvm::Value* Special(const std::string& name);
  llvm::Value* SharedBase();
  llvm::Value* SharedAddress(llvm::Value* address);  // i64
  llvm::Value* Pointer(const PtxInstruction& in, const PtxOperand& address);
  llvm::Value* Select(llvm::Value* condition, llvm::Value* value,
                      const PtxType& type);
  llvm::Value* CompareValues(const std::string& op, llvm::Value* a,
                             llvm::Value* b, const PtxType& type);
  llvm::Value* CallIntrinsic(llvm::StringRef name, llvm::Type* result,
                             llvm::ArrayRef<llvm::Value*> arguments);

  LoweringState& state_;
  llvm::CallInst& call_;
  PtxCode code_;
  llvm::IRBuilder<> b_;
  std::map<std::string, llvm::Value*> values_;
  std::map<std::string, unsigned> outputs_;  // "$0" to its width
  std::vector<std::string> output_order_;
  llvm::Value* guard_ = nullptr;  // of the instruction at hand
  llvm::Value* carry_ = nullptr;  // i1
};

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_LOWERING_PTX_H_
