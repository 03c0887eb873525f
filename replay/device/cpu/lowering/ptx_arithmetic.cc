// Integer and floating-point instructions of inline PTX.
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

PtxType Wider(PtxType type) {
  type.bits *= 2;
  return type;
}

std::string SuffixOf(const PtxType& type) {
  return absl::StrCat(std::string(1, type.kind), type.bits);
}

}  // namespace

// mov, and conversions of addresses that change nothing.
bool PtxTranslator::Move(const PtxInstruction& in) {
  const std::string& op = in.opcode[0];
  if (op == "cvta" && in.operands.size() == 2) {
    Value* address = Bits(in.operands[1], 64);
    if (address == nullptr) return false;
    const bool from_shared = Has(in, "shared") && !Has(in, "to");
    Write(in.operands[0], from_shared ? SharedAddress(address) : address);
    return true;
  }
  PtxType type;
  if (op != "mov" || in.operands.size() != 2 || !TypeOf(in, &type))
    return false;
  Value* value = Bits(in.operands[1], type.register_bits());
  if (value == nullptr) return false;
  Write(in.operands[0], value);
  return true;
}

// Instructions that set or use the condition code's carry.
bool PtxTranslator::Carry(const PtxInstruction& in) {
  const StringRef op = in.opcode[0];
  PtxType type;
  const bool uses = op == "addc" || op == "subc" || op == "madc";
  const bool sets = Has(in, "cc");
  if ((!uses && !sets) || !TypeOf(in, &type) || type.is_float()) return false;
  const bool multiply = op.starts_with("mad");
  const bool subtract = op.starts_with("sub");
  Value* a = Read(in.operands[1], type);
  Value* b = in.operands.size() > 2 ? Read(in.operands[2], type) : nullptr;
  if (a == nullptr || b == nullptr) return false;
  Type* narrow = a->getType();
  Type* wide = b_.getIntNTy(type.bits * 2);
  if (multiply) {
    auto extend = [&](Value* v) {
      return type.is_signed() ? b_.CreateSExt(v, wide) : b_.CreateZExt(v, wide);
    };
    Value* product = b_.CreateMul(extend(a), extend(b));
    a = b_.CreateTrunc(
        Has(in, "hi") ? b_.CreateLShr(product, type.bits) : product, narrow);
    b = in.operands.size() > 3 ? Read(in.operands[3], type) : nullptr;
    if (b == nullptr) return false;
  }
  if (uses && carry_ == nullptr) return false;
  Value* carry =
      uses ? b_.CreateZExt(carry_, wide) : llvm::ConstantInt::get(wide, 0);
  a = b_.CreateZExt(a, wide);
  b = b_.CreateZExt(b, wide);
  Value* result = subtract ? b_.CreateSub(b_.CreateSub(a, b), carry)
                           : b_.CreateAdd(b_.CreateAdd(a, b), carry);
  Write(in.operands[0], b_.CreateTrunc(result, narrow));
  // The bit above the result is the carry, or the borrow.
  if (sets)
    carry_ = b_.CreateTrunc(b_.CreateLShr(result, type.bits), b_.getInt1Ty());
  return true;
}

