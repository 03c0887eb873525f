// Conversions in inline PTX.
#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/Intrinsics.h>

#include "absl/strings/str_cat.h"
#include "replay/device/cpu/lowering/ptx.h"

namespace reprise::cpu {

using llvm::StringRef;
using llvm::StringSwitch;
using llvm::Type;
using llvm::Value;

namespace {

Value* ClampInteger(llvm::IRBuilder<>& b, Value* value, const PtxType& from,
                    const PtxType& to) {
  // Saturation to the target's range, in a type that holds both.
  Type* wide = b.getInt128Ty();
  Value* w =
      from.is_signed() ? b.CreateSExt(value, wide) : b.CreateZExt(value, wide);
  const llvm::APInt low =
      to.is_signed() ? llvm::APInt::getSignedMinValue(to.bits).sext(128)
                     : llvm::APInt(128, 0);
  const llvm::APInt high =
      to.is_signed() ? llvm::APInt::getSignedMaxValue(to.bits).sext(128)
                     : llvm::APInt::getMaxValue(to.bits).zext(128);
  w = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, w, b.getInt(low));
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, w, b.getInt(high));
}

}  // namespace

// The name of an 8-bit format in the opcode; empty: none.
std::string PtxTranslator::ShortFormat(const PtxInstruction& in) {
  for (const std::string& token : in.opcode) {
    if (token == "e4m3x2" || token == "e5m2x2")
      return token.substr(0, token.size() - 2);
  }
  return "";
}

// Two 8-bit floating-point numbers in 16 bits from two floats or a pair of
// halves.
bool PtxTranslator::ToShortFormat(const PtxInstruction& in,
                                  const std::string& format) {
  Value* high;
  Value* low;
  if (in.opcode.back() == "f32" && in.operands.size() == 3) {
    high = Read(in.operands[1], {'f', 32, false});
    low = Read(in.operands[2], {'f', 32, false});
  } else if (in.opcode.back() == "f16x2" && in.operands.size() == 2) {
    Value* pair = Read(in.operands[1], {'h', 16, true});
    if (pair == nullptr) return false;
    low = b_.CreateFPExt(b_.CreateExtractElement(pair, uint64_t{0}),
                         b_.getFloatTy());
    high = b_.CreateFPExt(b_.CreateExtractElement(pair, uint64_t{1}),
                          b_.getFloatTy());
  } else {
    return false;
  }
  if (high == nullptr || low == nullptr) return false;
  auto convert = [&](Value* value) {
    return CallLibrary(b_, "__reprise_cvt_" + format + "_f32", b_.getInt16Ty(),
                       {value, b_.getInt1(Has(in, "relu"))});
  };
  Write(in.operands[0],
        b_.CreateOr(b_.CreateShl(convert(high), 8), convert(low)));
  return true;
}

// And back to a pair of halves.
bool PtxTranslator::FromShortFormat(const PtxInstruction& in,
                                    const std::string& format) {
  if (in.operands.size() != 2 || !Has(in, "f16x2")) return false;
  Value* pair = Bits(in.operands[1], 16);
  if (pair == nullptr) return false;
  auto convert = [&](Value* code) {
    return b_.CreateZExt(
        CallLibrary(b_, "__reprise_cvt_f16_" + format, b_.getInt16Ty(),
                    {code, b_.getInt1(Has(in, "relu"))}),
        b_.getInt32Ty());
  };
  Value* low = convert(b_.CreateAnd(pair, 0xff));
  Value* high = convert(b_.CreateLShr(pair, 8));
  Write(in.operands[0], b_.CreateOr(b_.CreateShl(high, 16), low));
  return true;
}

