// Conversions with PTX's modifiers, as host IR, and what operations on short
// types need of them.
#include <llvm/IR/Intrinsics.h>

#include "replay/device/cpu/lowering/float_ops.h"

namespace reprise::cpu {

using llvm::IRBuilder;
using llvm::Type;
using llvm::Value;
using llvm::Intrinsic::ID;

llvm::StringRef TypeSuffix(Type* type) {
  return type->isDoubleTy() ? "f64" : "f32";
}

std::string RoundingSuffix(char rounding) {
  return std::string("r") + rounding;
}

Value* IsNan(IRBuilder<>& b, Value* value) {
  return b.CreateFCmpUNO(value, value);
}

Value* Saturate(IRBuilder<>& b, Value* value) {
  Type* type = value->getType();
  Value* zero = llvm::ConstantFP::get(type, 0.0);
  Value* one = llvm::ConstantFP::get(type, 1.0);
  // Comparisons with NaN are false: NaN becomes +0.
  Value* low = b.CreateSelect(b.CreateFCmpOGT(value, zero), value, zero);
  return b.CreateSelect(b.CreateFCmpOGT(low, one), one, low);
}

Value* NotNegative(IRBuilder<>& b, Value* value) {
  Value* zero = llvm::ConstantFP::get(value->getType(), 0.0);
  return b.CreateSelect(b.CreateFCmpOLE(value, zero), zero, value);
}

bool IsShort(Type* type) { return type->isHalfTy() || type->isBFloatTy(); }

Value* Widen(IRBuilder<>& b, Value* value) {
  if (value->getType()->isHalfTy()) return b.CreateFPExt(value, b.getFloatTy());
  Value* bits =
      b.CreateZExt(b.CreateBitCast(value, b.getInt16Ty()), b.getInt32Ty());
  return b.CreateBitCast(b.CreateShl(bits, 16), b.getFloatTy());
}

namespace {

// float to bfloat, to nearest even; NaN becomes the canonical one.
Value* NearestBFloat(IRBuilder<>& b, Value* value) {
  Value* bits = b.CreateBitCast(value, b.getInt32Ty());
  Value* odd = b.CreateAnd(b.CreateLShr(bits, 16), 1);
  Value* rounded = b.CreateAdd(b.CreateAdd(bits, odd), b.getInt32(0x7fff));
  Value* top = b.CreateTrunc(b.CreateLShr(rounded, 16), b.getInt16Ty());
  Value* checked = b.CreateSelect(IsNan(b, value), b.getInt16(0x7fff), top);
  return b.CreateBitCast(checked, b.getBFloatTy());
}

// double to float, rounded to odd, so that narrowing again rounds once.
Value* OddFloat(IRBuilder<>& b, Value* value) {
  Value* nearest = b.CreateFPTrunc(value, b.getFloatTy());
  Value* back = b.CreateFPExt(nearest, b.getDoubleTy());
  Value* bits = b.CreateBitCast(nearest, b.getInt32Ty());
  Value* even = b.CreateICmpEQ(b.CreateAnd(bits, 1), b.getInt32(0));
  Value* inexact = b.CreateFCmpONE(value, back);
  Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
  Value* larger = b.CreateFCmpOGT(
      magnitude, b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back));
  Value* moved = b.CreateSelect(larger, b.CreateAdd(bits, b.getInt32(1)),
                                b.CreateSub(bits, b.getInt32(1)));
  Value* chosen = b.CreateSelect(b.CreateAnd(even, inexact), moved, bits);
  return b.CreateBitCast(chosen, b.getFloatTy());
}

}  // namespace

Value* NearestShort(IRBuilder<>& b, Value* value, Type* target) {
  if (value->getType()->isDoubleTy()) value = OddFloat(b, value);
  if (!target->isHalfTy()) return NearestBFloat(b, value);
  Value* canonical = b.CreateBitCast(b.getInt16(0x7fff), target);
  return b.CreateSelect(IsNan(b, value), canonical,
                        b.CreateFPTrunc(value, target));
}

