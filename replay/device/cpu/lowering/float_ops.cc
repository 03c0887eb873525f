// Floating-point operations and conversions with PTX's modifiers, as host IR.
// What IR cannot say (directed rounding, approximations) calls device_library.
#include <llvm/IR/Intrinsics.h>

#include "replay/device/cpu/lowering/internal.h"

namespace reprise::cpu {
namespace {

using llvm::ArrayRef;
using llvm::IRBuilder;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Type;
using llvm::Value;
using llvm::Intrinsic::ID;

StringRef TypeSuffix(Type* type) { return type->isDoubleTy() ? "f64" : "f32"; }

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

// Neither -0 nor what is below it; NaN stays.
Value* NotNegative(IRBuilder<>& b, Value* value) {
  Value* zero = llvm::ConstantFP::get(value->getType(), 0.0);
  return b.CreateSelect(b.CreateFCmpOLE(value, zero), zero, value);
}

Value* MinMax(IRBuilder<>& b, const FloatOp& op, Value* x, Value* y) {
  Value* sign = nullptr;
  Value* left = x;
  Value* right = y;
  if (op.absolute) {
    Type* bits = b.getIntNTy(x->getType()->getScalarSizeInBits());
    sign = b.CreateXor(b.CreateBitCast(x, bits), b.CreateBitCast(y, bits));
    left = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    right = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, y);
  }
  const bool minimum = op.name == "min";
  // -0 is less than +0 in all of them.
  const ID id = op.propagate_nan ? (minimum ? llvm::Intrinsic::minimum
                                            : llvm::Intrinsic::maximum)
                                 : (minimum ? llvm::Intrinsic::minimumnum
                                            : llvm::Intrinsic::maximumnum);
  Value* result = b.CreateBinaryIntrinsic(id, left, right);
  if (sign == nullptr) return result;
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result,
                                 b.CreateBitCast(sign, x->getType()));
}

// The hardware multiplies by the divisor's reciprocal, which is zero where it
// would be denormal.
Value* ApproximateQuotient(IRBuilder<>& b, Value* x, Value* y) {
  Type* type = y->getType();
  Value* large =
      b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, y),
                      llvm::ConstantFP::get(type, 0x1p126));
  Value* zero = b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign,
                                        llvm::ConstantFP::get(type, 0.0), y);
  return b.CreateSelect(large, b.CreateFMul(x, zero), b.CreateFDiv(x, y));
}

Value* EmitRounded(IRBuilder<>& b, const FloatOp& op, ArrayRef<Value*> args) {
  Type* type = args[0]->getType();
  SmallVector<Value*, 3> operands(args.begin(), args.end());
  StringRef name = op.name;
  if (name == "sub") {
    name = "add";
    operands[1] = b.CreateFNeg(operands[1]);
  } else if (name == "rcp") {
    name = "div";
    operands.insert(operands.begin(), llvm::ConstantFP::get(type, 1.0));
  }
  if (op.rounding != 'n') {
    return CallLibrary(b,
                       "__reprise_" + name + "_" + RoundingSuffix(op.rounding) +
                           "_" + TypeSuffix(type),
                       type, operands);
  }
  if (name == "add") return b.CreateFAdd(operands[0], operands[1]);
  if (name == "mul") return b.CreateFMul(operands[0], operands[1]);
  if (name == "div" && op.name == "div" && op.approximate)
    return ApproximateQuotient(b, operands[0], operands[1]);
  if (name == "div") return b.CreateFDiv(operands[0], operands[1]);
  if (name == "sqrt")
    return b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, operands[0]);
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {type}, operands);
}

Value* EmitUnary(IRBuilder<>& b, const FloatOp& op, Value* x) {
  Type* type = x->getType();
  if (op.name == "neg") return b.CreateFNeg(x);
  if (op.name == "abs") return b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  if (op.name == "saturate") return Saturate(b, x);
  if (op.name == "ceil") return EmitRoundToIntegral(b, x, 'p');
  if (op.name == "floor") return EmitRoundToIntegral(b, x, 'm');
  if (op.name == "trunc") return EmitRoundToIntegral(b, x, 'z');
  if (op.name == "round") return EmitRoundToIntegral(b, x, 'n');
  if (op.name == "rsqrt") {
    Value* root = b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
    return b.CreateFDiv(llvm::ConstantFP::get(type, 1.0), root);
  }
  if (!type->isFloatTy()) return nullptr;
  if (op.name == "ex2" || op.name == "lg2" || op.name == "sin" ||
      op.name == "cos" || op.name == "tanh") {
    return CallLibrary(b, "__reprise_" + op.name + "_approx_f32", type, {x});
  }
  return nullptr;
}

