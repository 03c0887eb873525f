// Between the parts of floating-point lowering: values of short types, and what
// results are limited to. Internal to the lowering.
#ifndef REPRISE_REPLAY_DEVICE_CPU_LOWERING_FLOAT_OPS_H_
#define REPRISE_REPLAY_DEVICE_CPU_LOWERING_FLOAT_OPS_H_

#include <llvm/IR/IRBuilder.h>

#include <string>

#include "replay/device/cpu/lowering/internal.h"

namespace reprise::cpu {

// As the device library's functions are named: "f32" or "f64", "rz".
llvm::StringRef TypeSuffix(llvm::Type* type);
std::string RoundingSuffix(char rounding);

llvm::Value* IsNan(llvm::IRBuilder<>& b, llvm::Value* value);
// Between 0 and 1; NaN becomes +0.
llvm::Value* Saturate(llvm::IRBuilder<>& b, llvm::Value* value);
// Neither -0 nor what is below it; NaN stays.
llvm::Value* NotNegative(llvm::IRBuilder<>& b, llvm::Value* value);

// half or bfloat.
bool IsShort(llvm::Type* type);
// Of those to float.
llvm::Value* Widen(llvm::IRBuilder<>& b, llvm::Value* value);
// float or double to a short type, to nearest even. NaN becomes the canonical
// one.
llvm::Value* NearestShort(llvm::IRBuilder<>& b, llvm::Value* value,
                          llvm::Type* target);
// `narrow` is `wide` to nearest; moved one step where directed rounding asks
// for it.
llvm::Value* DirectShort(llvm::IRBuilder<>& b, llvm::Value* wide,
                         llvm::Value* narrow, char rounding);

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_LOWERING_FLOAT_OPS_H_