Value* DirectShort(IRBuilder<>& b, Value* wide, Value* narrow, char rounding) {
  Type* type = narrow->getType();
  Value* back = Widen(b, narrow);
  if (wide->getType()->isDoubleTy())
    back = b.CreateFPExt(back, wide->getType());
  Value* bits = b.CreateBitCast(narrow, b.getInt16Ty());
  Value* negative = b.CreateICmpSLT(bits, b.getInt16(0));
  Value* zero = b.CreateICmpEQ(b.CreateAnd(bits, 0x7fff), b.getInt16(0));
  Value* larger = b.CreateAdd(bits, b.getInt16(1));
  Value* smaller = b.CreateSub(bits, b.getInt16(1));
  Value* down = b.CreateSelect(negative, larger, smaller);
  down = b.CreateSelect(zero, b.getInt16(static_cast<uint16_t>(0x8001)), down);
  Value* up = b.CreateSelect(negative, smaller, larger);
  up = b.CreateSelect(zero, b.getInt16(1), up);
  Value* too_high = b.CreateFCmpOGT(back, wide);
  Value* too_low = b.CreateFCmpOLT(back, wide);
  Value* result = bits;
  if (rounding == 'm') {
    result = b.CreateSelect(too_high, down, bits);
  } else if (rounding == 'p') {
    result = b.CreateSelect(too_low, up, bits);
  } else {
    Value* to_zero = b.CreateOr(b.CreateAnd(too_high, b.CreateNot(negative)),
                                b.CreateAnd(too_low, negative));
    result = b.CreateSelect(to_zero, smaller, bits);
  }
  return b.CreateBitCast(result, type);
}

namespace {

Value* FloatToInteger(IRBuilder<>& b, Value* value, Type* target,
                      const Conversion& how) {
  if (IsShort(value->getType())) value = Widen(b, value);
  if (how.flush && value->getType()->isFloatTy())
    value = FlushDenormal(b, value);
  Value* integral = EmitRoundToIntegral(b, value, how.rounding);
  Value* result =
      b.CreateIntrinsic(how.target_signed ? llvm::Intrinsic::fptosi_sat
                                          : llvm::Intrinsic::fptoui_sat,
                        {target, value->getType()}, {integral});
  const unsigned width = target->getIntegerBitWidth();
  if (width < 64 && !value->getType()->isDoubleTy())
    return result;  // NaN gives 0
  Value* top = llvm::ConstantInt::get(target, llvm::APInt::getSignMask(width));
  return b.CreateSelect(IsNan(b, value), top, result);
}

// What a double holds and rounds to a short type as the integer does: of large
// ones the lowest 12 bits are 0 or, when any was set, a half.
Value* StickyInteger(IRBuilder<>& b, Value* value, bool is_signed) {
  Value* magnitude = is_signed ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs,
                                                         value, b.getFalse())
                               : value;
  Value* large = b.CreateICmpUGE(magnitude, b.getInt64(uint64_t{1} << 53));
  Value* rest = b.CreateAnd(value, 0xfff);
  Value* half =
      b.CreateSelect(b.CreateIsNull(rest), b.getInt64(0), b.getInt64(0x800));
  Value* cut = b.CreateOr(b.CreateAnd(value, ~uint64_t{0xfff}), half);
  return b.CreateSelect(large, cut, value);
}

