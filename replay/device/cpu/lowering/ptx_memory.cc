// Memory in inline PTX.
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

}  // namespace

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
      if (ordered) CallRuntime(b_, "__reprise_yield", b_.getVoidTy(), {});
      Value* value = access;
      // Loads extend into their register.
      if (const unsigned width = WidthOf(part); width > type.bits) {
        Type* whole = b_.getIntNTy(width);
        value = type.is_signed() ? b_.CreateSExt(value, whole)
                                 : b_.CreateZExt(value, whole);
      }
      Write(part, value);
    }
  }
  return true;
}

// cp.async of one thread, done at once: a wait may only follow.
bool PtxTranslator::CopyAsync(const PtxInstruction& in) {
  if (in.opcode[0] != "cp" || in.opcode.size() < 3 || in.opcode[1] != "async")
    return false;
  if (in.opcode[2] == "commit_group" || in.opcode[2] == "wait_group" ||
      in.opcode[2] == "wait_all")
    return true;
  if (Has(in, "mbarrier") && !Has(in, "noinc")) return true;
  if ((in.opcode[2] != "ca" && in.opcode[2] != "cg") ||
      Has(in, "L2::cache_hint") || in.operands.size() < 3 ||
      in.operands.size() > 4)
    return false;
  for (size_t i = 0; i < 2; ++i) {
    if (in.operands[i].kind != PtxOperand::kAddress ||
        in.operands[i].elements.size() != 1)
      return false;
  }
  Value* to = Bits(in.operands[0].elements[0], 64);
  Value* from = Bits(in.operands[1].elements[0], 64);
  auto* bytes =
      llvm::dyn_cast_or_null<llvm::ConstantInt>(Bits(in.operands[2], 64));
  if (to == nullptr || from == nullptr || bytes == nullptr ||
      !llvm::isPowerOf2_64(bytes->getZExtValue()))
    return false;
  to = SharedAddress(b_.CreateAdd(to, b_.getInt64(in.operands[0].bits)));
  from = b_.CreateAdd(from, b_.getInt64(in.operands[1].bits));
  to = b_.CreateIntToPtr(to, b_.getPtrTy());
  from = b_.CreateIntToPtr(from, b_.getPtrTy());
  const llvm::Align align(bytes->getZExtValue());
  if (in.operands.size() == 3) {
    b_.CreateMemCpy(to, align, from, align, bytes);
    return true;
  }
  // Fewer bytes are read than filled.
  Value* read = Bits(in.operands[3], 64);
  if (read == nullptr) return false;
  b_.CreateMemSet(to, b_.getInt8(0), bytes, align);
  b_.CreateMemCpy(to, align, from, llvm::Align(1), read);
  return true;
}

bool PtxTranslator::Atomic(const PtxInstruction& in) {
  const std::string& name = in.opcode[0];
  PtxType type;
  if ((name != "atom" && name != "red") || !TypeOf(in, &type)) return false;
  const size_t first = name == "atom" ? 1 : 0;
  if (in.operands.size() < first + 2) return false;
  Value* pointer = Pointer(in, in.operands[first]);
  if (pointer == nullptr) return false;
  if (in.operands[first + 1].kind == PtxOperand::kVector)
    return AtomicVector(in, type, pointer);
  Value* value = Read(in.operands[first + 1], type);
  if (value == nullptr) return false;
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

// atom.add.v4.f32 {d..}, [a], {b..}: each element by itself.
bool PtxTranslator::AtomicVector(const PtxInstruction& in, const PtxType& type,
                                 Value* pointer) {
  const size_t first = in.opcode[0] == "atom" ? 1 : 0;
  const auto& values = in.operands[first + 1].elements;
  if (!Has(in, "add") || !type.is_float()) return false;
  for (size_t i = 0; i < values.size(); ++i) {
    Value* value = Read(values[i], type);
    if (value == nullptr) return false;
    Value* place = b_.CreateConstGEP1_32(IrType(type), pointer, i);
    Value* old = b_.CreateAtomicRMW(llvm::AtomicRMWInst::FAdd, place, value,
                                    llvm::MaybeAlign(), kOrder);
    if (first == 0) continue;
    if (in.operands[0].elements.size() != values.size()) return false;
    Write(in.operands[0].elements[i], old);
  }
  return true;
}

}  // namespace reprise::cpu
