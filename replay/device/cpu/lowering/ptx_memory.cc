// Conversions, memory and synchronization in inline PTX.
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

constexpr auto kOrder = llvm::AtomicOrdering::SequentiallyConsistent;

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

bool PtxTranslator::Convert(const PtxInstruction& in) {
  PtxType to, from;
  if (in.opcode[0] != "cvt" || !TypeOf(in, &from, 0) || !TypeOf(in, &to, 1))
    return false;
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
  const auto width = outputs_.find(in.operands[0].name);
  if (!to.is_float() && width != outputs_.end() && width->second > to.bits) {
    Type* reg = b_.getIntNTy(width->second);
    result = to.is_signed() ? b_.CreateSExt(result, reg)
                            : b_.CreateZExt(result, reg);
  }
  Write(in.operands[0], result);
  return true;
}

Value* PtxTranslator::Pointer(const PtxInstruction& in,
                              const PtxOperand& address) {
  if (address.kind != PtxOperand::kAddress || address.elements.size() != 1)
    return nullptr;
  Value* value = Bits(address.elements[0], 64);
  if (value == nullptr) return nullptr;
  value = b_.CreateAdd(value, b_.getInt64(address.bits));
  const bool shared = Has(in, "shared") || Has(in, "shared::cta");
  if (shared) value = SharedAddress(value);
  return b_.CreateIntToPtr(value, b_.getPtrTy());
}

// ld, ldu and st with any cache operator.
bool PtxTranslator::Memory(const PtxInstruction& in) {
  const std::string& op = in.opcode[0];
  if (op == "prefetch" || op == "prefetchu" || op == "pmevent") return true;
  if (op == "membar" || op == "fence") {
    b_.CreateFence(kOrder);
    return true;
  }
  const bool store = op == "st";
  PtxType type;
  if ((!store && op != "ld" && op != "ldu") || in.operands.size() != 2 ||
      !TypeOf(in, &type) || Has(in, "param")) {
    return false;
  }
  const PtxOperand& memory = in.operands[store ? 0 : 1];
  const PtxOperand& reg = in.operands[store ? 1 : 0];
  Value* pointer = Pointer(in, memory);
  if (pointer == nullptr) return false;
  const unsigned count = Has(in, "v2") ? 2 : Has(in, "v4") ? 4 : 1;
  if (count != (reg.kind == PtxOperand::kVector ? reg.elements.size() : 1))
    return false;
  const bool is_volatile = Has(in, "volatile");
  const bool ordered =
      Has(in, "relaxed") || Has(in, "acquire") || Has(in, "release");
  Type* element = b_.getIntNTy(type.bits);
  for (unsigned i = 0; i < count; ++i) {
    const PtxOperand& part = count == 1 ? reg : reg.elements[i];
    Value* place = b_.CreateConstGEP1_32(element, pointer, i);
    const llvm::Align align(type.bits / 8);
    if (store) {
      Value* value = Bits(part, type.bits);
      if (value == nullptr) return false;
      auto* access = b_.CreateAlignedStore(value, place, align, is_volatile);
      if (ordered) access->setAtomic(llvm::AtomicOrdering::Release);
    } else {
      auto* access = b_.CreateAlignedLoad(element, place, align, is_volatile);
      if (ordered) access->setAtomic(llvm::AtomicOrdering::Acquire);
      Value* value = access;
      // Loads extend into their register.
      const auto width = outputs_.find(part.name);
      if (width != outputs_.end() && width->second > type.bits) {
        Type* whole = b_.getIntNTy(width->second);
        value = type.is_signed() ? b_.CreateSExt(value, whole)
                                 : b_.CreateZExt(value, whole);
      }
      Write(part, value);
    }
  }
  return true;
}