bool PtxTranslator::Multiply(const PtxInstruction& in) {
  const std::string& op = in.opcode[0];
  PtxType type;
  if ((op != "mul" && op != "mad" && op != "mul24" && op != "mad24") ||
      !TypeOf(in, &type) || type.is_float() || in.operands.size() < 3) {
    return false;
  }
  Value* a = Read(in.operands[1], type);
  Value* b = Read(in.operands[2], type);
  if (a == nullptr || b == nullptr) return false;
  if (op == "mul24" || op == "mad24") {
    auto cut = [&](Value* v) {
      return type.is_signed() ? b_.CreateAShr(b_.CreateShl(v, 8), 8)
                              : b_.CreateLShr(b_.CreateShl(v, 8), 8);
    };
    a = cut(a);
    b = cut(b);
  }
  Type* wide = b_.getIntNTy(type.bits * 2);
  auto extend = [&](Value* v) {
    return type.is_signed() ? b_.CreateSExt(v, wide) : b_.CreateZExt(v, wide);
  };
  Value* product = b_.CreateMul(extend(a), extend(b));
  const bool keep_wide = Has(in, "wide");
  if (op == "mul24" || op == "mad24") {
    // .hi takes bits 47 to 16.
    product = b_.CreateTrunc(
        Has(in, "hi") ? b_.CreateLShr(product, 16) : product, a->getType());
  } else if (!keep_wide) {
    product = b_.CreateTrunc(
        Has(in, "hi") ? b_.CreateLShr(product, type.bits) : product,
        a->getType());
  }
  if (op[1] == 'a') {
    Value* c = in.operands.size() == 4
                   ? Read(in.operands[3], keep_wide ? Wider(type) : type)
                   : nullptr;
    if (c == nullptr) return false;
    product = Has(in, "sat") ? b_.CreateBinaryIntrinsic(
                                   llvm::Intrinsic::sadd_sat, product, c)
                             : b_.CreateAdd(product, c);
  }
  Write(in.operands[0], product);
  return true;
}

bool PtxTranslator::Integer(const PtxInstruction& in) {
  const StringRef op = in.opcode[0];
  PtxType type;
  if (!TypeOf(in, &type) || type.is_float() || in.operands.size() < 2)
    return false;
  if (type.packed) return PackedInteger(in, type);
  Value* a = Read(in.operands[1], type);
  Value* b = in.operands.size() > 2 ? Read(in.operands[2], type) : nullptr;
  if (a == nullptr) return false;
  const bool sign = type.is_signed();
  Value* result = nullptr;
  if (b == nullptr) {
    if (op == "neg") result = b_.CreateNeg(a);
    if (op == "abs")
      result = b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a, b_.getFalse());
    if (op == "not") result = b_.CreateNot(a);
    if (op == "cnot") {
      result = b_.CreateZExt(b_.CreateIsNull(a), a->getType());
    }
  } else if (in.operands.size() == 3) {
    using I = llvm::Intrinsic::IndependentIntrinsics;
    const bool saturate = Has(in, "sat");
    if (op == "add") {
      result = saturate ? b_.CreateBinaryIntrinsic(I::sadd_sat, a, b)
                        : b_.CreateAdd(a, b);
    } else if (op == "sub") {
      result = saturate ? b_.CreateBinaryIntrinsic(I::ssub_sat, a, b)
                        : b_.CreateSub(a, b);
    } else if (op == "div") {
      result = sign ? b_.CreateSDiv(a, b) : b_.CreateUDiv(a, b);
    } else if (op == "rem") {
      result = sign ? b_.CreateSRem(a, b) : b_.CreateURem(a, b);
    } else if (op == "min") {
      result = b_.CreateBinaryIntrinsic(sign ? I::smin : I::umin, a, b);
    } else if (op == "max") {
      result = b_.CreateBinaryIntrinsic(sign ? I::smax : I::umax, a, b);
    } else if (op == "and") {
      result = b_.CreateAnd(a, b);
    } else if (op == "or") {
      result = b_.CreateOr(a, b);
    } else if (op == "xor") {
      result = b_.CreateXor(a, b);
    }
  }
  if (op == "sad" && in.operands.size() == 4) {
    Value* c = Read(in.operands[3], type);
    if (c == nullptr) return false;
    Value* less = sign ? b_.CreateICmpSLT(a, b) : b_.CreateICmpULT(a, b);
    result = b_.CreateAdd(
        c, b_.CreateSelect(less, b_.CreateSub(b, a), b_.CreateSub(a, b)));
  }
  if (result == nullptr) return false;
  Write(in.operands[0], Has(in, "relu") ? NotNegative(result) : result);
  return true;
}

Value* PtxTranslator::NotNegative(Value* value) {
  return b_.CreateBinaryIntrinsic(
      llvm::Intrinsic::smax, value,
      llvm::Constant::getNullValue(value->getType()));
}

