// Floating-point operations with PTX's modifiers, as host IR.
// What IR cannot say (directed rounding, approximations) calls device_library.
#include <llvm/IR/Intrinsics.h>

#include "replay/device/cpu/lowering/float_ops.h"

namespace reprise::cpu {
namespace {

using llvm::ArrayRef;
using llvm::IRBuilder;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Type;
using llvm::Value;
using llvm::Intrinsic::ID;

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

}  // namespace reprise::cpu
