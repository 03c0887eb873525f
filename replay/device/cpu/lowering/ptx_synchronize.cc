// Synchronization in inline PTX.
#include <llvm/IR/Intrinsics.h>

#include "absl/strings/str_cat.h"
#include "replay/device/cpu/lowering/ptx.h"

namespace reprise::cpu {

using llvm::Type;
using llvm::Value;

// mbarrier.*.shared.b64: a word in shared memory, by the device library.
bool PtxTranslator::Barrier(const PtxInstruction& in) {
  if (in.opcode[0] != "mbarrier" || in.opcode.size() < 2) return false;
  const std::string& op = in.opcode[1];
  Type* i64 = b_.getInt64Ty();
  if (op == "pending_count" && in.operands.size() == 2) {
    Value* state = Bits(in.operands[1], 64);
    if (state == nullptr) return false;
    Write(in.operands[0], b_.CreateAnd(state, 0xfffff));
    return true;
  }
  if (op == "inval") return true;
  // With a count of bytes that copies bring: refused.
  if (Has(in, "expect_tx") || Has(in, "complete_tx") ||
      Has(in, "shared::cluster"))
    return false;
  const size_t place = op == "init" ? 0 : 1;
  if (in.operands.size() <= place) return false;
  Value* pointer = Pointer(in, in.operands[place]);
  Value* argument = in.operands.size() > place + 1
                        ? Bits(in.operands[place + 1], 64)
                        : b_.getInt64(1);
  if (pointer == nullptr || argument == nullptr) return false;
  if (op == "init") {
    CallLibrary(b_, "__reprise_mbarrier_init", b_.getVoidTy(),
                {pointer, argument});
  } else if (op == "arrive" || op == "arrive_drop") {
    Write(in.operands[0],
          CallLibrary(b_, "__reprise_mbarrier_arrive", i64,
                      {pointer, argument, b_.getInt1(op != "arrive")}));
  } else if (op == "test_wait" || op == "try_wait") {
    CallRuntime(b_, "__reprise_yield", b_.getVoidTy(), {});
    Value* passed =
        CallLibrary(b_, "__reprise_mbarrier_test", b_.getInt1Ty(),
                    {pointer, argument, b_.getInt1(Has(in, "parity"))});
    Write(in.operands[0], passed);
  } else {
    return false;
  }
  return true;
}

// shfl, vote, match, redux, elect: d{|p}, operands.., membermask.
bool PtxTranslator::WarpWide(const PtxInstruction& in) {
  const std::string& op = in.opcode[0];
  if (!Has(in, "sync") || in.operands.size() < 2) return false;
  const size_t first = in.pair ? 2 : 1;
  Type* i32 = b_.getInt32Ty();
  std::string name = "llvm.nvvm.";
  llvm::SmallVector<Value*, 4> args = {Bits(in.operands.back(), 32)};
  unsigned width = 32;
  Type* result = i32;
  if (op == "shfl") {
    // In the order of the mode's name: idx, up, down, bfly.
    if (in.opcode.size() != 4 || in.operands.size() != first + 4) return false;
    absl::StrAppend(&name, "shfl.sync.", in.opcode[2], ".i32");
  } else if (op == "vote" && in.opcode.size() == 4) {
    absl::StrAppend(&name, "vote.", in.opcode[2], ".sync");
    if (in.opcode[2] != "ballot") result = b_.getInt1Ty();
    width = 1;
  } else if (op == "match" && in.opcode.size() == 4) {
    width = in.opcode[3] == "b64" ? 64 : 32;
    absl::StrAppend(&name, "match.", in.opcode[1], ".sync.i", width);
  } else if (op == "redux" && in.opcode.size() == 4) {
    const bool is_unsigned = in.opcode[3] == "u32" && in.opcode[2][0] == 'm';
    absl::StrAppend(&name, "redux.sync.", is_unsigned ? "u" : "", in.opcode[2]);
  } else if (op == "elect") {
    name += "elect.sync";
  } else {
    return false;
  }
  const bool with_predicate =
      in.pair || op == "elect" || (op == "match" && in.opcode[1] == "all");
  if (with_predicate) {
    if (op != "elect") name += "p";
    result = llvm::StructType::get(i32, b_.getInt1Ty());
  }
  for (size_t i = first; i + 1 < in.operands.size(); ++i)
    args.push_back(Bits(in.operands[i], width));
  if (op == "redux") std::swap(args[0], args.back());
  for (Value* arg : args) {
    if (arg == nullptr) return false;
  }
  if (llvm::Intrinsic::lookupIntrinsicID(name) ==
      llvm::Intrinsic::not_intrinsic)
    return false;
  Value* value = CallIntrinsic(name, result, args);
  if (!with_predicate) {
    Write(in.operands[0], value);
    return true;
  }
  Write(in.operands[0], b_.CreateExtractValue(value, 0));
  if (in.pair) Write(in.operands[1], b_.CreateExtractValue(value, 1));
  return true;
}

// By the intrinsics that Clang's builtins give; lowered with them later.
bool PtxTranslator::Synchronize(const PtxInstruction& in) {
  const std::string& op = in.opcode[0];
  if (WarpWide(in)) return true;
  if (op == "griddepcontrol") return true;
  if (op == "activemask" && in.operands.size() == 1) {
    Write(in.operands[0],
          CallIntrinsic("llvm.nvvm.activemask", b_.getInt32Ty(), {}));
    return true;
  }
  const bool reduces = Has(in, "red");
  llvm::SmallVector<Value*, 4> args;
  for (size_t i = reduces ? 1 : 0; i < in.operands.size(); ++i) {
    const bool last = i + 1 == in.operands.size();
    args.push_back(Bits(in.operands[i], reduces && last ? 1 : 32));
    if (args.back() == nullptr) return false;
  }
  if (op == "exit" || op == "ret") {
    CallIntrinsic("llvm.nvvm.exit", b_.getVoidTy(), {});
  } else if (op == "trap" || op == "brkpt") {
    CallIntrinsic("llvm.trap", b_.getVoidTy(), {});
  } else if (op == "nanosleep" && args.size() == 1) {
    CallIntrinsic("llvm.nvvm.nanosleep", b_.getVoidTy(), args);
  } else if (op == "bar" && Has(in, "warp") && args.size() == 1) {
    CallIntrinsic("llvm.nvvm.bar.warp.sync", b_.getVoidTy(), args);
  } else if ((op == "bar" || op == "barrier") && !Has(in, "cluster")) {
    return BlockBarrier(in, args);
  } else {
    return false;
  }
  return true;
}

// bar{.cta}.{sync,arrive,red.op}: barrier{, count}{, predicate}.
bool PtxTranslator::BlockBarrier(const PtxInstruction& in,
                                 llvm::ArrayRef<Value*> args) {
  const bool reduces = Has(in, "red");
  const size_t count = args.size() - (reduces ? 1 : 0);
  if (count != 1 && count != 2) return false;
  std::string name = "llvm.nvvm.barrier.cta.";
  Type* result = b_.getVoidTy();
  if (reduces) {
    result = Has(in, "popc") ? b_.getInt32Ty() : b_.getInt1Ty();
    absl::StrAppend(&name, "red.",
                    Has(in, "popc")  ? "popc"
                    : Has(in, "and") ? "and"
                                     : "or");
  } else {
    name += Has(in, "arrive") ? "arrive" : "sync";
  }
  if (in.opcode[0] == "bar" || Has(in, "aligned")) name += ".aligned";
  name += count == 1 ? ".all" : ".count";
  Value* value = CallIntrinsic(name, result, args);
  if (reduces) Write(in.operands[0], value);
  return true;
}

}  // namespace reprise::cpu