bool PtxTranslator::Atomic(const PtxInstruction& in) {
  const std::string& name = in.opcode[0];
  PtxType type;
  if ((name != "atom" && name != "red") || !TypeOf(in, &type)) return false;
  const size_t first = name == "atom" ? 1 : 0;
  if (in.operands.size() < first + 2) return false;
  Value* pointer = Pointer(in, in.operands[first]);
  Value* value = Read(in.operands[first + 1], type);
  if (pointer == nullptr || value == nullptr) return false;
  Value* old = nullptr;
  if (Has(in, "cas")) {
    Value* next = in.operands.size() == first + 3
                      ? Read(in.operands[first + 2], type)
                      : nullptr;
    if (next == nullptr) return false;
    old = b_.CreateExtractValue(
        b_.CreateAtomicCmpXchg(pointer, value, next, llvm::MaybeAlign(), kOrder,
                               kOrder),
        0);
  } else {
    using Op = llvm::AtomicRMWInst;
    auto op = Op::BAD_BINOP;
    if (Has(in, "add")) op = type.is_float() ? Op::FAdd : Op::Add;
    if (Has(in, "exch")) op = Op::Xchg;
    if (Has(in, "and")) op = Op::And;
    if (Has(in, "or")) op = Op::Or;
    if (Has(in, "xor")) op = Op::Xor;
    if (Has(in, "inc")) op = Op::UIncWrap;
    if (Has(in, "dec")) op = Op::UDecWrap;
    if (Has(in, "min"))
      op = type.is_float() ? Op::FMin : type.is_signed() ? Op::Min : Op::UMin;
    if (Has(in, "max"))
      op = type.is_float() ? Op::FMax : type.is_signed() ? Op::Max : Op::UMax;
    if (op == Op::BAD_BINOP) return false;
    old = b_.CreateAtomicRMW(op, pointer, value, llvm::MaybeAlign(), kOrder);
  }
  if (name == "atom") Write(in.operands[0], old);
  return true;
}

// By the intrinsics that Clang's builtins give; lowered with them later.
bool PtxTranslator::Synchronize(const PtxInstruction& in) {
  const std::string& op = in.opcode[0];
  Type* i32 = b_.getInt32Ty();
  llvm::SmallVector<Value*, 6> args;
  const bool has_result =
      in.opcode.size() > 1 && (op == "shfl" || op == "vote" || op == "match" ||
                               op == "redux" || op == "activemask");
  for (size_t i = has_result ? 1 : 0; i < in.operands.size(); ++i) {
    Value* value = Bits(in.operands[i], 32);
    if (value == nullptr) return false;
    args.push_back(value);
  }
  if (op == "exit" || op == "ret") {
    CallIntrinsic("llvm.nvvm.exit", b_.getVoidTy(), {});
  } else if (op == "trap" || op == "brkpt") {
    CallIntrinsic("llvm.trap", b_.getVoidTy(), {});
  } else if (op == "nanosleep" && args.size() == 1) {
    CallIntrinsic("llvm.nvvm.nanosleep", b_.getVoidTy(), args);
  } else if (op == "activemask") {
    Write(in.operands[0], CallIntrinsic("llvm.nvvm.activemask", i32, {}));
  } else if (op == "bar" && Has(in, "warp") && args.size() == 1) {
    CallIntrinsic("llvm.nvvm.bar.warp.sync", b_.getVoidTy(), args);
  } else if ((op == "bar" || op == "barrier") && !Has(in, "cluster") &&
             !Has(in, "red") && (args.size() == 1 || args.size() == 2)) {
    const bool aligned = op == "bar" || Has(in, "aligned");
    CallIntrinsic(absl::StrCat("llvm.nvvm.barrier.cta.",
                               Has(in, "arrive") ? "arrive" : "sync",
                               aligned ? ".aligned" : "",
                               args.size() == 1 ? ".all" : ".count"),
                  b_.getVoidTy(), args);
  } else if (op == "shfl" && in.operands.size() == 5) {
    // shfl.sync.mode.b32 d, a, b, c, membermask
    std::string mode;
    for (const char* name : {"idx", "up", "down", "bfly"}) {
      if (Has(in, name)) mode = name;
    }
    if (mode.empty()) return false;
    Write(in.operands[0],
          CallIntrinsic(absl::StrCat("llvm.nvvm.shfl.sync.", mode, ".i32"), i32,
                        {args[3], args[0], args[1], args[2]}));
  } else if (op == "vote" && Has(in, "ballot") && in.operands.size() == 3) {
    Value* predicate = Bits(in.operands[1], 1);
    if (predicate == nullptr) return false;
    Write(in.operands[0], CallIntrinsic("llvm.nvvm.vote.ballot.sync", i32,
                                        {args[1], predicate}));
  } else {
    return false;
  }
  return true;
}

}  // namespace reprise::cpu