// add, min and max of two 16-bit integers.
bool PtxTranslator::PackedInteger(const PtxInstruction& in,
                                  const PtxType& type) {
  using I = llvm::Intrinsic::IndependentIntrinsics;
  const std::string& op = in.opcode[0];
  if (in.operands.size() != 3) return false;
  auto* lanes = llvm::FixedVectorType::get(b_.getInt16Ty(), 2);
  Value* a = Bits(in.operands[1], 32);
  Value* b = Bits(in.operands[2], 32);
  if (a == nullptr || b == nullptr) return false;
  a = b_.CreateBitCast(a, lanes);
  b = b_.CreateBitCast(b, lanes);
  const bool sign = type.is_signed();
  Value* result = nullptr;
  if (op == "add") result = b_.CreateAdd(a, b);
  if (op == "min")
    result = b_.CreateBinaryIntrinsic(sign ? I::smin : I::umin, a, b);
  if (op == "max")
    result = b_.CreateBinaryIntrinsic(sign ? I::smax : I::umax, a, b);
  if (result == nullptr) return false;
  Write(in.operands[0], Has(in, "relu") ? NotNegative(result) : result);
  return true;
}

// Shifts and bit fields.
bool PtxTranslator::IntegerBits(const PtxInstruction& in) {
  const StringRef op = in.opcode[0];
  PtxType type;
  if (!TypeOf(in, &type) || type.is_float() || type.packed ||
      in.operands.size() < 2)
    return false;
  Type* i32 = b_.getInt32Ty();
  Value* a = Read(in.operands[1], type);
  auto word = [&](size_t i) {
    return i < in.operands.size() ? Bits(in.operands[i], 32) : nullptr;
  };
  if (a == nullptr) return false;
  Value* result = nullptr;
  if (op == "shl" || op == "shr") {
    Value* amount = word(2);
    if (amount == nullptr) return false;
    // Amounts past the width clamp.
    Value* whole = b_.CreateICmpUGE(amount, b_.getInt32(type.bits));
    Value* safe = b_.CreateZExtOrTrunc(
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, amount,
                                 b_.getInt32(type.bits - 1)),
        a->getType());
    Value* zero = llvm::ConstantInt::get(a->getType(), 0);
    if (op == "shl") {
      result = b_.CreateSelect(whole, zero, b_.CreateShl(a, safe));
    } else if (type.is_signed()) {
      result = b_.CreateAShr(a, safe);
    } else {
      result = b_.CreateSelect(whole, zero, b_.CreateLShr(a, safe));
    }
  } else if (op == "popc") {
    result = b_.CreateZExtOrTrunc(
        b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, a), i32);
  } else if (op == "clz") {
    result = b_.CreateZExtOrTrunc(
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, b_.getFalse()), i32);
  } else if (op == "brev") {
    result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, a);
  } else if (op == "bfind") {
    // Of a negative number the highest bit that is not its sign.
    if (type.is_signed()) a = b_.CreateXor(a, b_.CreateAShr(a, type.bits - 1));
    Value* found =
        CallLibrary(b_, absl::StrCat("__reprise_bfind_u", type.bits), i32, {a});
    if (Has(in, "shiftamt")) {
      Value* none = b_.CreateICmpEQ(found, b_.getInt32(~0u));
      found = b_.CreateSelect(none, found,
                              b_.CreateSub(b_.getInt32(type.bits - 1), found));
    }
    result = found;
  } else if (op == "bfe" && word(2) != nullptr && word(3) != nullptr) {
    result = CallLibrary(b_, absl::StrCat("__reprise_bfe_", SuffixOf(type)),
                         a->getType(), {a, word(2), word(3)});
  } else if (op == "bfi" && in.operands.size() == 5) {
    Value* base = Read(in.operands[2], type);
    if (base == nullptr || word(3) == nullptr || word(4) == nullptr)
      return false;
    result = CallLibrary(b_, absl::StrCat("__reprise_bfi_", SuffixOf(type)),
                         a->getType(), {a, base, word(3), word(4)});
  } else if (op == "prmt" && word(2) != nullptr && word(3) != nullptr) {
    std::string name = "__reprise_prmt";
    for (const char* mode : {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}) {
      if (Has(in, mode)) name += absl::StrCat("_", mode);
    }
    result = CallLibrary(b_, name, i32, {a, word(2), word(3)});
  } else if (op == "shf" && word(2) != nullptr && word(3) != nullptr) {
    Value* amount = Has(in, "clamp")
                        ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin,
                                                   word(3), b_.getInt32(32))
                        : b_.CreateAnd(word(3), b_.getInt32(31));
    Type* i64 = b_.getInt64Ty();
    Value* wide = b_.CreateOr(b_.CreateShl(b_.CreateZExt(word(2), i64), 32),
                              b_.CreateZExt(a, i64));
    amount = b_.CreateZExt(amount, i64);
    wide = Has(in, "l") ? b_.CreateLShr(b_.CreateShl(wide, amount), 32)
                        : b_.CreateLShr(wide, amount);
    result = b_.CreateTrunc(wide, i32);
  } else if (op == "fns" && word(2) != nullptr && word(3) != nullptr) {
    result = CallLibrary(b_, "__reprise_fns", i32, {a, word(2), word(3)});
  } else if ((op == "szext" || op == "bmsk") && word(2) != nullptr) {
    const std::string kind =
        op == "bmsk" ? "bmsk" : absl::StrCat("szext_", SuffixOf(type));
    result = CallLibrary(b_, absl::StrCat("__reprise_", kind), i32,
                         {a, word(2), b_.getInt1(Has(in, "clamp"))});
  } else if (op == "lop3" && in.operands.size() == 5 &&
             in.operands[4].kind == PtxOperand::kImmediate) {
    Value* b = word(2);
    Value* c = word(3);
    if (b == nullptr || c == nullptr) return false;
    result = b_.getInt32(0);
    for (int row = 0; row < 8; ++row) {
      if (((in.operands[4].bits >> row) & 1) == 0) continue;
      Value* term = (row & 4) ? a : b_.CreateNot(a);
      term = b_.CreateAnd(term, (row & 2) ? b : b_.CreateNot(b));
      term = b_.CreateAnd(term, (row & 1) ? c : b_.CreateNot(c));
      result = b_.CreateOr(result, term);
    }
  }
  if (result == nullptr) return false;
  Write(in.operands[0], result);
  return true;
}

