#include "replay/device/cpu/lowering/ptx.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "absl/strings/str_cat.h"
#include "replay/device/cpu/abi.h"

namespace reprise::cpu {

using llvm::Type;
using llvm::Value;

bool ParsePtxType(const std::string& token, PtxType* type) {
  llvm::StringRef rest = token;
  *type = PtxType();
  if (rest == "pred") {
    *type = {'p', 1, false};
    return true;
  }
  if (rest.consume_front("bf16")) {
    type->kind = 'r';
    type->bits = 16;
  } else if (rest.consume_front("f16")) {
    type->kind = 'h';
    type->bits = 16;
  } else {
    if (rest.empty() || !llvm::StringRef("subf").contains(rest[0]))
      return false;
    type->kind = rest[0];
    rest = rest.drop_front();
    unsigned bits = 0;
    if (rest.consumeInteger(10, bits)) return false;
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return false;
    type->bits = bits;
  }
  type->packed = rest.consume_front("x2");
  return rest.empty();
}

PtxTranslator::PtxTranslator(LoweringState& state, llvm::CallInst& call,
                             PtxCode code)
    : state_(state), call_(call), code_(std::move(code)), b_(&call) {}

bool PtxTranslator::TypeOf(const PtxInstruction& in, PtxType* type, int skip) {
  for (size_t i = in.opcode.size(); i-- > 1;) {
    if (ParsePtxType(in.opcode[i], type) && skip-- == 0) return true;
  }
  return false;
}

bool PtxTranslator::Has(const PtxInstruction& in, const char* token) {
  for (size_t i = 1; i < in.opcode.size(); ++i) {
    if (in.opcode[i] == token) return true;
  }
  return false;
}

char PtxTranslator::RoundingOf(const PtxInstruction& in, bool* to_integer) {
  *to_integer = false;
  for (const std::string& token : in.opcode) {
    const bool mode = token.size() >= 2 && token[0] == 'r' &&
                      llvm::StringRef("nzmp").contains(token[1]);
    if (mode && (token.size() == 2 || (token.size() == 3 && token[2] == 'i'))) {
      *to_integer = token.size() == 3;
      return token[1];
    }
  }
  return 'n';
}

Type* PtxTranslator::IrType(const PtxType& type) {
  Type* element = nullptr;
  switch (type.kind) {
    case 'h':
      element = b_.getHalfTy();
      break;
    case 'r':
      element = b_.getBFloatTy();
      break;
    case 'f':
      element = type.bits == 64 ? b_.getDoubleTy() : b_.getFloatTy();
      break;
    default:
      element = b_.getIntNTy(type.bits);
  }
  return type.packed ? llvm::FixedVectorType::get(element, 2) : element;
}

Value* PtxTranslator::Special(const std::string& name) {
  if (name == "WARP_SZ") return b_.getInt32(32);
  llvm::StringRef reg = name;
  reg.consume_front("%");
  if (reg == "reserved_smem_offset_1" || reg == "reserved_smem_offset_begin") {
    Value* base = b_.CreatePtrToInt(SharedBase(), b_.getInt64Ty());
    return b_.CreateSub(base, b_.getInt64(kReservedSharedBytes));
  }
  if (unsigned number; reg.starts_with("envreg") &&
                       !reg.drop_front(6).getAsInteger(10, number)) {
    return CallRuntime(b_, "__reprise_envreg", b_.getInt32Ty(),
                       {b_.getInt32(number)});
  }
  if (reg == "current_graph_exec") return b_.getInt64(0);
  std::string intrinsic = reg.str();
  std::replace(intrinsic.begin(), intrinsic.end(), '_', '.');
  if (reg == "dynamic_smem_size" || reg == "total_smem_size" ||
      reg == "aggr_smem_size") {
    intrinsic = reg.str();
  }
  const bool wide = reg == "clock64" || reg == "globaltimer";
  intrinsic = "llvm.nvvm.read.ptx.sreg." + intrinsic;
  if (llvm::Intrinsic::lookupIntrinsicID(intrinsic) ==
      llvm::Intrinsic::not_intrinsic) {
    return nullptr;
  }
  return CallIntrinsic(intrinsic, wide ? b_.getInt64Ty() : b_.getInt32Ty(), {});
}

Value* PtxTranslator::SharedBase() {
  return CallRuntime(b_, "__reprise_shared_base", b_.getPtrTy(), {});
}

// Shared addresses in PTX have 32 bits; here they are the low half of host
// addresses, and the block's own memory tells the rest.
Value* PtxTranslator::SharedAddress(Value* address) {
  Type* i32 = b_.getInt32Ty();
  Value* base = b_.CreatePtrToInt(SharedBase(), b_.getInt64Ty());
  Value* offset = b_.CreateSub(b_.CreateZExtOrTrunc(address, i32),
                               b_.CreateTrunc(base, i32));
  return b_.CreateAdd(base, b_.CreateSExt(offset, b_.getInt64Ty()));
}

Value* PtxTranslator::CallIntrinsic(llvm::StringRef name, Type* result,
                                    llvm::ArrayRef<Value*> arguments) {
  return CallLibrary(b_, name, result, arguments);
}

// The operand as an integer of `width` bits; null when there is no such.
Value* PtxTranslator::Bits(const PtxOperand& operand, unsigned width) {
  Type* type = b_.getIntNTy(width);
  Value* value = nullptr;
  switch (operand.kind) {
    case PtxOperand::kImmediate: {
      uint64_t bits = operand.bits;
      if (operand.is_double && width == 32) {
        double number;
        std::memcpy(&number, &bits, 8);
        const auto narrow = static_cast<float>(number);
        uint32_t narrow_bits;
        std::memcpy(&narrow_bits, &narrow, 4);
        bits = narrow_bits;
      }
      return llvm::ConstantInt::get(b_.getContext(),
                                    llvm::APInt(64, bits).zextOrTrunc(width));
    }
    case PtxOperand::kSpecial:
      value = Special(operand.name);
      break;
    case PtxOperand::kRegister: {
      const auto found = values_.find(operand.name);
      if (found != values_.end()) value = found->second;
      break;
    }
    case PtxOperand::kVector: {
      // Packed, the first element lowest.
      const unsigned each = width / operand.elements.size();
      value = llvm::ConstantInt::get(type, 0);
      for (size_t i = 0; i < operand.elements.size(); ++i) {
        Value* element = Bits(operand.elements[i], each);
        if (element == nullptr) return nullptr;
        value = b_.CreateOr(
            value, b_.CreateShl(b_.CreateZExt(element, type), i * each));
      }
      return value;
    }
    default:
      return nullptr;
  }
  if (value == nullptr) return nullptr;
  value = b_.CreateZExtOrTrunc(value, type);
  return operand.negated ? b_.CreateNot(value) : value;
}

Value* PtxTranslator::Read(const PtxOperand& operand, const PtxType& type) {
  Value* bits = Bits(operand, type.register_bits());
  if (bits == nullptr || !type.is_float()) return bits;
  return b_.CreateBitCast(bits, IrType(type));
}

void PtxTranslator::Write(const PtxOperand& target, Value* value) {
  Type* type = value->getType();
  if (!type->isIntegerTy()) {
    value =
        b_.CreateBitCast(value, b_.getIntNTy(type->getPrimitiveSizeInBits()));
  }
  if (target.kind == PtxOperand::kVector) {
    const unsigned each =
        value->getType()->getIntegerBitWidth() / target.elements.size();
    for (size_t i = 0; i < target.elements.size(); ++i) {
      Write(target.elements[i],
            b_.CreateTrunc(b_.CreateLShr(value, i * each), b_.getIntNTy(each)));
    }
    return;
  }
  if (target.kind != PtxOperand::kRegister) return;
  Value*& slot = values_[target.name];
  if (guard_ != nullptr) {
    Value* old = slot != nullptr ? b_.CreateZExtOrTrunc(slot, value->getType())
                                 : llvm::PoisonValue::get(value->getType());
    value = b_.CreateSelect(guard_, value, old);
  }
  slot = value;
}

unsigned PtxTranslator::WidthOf(const PtxOperand& target) const {
  const auto output = outputs_.find(target.name);
  if (output != outputs_.end()) return output->second;
  const auto declared = code_.registers.find(target.name);
  return declared != code_.registers.end() ? declared->second : 0;
}

void PtxTranslator::DefineInputs() {
  const auto* assembly = llvm::cast<llvm::InlineAsm>(call_.getCalledOperand());
  const auto constraints = assembly->ParseConstraints();
  auto* results = llvm::dyn_cast<llvm::StructType>(call_.getType());
  unsigned number = 0;
  unsigned argument = 0;
  unsigned output = 0;
  for (const auto& constraint : constraints) {
    const std::string name = absl::StrCat("$", number);
    if (constraint.Type == llvm::InlineAsm::isOutput) {
      Type* type = results != nullptr ? results->getElementType(output)
                                      : call_.getType();
      outputs_[name] = type->getPrimitiveSizeInBits();
      output_order_.push_back(name);
      ++output;
      ++number;
    } else if (constraint.Type == llvm::InlineAsm::isInput) {
      Value* value = call_.getArgOperand(argument++);
      Type* type = value->getType();
      if (type->isPointerTy()) {
        value = b_.CreatePtrToInt(value, b_.getInt64Ty());
      } else if (!type->isIntegerTy()) {
        value = b_.CreateBitCast(value,
                                 b_.getIntNTy(type->getPrimitiveSizeInBits()));
      }
      values_[name] = value;
      // "+r": the output starts as this input.
      unsigned tied = 0;
      if (!constraint.Codes.empty() &&
          !llvm::StringRef(constraint.Codes[0]).getAsInteger(10, tied) &&
          tied < output_order_.size()) {
        values_[output_order_[tied]] = value;
      }
      ++number;
    }
  }
}

void PtxTranslator::ReturnOutputs() {
  if (call_.getType()->isVoidTy()) return;
  auto* results = llvm::dyn_cast<llvm::StructType>(call_.getType());
  Value* whole = results != nullptr ? llvm::PoisonValue::get(results) : nullptr;
  for (size_t i = 0; i < output_order_.size(); ++i) {
    Type* type =
        results != nullptr ? results->getElementType(i) : call_.getType();
    Value* value = values_[output_order_[i]];
    if (value == nullptr) {
      value = llvm::PoisonValue::get(type);
    } else {
      value =
          b_.CreateZExtOrTrunc(value, b_.getIntNTy(outputs_[output_order_[i]]));
      value = type->isPointerTy() ? b_.CreateIntToPtr(value, type)
                                  : b_.CreateBitCast(value, type);
    }
    whole = results != nullptr ? b_.CreateInsertValue(whole, value, i) : value;
  }
  call_.replaceAllUsesWith(whole);
}

bool PtxTranslator::Instruction(const PtxInstruction& in) {
  guard_ = nullptr;
  if (!in.guard.empty()) {
    const auto found = values_.find(in.guard);
    if (found == values_.end()) return false;
    guard_ = b_.CreateTrunc(found->second, b_.getInt1Ty());
    if (in.guard_negated) guard_ = b_.CreateNot(guard_);
  }
  const bool pure = Move(in) || Choose(in) || Carry(in) || Multiply(in) ||
                    Compare(in) || Convert(in) || Float(in) || Integer(in) ||
                    IntegerBits(in) || DotProduct(in) || Video(in);
  if (pure) return true;
  return guard_ == nullptr ? Effect(in) : GuardedEffect(in);
}

bool PtxTranslator::Effect(const PtxInstruction& in) {
  return Memory(in) || CopyAsync(in) || Atomic(in) || Barrier(in) ||
         Synchronize(in);
}

// What has an effect stands in a branch of its own.
bool PtxTranslator::GuardedEffect(const PtxInstruction& in) {
  Value* guard = guard_;
  guard_ = nullptr;
  llvm::BasicBlock* before = call_.getParent();
  llvm::Instruction* end =
      llvm::SplitBlockAndInsertIfThen(guard, &call_, /*Unreachable=*/false);
  const std::map<std::string, Value*> old = values_;
  b_.SetInsertPoint(end);
  if (!Effect(in)) return false;
  llvm::BasicBlock* then = end->getParent();
  b_.SetInsertPoint(call_.getParent(), call_.getParent()->begin());
  for (auto& [name, value] : values_) {
    const auto found = old.find(name);
    Value* other = found != old.end() ? found->second : nullptr;
    if (value == nullptr || value == other) continue;
    if (other == nullptr || other->getType() != value->getType())
      other = llvm::PoisonValue::get(value->getType());
    llvm::PHINode* merged = b_.CreatePHI(value->getType(), 2);
    merged->addIncoming(value, then);
    merged->addIncoming(other, before);
    value = merged;
  }
  b_.SetInsertPoint(&call_);
  return true;
}

absl::Status PtxTranslator::Translate() {
  DefineInputs();
  for (const PtxInstruction& in : code_.instructions) {
    if (!Instruction(in)) {
      return Refuse(state_, call_, "inline PTX " + in.text);
    }
  }
  ReturnOutputs();
  call_.eraseFromParent();
  return absl::OkStatus();
}

absl::Status LowerInlineAssembly(LoweringState& state, llvm::CallInst& call) {
  const auto* assembly = llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
  auto code = ParsePtx(assembly->getAsmString().str());
  if (!code.ok()) {
    return Refuse(state, call,
                  "inline PTX " + std::string(code.status().message()));
  }
  return PtxTranslator(state, call, *std::move(code)).Translate();
}

}  // namespace reprise::cpu
