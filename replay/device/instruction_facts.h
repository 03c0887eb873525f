// What an instruction of device IR does, counted the same by every device:
// floating-point operations and the element type that an access speaks of.
// Thread-safe. Needs LLVM's headers.
#ifndef REPRISE_REPLAY_DEVICE_INSTRUCTION_FACTS_H_
#define REPRISE_REPLAY_DEVICE_INSTRUCTION_FACTS_H_

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <cstdint>

#include "reprise/v1/types.pb.h"

namespace reprise {

inline uint64_t LanesOf(const llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector != nullptr ? vector->getNumElements() : 1;
}

// Operations of instructions and of intrinsics that every target has. An fma
// counts 2; conversions, comparisons and negations count nothing.
inline uint64_t CommonFlops(const llvm::Instruction& instruction) {
  const uint64_t lanes = LanesOf(instruction.getType());
  if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    switch (call->getIntrinsicID()) {
      case llvm::Intrinsic::fma:
      case llvm::Intrinsic::fmuladd:
        return 2 * lanes;
      case llvm::Intrinsic::sqrt:
        return lanes;
      default:
        return 0;
    }
  }
  switch (instruction.getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
    case llvm::Instruction::FDiv:
    case llvm::Instruction::FRem:
      return lanes;
    case llvm::Instruction::AtomicRMW: {
      const auto op =
          llvm::cast<llvm::AtomicRMWInst>(instruction).getOperation();
      const bool sum =
          op == llvm::AtomicRMWInst::FAdd || op == llvm::AtomicRMWInst::FSub;
      return sum ? lanes : 0;
    }
    default:
      return 0;
  }
}

// Pointers are 64-bit integers; structs and odd widths are untyped.
inline v1::ElementType ElementTypeOf(const llvm::Type* type) {
  const llvm::Type* scalar = type->getScalarType();
  if (scalar->isHalfTy()) return v1::ELEMENT_TYPE_F16;
  if (scalar->isBFloatTy()) return v1::ELEMENT_TYPE_BF16;
  if (scalar->isFloatTy()) return v1::ELEMENT_TYPE_F32;
  if (scalar->isDoubleTy()) return v1::ELEMENT_TYPE_F64;
  if (scalar->isPointerTy()) return v1::ELEMENT_TYPE_I64;
  if (!scalar->isIntegerTy()) return v1::ELEMENT_TYPE_UNTYPED;
  switch (scalar->getIntegerBitWidth()) {
    case 1:
    case 8:
      return v1::ELEMENT_TYPE_I8;
    case 16:
      return v1::ELEMENT_TYPE_I16;
    case 32:
      return v1::ELEMENT_TYPE_I32;
    case 64:
      return v1::ELEMENT_TYPE_I64;
    default:
      return v1::ELEMENT_TYPE_UNTYPED;
  }
}

}  // namespace reprise

#endif  // REPRISE_REPLAY_DEVICE_INSTRUCTION_FACTS_H_