bool PtxTranslator::Float(const PtxInstruction& in) {
  PtxType type;
  if (!TypeOf(in, &type) || !type.is_float() || in.operands.size() < 2)
    return false;
  StringRef name = in.opcode[0];
  if (name == "mad") name = "fma";
  const bool known =
      StringSwitch<bool>(name)
          .Cases({"add", "sub", "mul", "div", "fma", "min", "max"}, true)
          .Cases({"neg", "abs", "rcp", "sqrt", "rsqrt"}, true)
          .Cases({"ex2", "lg2", "sin", "cos", "tanh"}, true)
          .Default(false);
  if (!known) return false;
  FloatOp op;
  bool to_integer = false;
  op.name = name;
  op.rounding = RoundingOf(in, &to_integer);
  op.flush = Has(in, "ftz");
  op.saturate = Has(in, "sat");
  op.relu = Has(in, "relu");
  op.propagate_nan = Has(in, "NaN");
  op.absolute = Has(in, "xorsign");
  op.approximate = Has(in, "approx");
  llvm::SmallVector<Value*, 3> operands;
  for (size_t i = 1; i < in.operands.size(); ++i) {
    operands.push_back(Read(in.operands[i], type));
    if (operands.back() == nullptr) return false;
  }
  Value* result = EmitFloatOp(b_, op, operands);
  if (result == nullptr) return false;
  Write(in.operands[0], result);
  return true;
}

}  // namespace reprise::cpu