// neg and abs; of short types NaN becomes the canonical one.
Value* EmitSign(IRBuilder<>& b, const FloatOp& op, Value* x) {
  Type* type = x->getType();
  Value* result = EmitUnary(b, op, op.flush ? FlushDenormal(b, x) : x);
  if (!type->isHalfTy() && !type->isBFloatTy()) return result;
  Value* canonical = b.CreateBitCast(b.getInt16(0x7fff), type);
  return b.CreateSelect(IsNan(b, x), canonical, result);
}

size_t OperandCount(StringRef name) {
  if (name == "fma") return 3;
  if (name == "add" || name == "sub" || name == "mul" || name == "div" ||
      name == "min" || name == "max") {
    return 2;
  }
  return 1;
}

// The result of a float instruction as a double that compares with the smallest
// normal number as the exact result does; null where rounding cannot reach
// that.
Value* BeforeRounding(IRBuilder<>& b, const FloatOp& op,
                      ArrayRef<Value*> operands) {
  if (!operands[0]->getType()->isFloatTy()) return nullptr;
  Type* f64 = b.getDoubleTy();
  SmallVector<Value*, 3> wide;
  for (Value* operand : operands) wide.push_back(b.CreateFPExt(operand, f64));
  if (op.name == "mul") return b.CreateFMul(wide[0], wide[1]);
  if (op.name == "div") return b.CreateFDiv(wide[0], wide[1]);
  if (op.name == "rcp")
    return b.CreateFDiv(llvm::ConstantFP::get(f64, 1.0), wide[0]);
  if (op.name == "fma") return CallLibrary(b, "__reprise_fma_odd", f64, wide);
  return nullptr;
}

// .ftz: what is below the normal numbers becomes zero; a float before it is
// rounded, a half when rounded to as many bits as normal ones have. An exact
// zero has its sign from rounding.
Value* ZeroWhereTiny(IRBuilder<>& b, Value* rounded, Value* exact) {
  Type* type = rounded->getType();
  const double smallest = type->isHalfTy() ? 0x1p-14 - 0x1p-26 : 0x1p-126;
  Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, exact);
  Value* tiny = b.CreateFCmpOLT(
      magnitude, llvm::ConstantFP::get(exact->getType(), smallest));
  tiny = b.CreateAnd(
      tiny,
      b.CreateFCmpONE(exact, llvm::Constant::getNullValue(exact->getType())));
  Value* zero =
      b.CreateFPTrunc(b.CreateBinaryIntrinsic(
                          llvm::Intrinsic::copysign,
                          llvm::ConstantFP::get(exact->getType(), 0.0), exact),
                      type);
  return b.CreateSelect(tiny, zero, rounded);
}

// float or double.
Value* EmitScalar(IRBuilder<>& b, const FloatOp& op, ArrayRef<Value*> args) {
  if (args.size() != OperandCount(op.name)) return nullptr;
  SmallVector<Value*, 3> operands(args.begin(), args.end());
  if (op.flush) {
    for (Value*& operand : operands) operand = FlushDenormal(b, operand);
  }
  Value* result;
  if (op.name == "min" || op.name == "max") {
    result = MinMax(b, op, operands[0], operands[1]);
  } else if (operands.size() > 1 || op.name == "rcp" || op.name == "sqrt") {
    result = EmitRounded(b, op, operands);
  } else {
    result = EmitUnary(b, op, operands[0]);
  }
  if (result == nullptr) return nullptr;
  if (op.flush) {
    Value* exact = BeforeRounding(b, op, operands);
    result = exact != nullptr ? ZeroWhereTiny(b, result, exact)
                              : FlushDenormal(b, result);
  }
  if (op.saturate) result = Saturate(b, result);
  return op.relu ? NotNegative(b, result) : result;
}

bool IsShort(Type* type) { return type->isHalfTy() || type->isBFloatTy(); }

Value* Widen(IRBuilder<>& b, Value* value) {
  if (value->getType()->isHalfTy()) return b.CreateFPExt(value, b.getFloatTy());
  Value* bits =
      b.CreateZExt(b.CreateBitCast(value, b.getInt16Ty()), b.getInt32Ty());
  return b.CreateBitCast(b.CreateShl(bits, 16), b.getFloatTy());
}

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

