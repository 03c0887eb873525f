// PTX's dot products and SIMD-in-a-register instructions.
#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/Intrinsics.h>

#include "absl/strings/str_cat.h"
#include "replay/device/cpu/lowering/ptx.h"

namespace reprise::cpu {

using llvm::StringRef;
using llvm::StringSwitch;
using llvm::Type;
using llvm::Value;

// dp4a.atype.btype d, a, b, c; dp2a.mode.atype.btype.
bool PtxTranslator::DotProduct(const PtxInstruction& in) {
  const std::string& op = in.opcode[0];
  PtxType a, b;
  if ((op != "dp4a" && op != "dp2a") || in.operands.size() != 4 ||
      !TypeOf(in, &b, 0) || !TypeOf(in, &a, 1)) {
    return false;
  }
  llvm::SmallVector<Value*, 4> args;
  for (size_t i = 1; i < 4; ++i) {
    args.push_back(Bits(in.operands[i], 32));
    if (args.back() == nullptr) return false;
  }
  if (op == "dp2a") args.insert(args.begin() + 2, b_.getInt1(Has(in, "hi")));
  const std::string name =
      absl::StrCat("__reprise_", op, "_", a.is_signed() ? "s" : "u", "_",
                   b.is_signed() ? "s" : "u");
  Write(in.operands[0], CallLibrary(b_, name, b_.getInt32Ty(), args));
  return true;
}

// One lane of a SIMD instruction on operands extended to 32 bits.
Value* PtxTranslator::VideoLane(const PtxInstruction& in, StringRef op,
                                Value* a, Value* b, bool is_signed) {
  using I = llvm::Intrinsic::IndependentIntrinsics;
  if (op == "add") return b_.CreateAdd(a, b);
  if (op == "sub") return b_.CreateSub(a, b);
  if (op == "min")
    return b_.CreateBinaryIntrinsic(is_signed ? I::smin : I::umin, a, b);
  if (op == "max")
    return b_.CreateBinaryIntrinsic(is_signed ? I::smax : I::umax, a, b);
  if (op == "absdiff") {
    return b_.CreateBinaryIntrinsic(I::abs, b_.CreateSub(a, b), b_.getFalse());
  }
  if (op == "avrg") {
    // Rounded away from zero on ties.
    Value* sum = b_.CreateAdd(a, b);
    Value* up = is_signed ? b_.CreateZExt(b_.CreateICmpSGE(sum, b_.getInt32(0)),
                                          b_.getInt32Ty())
                          : b_.getInt32(1);
    return b_.CreateAShr(b_.CreateAdd(sum, up), 1);
  }
  if (op == "set") {
    const PtxType type = {is_signed ? 's' : 'u', 32, false};
    Value* holds = CompareValues(in.opcode.back(), a, b, type);
    // vset2.u32.u32.eq.add: the comparison is not the last word.
    for (size_t i = 1; holds == nullptr && i < in.opcode.size(); ++i) {
      holds = CompareValues(in.opcode[i], a, b, type);
    }
    return holds == nullptr ? nullptr : b_.CreateZExt(holds, b_.getInt32Ty());
  }
  return nullptr;
}

// v<op>{2,4}.dtype.atype.btype{.sat}{.add} d, a, b, c
bool PtxTranslator::Video(const PtxInstruction& in) {
  StringRef op = in.opcode[0];
  if (!op.consume_front("v") || op.empty() || in.operands.size() != 4)
    return false;
  const unsigned lanes = op.back() == '4' ? 4 : op.back() == '2' ? 2 : 0;
  op = op.drop_back();
  PtxType type;
  if (lanes == 0 || in.opcode.size() < 3 || !ParsePtxType(in.opcode[1], &type))
    return false;
  PtxType source;
  if (!ParsePtxType(in.opcode[2], &source)) return false;
  Value* a = Bits(in.operands[1], 32);
  Value* b = Bits(in.operands[2], 32);
  Value* c = Bits(in.operands[3], 32);
  if (a == nullptr || b == nullptr || c == nullptr) return false;
  const unsigned width = 32 / lanes;
  Type* narrow = b_.getIntNTy(width);
  Type* i32 = b_.getInt32Ty();
  const bool accumulate = Has(in, "add");
  Value* result = accumulate ? c : b_.getInt32(0);
  for (unsigned lane = 0; lane < lanes; ++lane) {
    auto part = [&](Value* v) {
      Value* piece = b_.CreateTrunc(b_.CreateLShr(v, lane * width), narrow);
      return source.is_signed() ? b_.CreateSExt(piece, i32)
                                : b_.CreateZExt(piece, i32);
    };
    Value* value = VideoLane(in, op, part(a), part(b), source.is_signed());
    if (value == nullptr) return false;
    if (Has(in, "sat")) {
      const int64_t high =
          type.is_signed() ? (1 << (width - 1)) - 1 : (1 << width) - 1;
      const int64_t low = type.is_signed() ? -high - 1 : 0;
      value = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, value,
                                       b_.getInt32(low));
      value = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, value,
                                       b_.getInt32(high));
    }
    if (accumulate) {
      result = b_.CreateAdd(result, value);
    } else {
      Value* piece = b_.CreateZExt(b_.CreateTrunc(value, narrow), i32);
      result = b_.CreateOr(result, b_.CreateShl(piece, lane * width));
    }
  }
  Write(in.operands[0], result);
  return true;
}

}  // namespace reprise::cpu
