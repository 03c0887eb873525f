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
  const ID id =
      op.propagate_nan
          ? (minimum ? llvm::Intrinsic::minimum : llvm::Intrinsic::maximum)
          : (minimum ? llvm::Intrinsic::minnum : llvm::Intrinsic::maxnum);
  Value* result = b.CreateBinaryIntrinsic(id, left, right);
  if (sign == nullptr) return result;
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, result,
                                 b.CreateBitCast(sign, x->getType()));
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

size_t OperandCount(StringRef name) {
  if (name == "fma") return 3;
  if (name == "add" || name == "sub" || name == "mul" || name == "div" ||
      name == "min" || name == "max") {
    return 2;
  }
  return 1;
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
  if (op.flush) result = FlushDenormal(b, result);
  if (op.saturate) result = Saturate(b, result);
  if (op.relu) {
    Value* zero = llvm::ConstantFP::get(result->getType(), 0.0);
    // NaN stays NaN.
    result = b.CreateSelect(b.CreateFCmpOLT(result, zero), zero, result);
  }
  return result;
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

Value* NearestShort(IRBuilder<>& b, Value* value, Type* target) {
  if (value->getType()->isDoubleTy()) value = OddFloat(b, value);
  if (target->isHalfTy()) return b.CreateFPTrunc(value, target);
  return NearestBFloat(b, value);
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
  for (Value* argument : args) wide.push_back(Widen(b, argument));
  FloatOp inner = op;
  inner.flush = false;  // denormals of the short type are normal in float
  Value* result;
  if (op.name == "fma" && args.size() == 3) {
    for (Value*& value : wide) value = b.CreateFPExt(value, b.getDoubleTy());
    result = CallLibrary(b, "__reprise_fma_odd", b.getDoubleTy(), wide);
    if (op.saturate) result = Saturate(b, result);
    if (op.relu) {
      Value* zero = llvm::ConstantFP::get(result->getType(), 0.0);
      result = b.CreateSelect(b.CreateFCmpOLT(result, zero), zero, result);
    }
  } else {
    result = EmitScalar(b, inner, wide);
  }
  return result == nullptr ? nullptr : NearestShort(b, result, type);
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

Value* IntegerToFloat(IRBuilder<>& b, Value* value, Type* target,
                      const Conversion& how) {
  const unsigned width = value->getType()->getIntegerBitWidth();
  Type* wide = width <= 32 ? b.getInt32Ty() : b.getInt64Ty();
  value =
      how.source_signed ? b.CreateSExt(value, wide) : b.CreateZExt(value, wide);
  if (IsShort(target)) {
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
  if (!type->isFloatTy()) return value;
  Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
  Value* small =
      b.CreateFCmpOLT(magnitude, llvm::ConstantFP::get(type, 0x1p-126));
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
  if (op.name == "neg" || (op.name == "abs" && !op.flush))
    return EmitUnary(b, op, args[0]);
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
    Value* zero = llvm::ConstantFP::get(target, 0.0);
    if (how.relu) {
      Value* negative = b.CreateFCmpOLT(result, zero);
      result = b.CreateSelect(negative, zero, result);
    } else {
      result = Saturate(b, result);
    }
  }
  return result;
}

}  // namespace reprise::cpu
