// Comparisons and selections of inline PTX.
#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/Intrinsics.h>

#include "replay/device/cpu/lowering/ptx.h"

namespace reprise::cpu {

using llvm::CmpInst;
using llvm::StringRef;
using llvm::StringSwitch;
using llvm::Type;
using llvm::Value;

// i1, or a vector of them for packed types.
Value* PtxTranslator::CompareValues(const std::string& op, Value* a, Value* b,
                                    const PtxType& type) {
  if (type.is_float()) {
    const auto predicate = StringSwitch<CmpInst::Predicate>(op)
                               .Case("eq", CmpInst::FCMP_OEQ)
                               .Case("ne", CmpInst::FCMP_ONE)
                               .Case("lt", CmpInst::FCMP_OLT)
                               .Case("le", CmpInst::FCMP_OLE)
                               .Case("gt", CmpInst::FCMP_OGT)
                               .Case("ge", CmpInst::FCMP_OGE)
                               .Case("equ", CmpInst::FCMP_UEQ)
                               .Case("neu", CmpInst::FCMP_UNE)
                               .Case("ltu", CmpInst::FCMP_ULT)
                               .Case("leu", CmpInst::FCMP_ULE)
                               .Case("gtu", CmpInst::FCMP_UGT)
                               .Case("geu", CmpInst::FCMP_UGE)
                               .Case("num", CmpInst::FCMP_ORD)
                               .Case("nan", CmpInst::FCMP_UNO)
                               .Default(CmpInst::BAD_FCMP_PREDICATE);
    return predicate == CmpInst::BAD_FCMP_PREDICATE
               ? nullptr
               : b_.CreateFCmp(predicate, a, b);
  }
  const bool sign = type.is_signed();
  const auto predicate =
      StringSwitch<CmpInst::Predicate>(op)
          .Case("eq", CmpInst::ICMP_EQ)
          .Case("ne", CmpInst::ICMP_NE)
          .Case("lt", sign ? CmpInst::ICMP_SLT : CmpInst::ICMP_ULT)
          .Case("le", sign ? CmpInst::ICMP_SLE : CmpInst::ICMP_ULE)
          .Case("gt", sign ? CmpInst::ICMP_SGT : CmpInst::ICMP_UGT)
          .Case("ge", sign ? CmpInst::ICMP_SGE : CmpInst::ICMP_UGE)
          .Case("lo", CmpInst::ICMP_ULT)
          .Case("ls", CmpInst::ICMP_ULE)
          .Case("hi", CmpInst::ICMP_UGT)
          .Case("hs", CmpInst::ICMP_UGE)
          .Default(CmpInst::BAD_ICMP_PREDICATE);
  return predicate == CmpInst::BAD_ICMP_PREDICATE
             ? nullptr
             : b_.CreateICmp(predicate, a, b);
}

// set: 1.0 in the target's floating-point type, or all ones.
Value* PtxTranslator::Select(Value* condition, Value* value,
                             const PtxType& type) {
  return b_.CreateSelect(condition, value,
                         llvm::Constant::getNullValue(IrType(type)));
}

bool PtxTranslator::Compare(const PtxInstruction& in) {
  const std::string& op = in.opcode[0];
  PtxType type;
  if (op == "selp" && in.operands.size() == 4 && TypeOf(in, &type)) {
    Value* a = Bits(in.operands[1], type.register_bits());
    Value* b = Bits(in.operands[2], type.register_bits());
    Value* p = Bits(in.operands[3], 1);
    if (a == nullptr || b == nullptr || p == nullptr) return false;
    Write(in.operands[0], b_.CreateSelect(p, a, b));
    return true;
  }
  if ((op != "setp" && op != "set") || in.opcode.size() < 3 ||
      !TypeOf(in, &type))
    return false;
  Value* condition = Condition(in, type);
  if (condition == nullptr) return false;
  return op == "set" ? WriteSet(in, type, condition)
                     : WritePredicates(in, type, condition);
}

// set.cmp[.bool] and setp.cmp[.bool]: what holds, of each lane.
Value* PtxTranslator::Condition(const PtxInstruction& in, const PtxType& type) {
  const size_t first = in.pair ? 2 : 1;
  const size_t count = in.operands.size() - first;
  if (in.operands.size() < first + 2 || count > 3) return nullptr;
  Value* a = Read(in.operands[first], type);
  Value* b = Read(in.operands[first + 1], type);
  if (a == nullptr || b == nullptr) return nullptr;
  if (Has(in, "ftz")) {
    a = FlushDenormal(b_, a);
    b = FlushDenormal(b_, b);
  }
  Value* condition = CompareValues(in.opcode[1], a, b, type);
  if (condition == nullptr || count == 2) return condition;
  Value* other = Bits(in.operands[first + 2], 1);
  if (other == nullptr) return nullptr;
  if (type.packed) other = b_.CreateVectorSplat(2, other);
  if (in.opcode[2] == "and") return b_.CreateAnd(condition, other);
  if (in.opcode[2] == "or") return b_.CreateOr(condition, other);
  if (in.opcode[2] == "xor") return b_.CreateXor(condition, other);
  return nullptr;
}

// p, or p|q: of packed types the lower and the upper lane, of others what holds
// and what does not.
bool PtxTranslator::WritePredicates(const PtxInstruction& in,
                                    const PtxType& type, Value* condition) {
  if (type.packed && !in.pair) return false;
  if (!in.pair) {
    Write(in.operands[0], condition);
    return true;
  }
  if (type.packed) {
    Write(in.operands[0], b_.CreateExtractElement(condition, uint64_t{0}));
    Write(in.operands[1], b_.CreateExtractElement(condition, uint64_t{1}));
    return true;
  }
  // The second is the opposite comparison under the same boolean operation.
  if (in.operands.size() != 4) return false;
  Write(in.operands[0], condition);
  Write(in.operands[1], b_.CreateNot(condition));
  return true;
}

bool PtxTranslator::WriteSet(const PtxInstruction& in, const PtxType& type,
                             Value* condition) {
  PtxType target;
  if (in.pair || !TypeOf(in, &target, 1)) return false;
  if (type.packed && !target.packed) {  // a mask of 16 bits for each half
    target = {'u', 16, true};
  }
  if (target.packed != type.packed) return false;
  Type* ir = IrType(target);
  Value* one = target.is_float() ? llvm::ConstantFP::get(ir, 1.0)
                                 : llvm::Constant::getAllOnesValue(ir);
  Write(in.operands[0], Select(condition, one, target));
  return true;
}

// slct, testp and copysign.
bool PtxTranslator::Choose(const PtxInstruction& in) {
  const StringRef op = in.opcode[0];
  PtxType type;
  if (!TypeOf(in, &type)) return false;
  if (op == "slct" && in.operands.size() == 4) {
    PtxType target;
    Value* by = Read(in.operands[3], type);
    if (!TypeOf(in, &target, 1) || by == nullptr) return false;
    Value* a = Bits(in.operands[1], target.bits);
    Value* b = Bits(in.operands[2], target.bits);
    if (a == nullptr || b == nullptr) return false;
    if (Has(in, "ftz")) by = FlushDenormal(b_, by);
    Value* zero = llvm::Constant::getNullValue(by->getType());
    Value* first = type.is_float() ? b_.CreateFCmpOGE(by, zero)
                                   : b_.CreateICmpSGE(by, zero);
    Write(in.operands[0], b_.CreateSelect(first, a, b));
    return true;
  }
  if (op == "copysign" && in.operands.size() == 3) {
    Value* sign = Read(in.operands[1], type);
    Value* magnitude = Read(in.operands[2], type);
    if (sign == nullptr || magnitude == nullptr || !type.is_float())
      return false;
    Write(in.operands[0],
          b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign));
    return true;
  }
  if (op != "testp" || in.operands.size() != 2 || in.opcode.size() != 3)
    return false;
  const auto mask = StringSwitch<unsigned>(in.opcode[1])
                        .Case("finite", llvm::fcFinite)
                        .Case("infinite", llvm::fcInf)
                        .Case("number", ~unsigned{llvm::fcNan})
                        .Case("notanumber", llvm::fcNan)
                        .Case("normal", llvm::fcNormal)
                        .Case("subnormal", llvm::fcSubnormal)
                        .Default(llvm::fcNone);
  Value* value = Read(in.operands[1], type);
  if (mask == llvm::fcNone || value == nullptr || !type.is_float())
    return false;
  Write(in.operands[0], b_.createIsFPClass(value, mask & llvm::fcAllFlags));
  return true;
}

}  // namespace reprise::cpu