// cvt.pack.sat.type.s32 d, a, b{, c}: saturated a above saturated b; of 8 bits,
// the lower half of c above both.
bool PtxTranslator::Pack(const PtxInstruction& in) {
  PtxType to;
  if (in.opcode.size() < 5 || !ParsePtxType(in.opcode[3], &to)) return false;
  const size_t operands = to.bits == 8 ? 4 : 3;
  if (in.operands.size() != operands || to.bits > 16) return false;
  const PtxType word = {'s', 32, false};
  Type* i32 = b_.getInt32Ty();
  Value* result = b_.getInt32(0);
  if (to.bits == 8) {
    result = Bits(in.operands[3], 32);
    if (result == nullptr) return false;
    result = b_.CreateShl(result, 16);
  }
  for (unsigned i = 0; i < 2; ++i) {
    Value* value = Bits(in.operands[2 - i], 32);
    if (value == nullptr) return false;
    value = b_.CreateTrunc(ClampInteger(b_, value, word, to),
                           b_.getIntNTy(to.bits));
    result = b_.CreateOr(result,
                         b_.CreateShl(b_.CreateZExt(value, i32), i * to.bits));
  }
  Write(in.operands[0], result);
  return true;
}

bool PtxTranslator::Convert(const PtxInstruction& in) {
  PtxType to, from;
  if (in.opcode[0] != "cvt") return false;
  if (Has(in, "pack")) return Pack(in);
  if (const std::string format = ShortFormat(in); !format.empty()) {
    return format + "x2" == in.opcode.back() ? FromShortFormat(in, format)
                                             : ToShortFormat(in, format);
  }
  if (in.text == "cvt.rna.tf32.f32" && in.operands.size() == 2) {
    Value* bits = Bits(in.operands[1], 32);
    if (bits == nullptr) return false;
    Write(in.operands[0],
          CallLibrary(b_, "__reprise_cvt_tf32", b_.getInt32Ty(), {bits}));
    return true;
  }
  if (!TypeOf(in, &from, 0) || !TypeOf(in, &to, 1)) return false;
  if (Has(in, "satfinite") || Has(in, "rs") || Has(in, "rna")) return false;
  Conversion how;
  bool to_integral = false;
  how.rounding = RoundingOf(in, &to_integral);
  how.source_signed = from.is_signed();
  how.target_signed = to.is_signed();
  how.flush = Has(in, "ftz");
  how.saturate = Has(in, "sat");
  how.relu = Has(in, "relu");
  if (to.packed && !from.packed && in.operands.size() == 3) {
    // Two floats into one register; the first operand goes to the upper half.
    PtxType element = to;
    element.packed = false;
    Value* high = Read(in.operands[1], from);
    Value* low = Read(in.operands[2], from);
    if (high == nullptr || low == nullptr) return false;
    Value* pair = llvm::PoisonValue::get(IrType(to));
    pair = b_.CreateInsertElement(
        pair, EmitConversion(b_, low, IrType(element), how), uint64_t{0});
    pair = b_.CreateInsertElement(
        pair, EmitConversion(b_, high, IrType(element), how), uint64_t{1});
    Write(in.operands[0], pair);
    return true;
  }
  if (in.operands.size() != 2 || to.packed || from.packed) return false;
  Value* value = Read(in.operands[1], from);
  if (value == nullptr) return false;
  Value* result;
  if (!from.is_float() && !to.is_float()) {
    if (how.saturate) value = ClampInteger(b_, value, from, to);
    const bool sign = how.saturate || from.is_signed();
    result = sign ? b_.CreateSExtOrTrunc(value, IrType(to))
                  : b_.CreateZExtOrTrunc(value, IrType(to));
  } else if (from.is_float() && to.is_float() && to_integral) {
    FloatOp round;
    round.name = StringSwitch<StringRef>(StringRef(&how.rounding, 1))
                     .Case("z", "trunc")
                     .Case("m", "floor")
                     .Case("p", "ceil")
                     .Default("round");
    round.flush = how.flush;
    result = EmitFloatOp(b_, round, {value});
    how.rounding = 'n';
    if (result != nullptr) result = EmitConversion(b_, result, IrType(to), how);
  } else {
    result = EmitConversion(b_, value, IrType(to), how);
  }
  if (result == nullptr) return false;
  // A result narrower than its register is extended into it.
  const unsigned width = WidthOf(in.operands[0]);
  if (!to.is_float() && width > to.bits) {
    Type* reg = b_.getIntNTy(width);
    result = to.is_signed() ? b_.CreateSExt(result, reg)
                            : b_.CreateZExt(result, reg);
  }
  Write(in.operands[0], result);
  return true;
}

}  // namespace reprise::cpu