Value* IntegerToFloat(IRBuilder<>& b, Value* value, Type* target,
                      const Conversion& how) {
  const unsigned width = value->getType()->getIntegerBitWidth();
  Type* wide = width <= 32 ? b.getInt32Ty() : b.getInt64Ty();
  value =
      how.source_signed ? b.CreateSExt(value, wide) : b.CreateZExt(value, wide);
  if (IsShort(target)) {
    if (width == 64) value = StickyInteger(b, value, how.source_signed);
    Value* exact = how.source_signed ? b.CreateSIToFP(value, b.getDoubleTy())
                                     : b.CreateUIToFP(value, b.getDoubleTy());
    return EmitConversion(b, exact, target, how);
  }
  const bool exact = target->isDoubleTy() && wide->isIntegerTy(32);
  if (how.rounding == 'n' || exact) {
    return how.source_signed ? b.CreateSIToFP(value, target)
                             : b.CreateUIToFP(value, target);
  }
  return CallLibrary(b,
                     "__reprise_cvt_" + RoundingSuffix(how.rounding) + "_" +
                         TypeSuffix(target) +
                         (how.source_signed ? "_s" : "_u") +
                         (wide->isIntegerTy(32) ? "32" : "64"),
                     target, {value});
}

// NaN of a double keeps its sign and as much of its payload as fits.
Value* KeepNan(IRBuilder<>& b, Value* value, Value* result) {
  Type* type = result->getType();
  const bool half = type->isHalfTy();
  Value* bits = b.CreateBitCast(value, b.getInt64Ty());
  Value* sign = b.CreateAnd(b.CreateLShr(bits, 48), 0x8000);
  Value* payload =
      b.CreateAnd(b.CreateLShr(bits, half ? 42 : 45), half ? 0x3ff : 0x7f);
  Value* nan = b.CreateOr(b.CreateOr(sign, payload), half ? 0x7e00 : 0x7fc0);
  nan = b.CreateBitCast(b.CreateTrunc(nan, b.getInt16Ty()), type);
  return b.CreateSelect(IsNan(b, value), nan, result);
}

Value* FloatToFloat(IRBuilder<>& b, Value* value, Type* target,
                    const Conversion& how) {
  Type* source = value->getType();
  if (how.flush && source->isFloatTy()) value = FlushDenormal(b, value);
  Value* result = value;
  if (IsShort(source) && source != target) {
    result = value = Widen(b, value);
    source = value->getType();
  }
  if (IsShort(target) && source != target) {
    result = NearestShort(b, value, target);
    if (how.rounding != 'n')
      result = DirectShort(b, value, result, how.rounding);
    if (source->isDoubleTy()) result = KeepNan(b, value, result);
  } else if (source->isDoubleTy() && target->isFloatTy()) {
    result = how.rounding == 'n'
                 ? b.CreateFPTrunc(value, target)
                 : CallLibrary(b,
                               "__reprise_cvt_" + RoundingSuffix(how.rounding) +
                                   "_f32_f64",
                               target, {value});
  } else if (source->isFloatTy() && target->isDoubleTy()) {
    result = b.CreateFPExt(value, target);
  }
  if (how.flush && target->isFloatTy()) result = FlushDenormal(b, result);
  return result;
}

}  // namespace

Value* EmitRoundToIntegral(IRBuilder<>& b, Value* value, char rounding) {
  ID id = llvm::Intrinsic::roundeven;
  if (rounding == 'z') id = llvm::Intrinsic::trunc;
  if (rounding == 'm') id = llvm::Intrinsic::floor;
  if (rounding == 'p') id = llvm::Intrinsic::ceil;
  return b.CreateUnaryIntrinsic(id, value);
}

Value* EmitConversion(IRBuilder<>& b, Value* value, Type* target,
                      const Conversion& how) {
  Type* source = value->getType();
  Value* result;
  if (source->isFloatingPointTy() && target->isIntegerTy()) {
    return FloatToInteger(b, value, target, how);
  }
  if (source->isIntegerTy() && target->isFloatingPointTy()) {
    result = IntegerToFloat(b, value, target, how);
  } else {
    result = FloatToFloat(b, value, target, how);
  }
  if (how.relu || how.saturate) {
    result = how.relu ? NotNegative(b, result) : Saturate(b, result);
  }
  return result;
}

}  // namespace reprise::cpu