// NaN becomes the canonical one.
Value* NearestShort(IRBuilder<>& b, Value* value, Type* target) {
  if (value->getType()->isDoubleTy()) value = OddFloat(b, value);
  if (!target->isHalfTy()) return NearestBFloat(b, value);
  Value* canonical = b.CreateBitCast(b.getInt16(0x7fff), target);
  return b.CreateSelect(IsNan(b, value), canonical,
                        b.CreateFPTrunc(value, target));
}

// One step towards the exact value's other side, for directed rounding.
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

Value* EmitShort(IRBuilder<>& b, const FloatOp& op, ArrayRef<Value*> args) {
  Type* type = args[0]->getType();
  SmallVector<Value*, 3> wide;
  for (Value* argument : args)
    wide.push_back(Widen(b, op.flush ? FlushDenormal(b, argument) : argument));
  FloatOp inner = op;
  // Denormals of halves are normal in float; those of bfloats are not.
  inner.flush = op.flush && type->isBFloatTy();
  inner.relu = false;  // small negative numbers may still become -0
  Value* result;
  if (op.name == "fma" && args.size() == 3) {
    for (Value*& value : wide) value = b.CreateFPExt(value, b.getDoubleTy());
    result = CallLibrary(b, "__reprise_fma_odd", b.getDoubleTy(), wide);
    if (op.saturate) result = Saturate(b, result);
  } else {
    result = EmitScalar(b, inner, wide);
  }
  if (result == nullptr) return nullptr;
  Value* exact = result;
  result = NearestShort(b, exact, type);
  // The hardware's approximation cuts what is not too large.
  if (op.name == "ex2") {
    Value* infinite =
        b.CreateFCmpOEQ(result, llvm::ConstantFP::getInfinity(type));
    result =
        b.CreateSelect(infinite, result, DirectShort(b, exact, result, 'z'));
  }
  if (op.flush && type->isHalfTy()) result = ZeroWhereTiny(b, result, exact);
  return op.relu ? NotNegative(b, result) : result;
}

Value* EmitVector(IRBuilder<>& b, const FloatOp& op, ArrayRef<Value*> args) {
  auto* type = llvm::cast<llvm::FixedVectorType>(args[0]->getType());
  Value* result = llvm::PoisonValue::get(type);
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    SmallVector<Value*, 3> elements;
    for (Value* argument : args)
      elements.push_back(b.CreateExtractElement(argument, lane));
    Value* element = EmitFloatOp(b, op, elements);
    if (element == nullptr) return nullptr;
    result = b.CreateInsertElement(result, element, lane);
  }
  return result;
}

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

Value* FlushDenormal(IRBuilder<>& b, Value* value) {
  Type* type = value->getType();
  if (type->isBFloatTy()) return value;
  Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
  const double smallest = type->isHalfTy()    ? 0x1p-14
                          : type->isFloatTy() ? 0x1p-126
                                              : 0x1p-1022;
  Value* small =
      b.CreateFCmpOLT(magnitude, llvm::ConstantFP::get(type, smallest));
  Value* zero = b.CreateBinaryIntrinsic(
      llvm::Intrinsic::copysign, llvm::ConstantFP::get(type, 0.0), value);
  return b.CreateSelect(small, zero, value);
}

Value* EmitRoundToIntegral(IRBuilder<>& b, Value* value, char rounding) {
  ID id = llvm::Intrinsic::roundeven;
  if (rounding == 'z') id = llvm::Intrinsic::trunc;
  if (rounding == 'm') id = llvm::Intrinsic::floor;
  if (rounding == 'p') id = llvm::Intrinsic::ceil;
  return b.CreateUnaryIntrinsic(id, value);
}

Value* EmitFloatOp(IRBuilder<>& b, const FloatOp& op, ArrayRef<Value*> args) {
  Type* type = args[0]->getType();
  for (Value* argument : args) {
    if (argument->getType() != type) return nullptr;
  }
  if (type->isVectorTy()) return EmitVector(b, op, args);
  if (op.name == "neg" || op.name == "abs") return EmitSign(b, op, args[0]);
  if (IsShort(type)) return EmitShort(b, op, args);
  if (!type->isFloatTy() && !type->isDoubleTy()) return nullptr;
  return EmitScalar(b, op, args);
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
