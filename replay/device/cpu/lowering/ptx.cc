#include "replay/device/cpu/lowering/internal.h"

namespace reprise::cpu {

absl::Status LowerInlineAssembly(LoweringState& state, llvm::CallInst& call) {
  auto* assembly = llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
  return Refuse(state, call, "inline PTX \"" + assembly->getAsmString() + "\"");
}

}  // namespace reprise::cpu
