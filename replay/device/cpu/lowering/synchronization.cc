// Barriers, shuffles, votes and the rest of what threads of a block do
// together, as calls of the runtime.
#include "replay/device/cpu/abi.h"
#include "replay/device/cpu/lowering/intrinsics.h"

namespace reprise::cpu {
namespace {

using llvm::ArrayRef;
using llvm::CallInst;
using llvm::IRBuilder;
using llvm::StringRef;
using llvm::StringSwitch;
using llvm::Type;
using llvm::Value;

constexpr uint32_t kWholeWarp = ~0u;

Value* Number(IRBuilder<>& b, uint32_t value) { return b.getInt32(value); }

// {value, predicate} out of the runtime's packed pair, shaped like the call.
Value* Unpack(IRBuilder<>& b, Value* packed, Type* result) {
  auto* pair = llvm::dyn_cast<llvm::StructType>(result);
  Type* type = pair != nullptr ? pair->getElementType(0) : result;
  Value* low = b.CreateTrunc(packed, b.getInt32Ty());
  if (type->isFloatTy()) low = b.CreateBitCast(low, type);
  if (pair == nullptr) return low;
  Value* predicate = b.CreateTrunc(b.CreateLShr(packed, 32), b.getInt1Ty());
  Value* value = b.CreateInsertValue(llvm::PoisonValue::get(pair), low, 0);
  return b.CreateInsertValue(value, predicate, 1);
}

// barrier.cta.{sync,red.<op>,arrive}[.aligned].{all,count}
Value* Barrier(IRBuilder<>& b, ArrayRef<StringRef> tokens, CallInst& call,
               Value* site) {
  const bool count_given = tokens.back() == "count";
  const StringRef what = tokens[2];
  Value* id = call.getArgOperand(0);
  Value* count = count_given ? call.getArgOperand(1) : Number(b, 0);
  if (what == "arrive") {
    return CallRuntime(b, "__reprise_barrier_arrive", b.getVoidTy(),
                       {id, count, site});
  }
  auto reduction = BarrierReduction::kNone;
  Value* predicate = Number(b, 0);
  if (what == "red") {
    reduction = StringSwitch<BarrierReduction>(tokens[3])
                    .Case("popc", BarrierReduction::kPopulation)
                    .Case("and", BarrierReduction::kAnd)
                    .Default(BarrierReduction::kOr);
    predicate =
        b.CreateZExt(call.getArgOperand(count_given ? 2 : 1), b.getInt32Ty());
  }
  // Only the aligned forms forbid that threads wait at different places.
  const bool aligned = llvm::is_contained(tokens, "aligned");
  Value* place = aligned ? site : llvm::ConstantPointerNull::get(b.getPtrTy());
  Value* result =
      CallRuntime(b, "__reprise_barrier", b.getInt32Ty(),
                  {id, count, Number(b, static_cast<uint32_t>(reduction)),
                   predicate, place});
  if (call.getType()->isVoidTy()) return result;
  return call.getType()->isIntegerTy(1) ? b.CreateICmpNE(result, b.getInt32(0))
                                        : result;
}

// shfl[.sync].{idx,up,down,bfly}.{i32,f32}[p]
Value* Shuffle(IRBuilder<>& b, ArrayRef<StringRef> tokens, CallInst& call,
               Value* site) {
  const bool sync = tokens[1] == "sync";
  const unsigned first = sync ? 1 : 0;
  const auto mode = StringSwitch<ShuffleMode>(tokens[sync ? 2 : 1])
                        .Case("idx", ShuffleMode::kIndex)
                        .Case("up", ShuffleMode::kUp)
                        .Case("down", ShuffleMode::kDown)
                        .Default(ShuffleMode::kButterfly);
  Value* mask = sync ? call.getArgOperand(0) : Number(b, kWholeWarp);
  Value* value = b.CreateBitCast(call.getArgOperand(first), b.getInt32Ty());
  Value* packed = CallRuntime(
      b, "__reprise_shuffle", b.getInt64Ty(),
      {mask, Number(b, static_cast<uint32_t>(mode)), value,
       call.getArgOperand(first + 1), call.getArgOperand(first + 2), site});
  return Unpack(b, packed, call.getType());
}

Value* Vote(IRBuilder<>& b, ArrayRef<StringRef> tokens, CallInst& call,
            Value* site) {
  const bool sync = tokens.back() == "sync";
  const auto mode = StringSwitch<VoteMode>(tokens[1])
                        .Case("all", VoteMode::kAll)
                        .Case("any", VoteMode::kAny)
                        .Case("uni", VoteMode::kUniform)
                        .Default(VoteMode::kBallot);
  Value* mask = sync ? call.getArgOperand(0) : Number(b, kWholeWarp);
  Value* predicate =
      b.CreateZExt(call.getArgOperand(sync ? 1 : 0), b.getInt32Ty());
  Value* result = CallRuntime(
      b, "__reprise_vote", b.getInt32Ty(),
      {mask, Number(b, static_cast<uint32_t>(mode)), predicate, site});
  return call.getType()->isIntegerTy(1) ? b.CreateICmpNE(result, b.getInt32(0))
                                        : result;
}

// match.{any,all}.sync.{i32,i64}[p]
Value* Match(IRBuilder<>& b, ArrayRef<StringRef> tokens, CallInst& call,
             Value* site) {
  Value* mask = call.getArgOperand(0);
  Value* value = b.CreateZExt(call.getArgOperand(1), b.getInt64Ty());
  if (tokens[1] == "any") {
    return CallRuntime(b, "__reprise_match_any", b.getInt32Ty(),
                       {mask, value, site});
  }
  Value* packed = CallRuntime(b, "__reprise_match_all", b.getInt64Ty(),
                              {mask, value, site});
  return Unpack(b, packed, call.getType());
}

Value* Redux(IRBuilder<>& b, ArrayRef<StringRef> tokens, CallInst& call,
             Value* site) {
  const auto mode = StringSwitch<int>(tokens[2])
                        .Case("add", static_cast<int>(ReduxMode::kAdd))
                        .Case("and", static_cast<int>(ReduxMode::kAnd))
                        .Case("or", static_cast<int>(ReduxMode::kOr))
                        .Case("xor", static_cast<int>(ReduxMode::kXor))
                        .Case("min", static_cast<int>(ReduxMode::kMinSigned))
                        .Case("max", static_cast<int>(ReduxMode::kMaxSigned))
                        .Case("umin", static_cast<int>(ReduxMode::kMinUnsigned))
                        .Case("umax", static_cast<int>(ReduxMode::kMaxUnsigned))
                        .Default(-1);
  if (mode < 0) return nullptr;
  return CallRuntime(
      b, "__reprise_redux", b.getInt32Ty(),
      {call.getArgOperand(1), Number(b, mode), call.getArgOperand(0), site});
}

// A cluster of one block: arriving is nothing, waiting is the block's barrier.
Value* ClusterBarrier(IRBuilder<>& b, ArrayRef<StringRef> tokens, Value* site) {
  if (tokens[2] == "arrive") return b.getInt32(0);
  return CallRuntime(
      b, "__reprise_barrier", b.getInt32Ty(),
      {Number(b, 0), Number(b, 0), Number(b, 0), Number(b, 0), site});
}

}  // namespace

bool LowerSynchronization(IRBuilder<>& b, ArrayRef<StringRef> tokens,
                          CallInst& call, Value** value) {
  const StringRef op = tokens[0];
  const bool known =
      StringSwitch<bool>(op)
          .Cases({"barrier", "shfl", "vote", "match", "redux"}, true)
          .Cases({"activemask", "elect"}, true)
          .Case("bar", tokens.size() == 3 && tokens[1] == "warp")
          .Default(false);
  if (!known) return false;
  Value* site = UnnamedSite(*call.getModule());
  if (op == "barrier") {
    *value = tokens[1] == "cluster" ? ClusterBarrier(b, tokens, site)
                                    : Barrier(b, tokens, call, site);
  } else if (op == "shfl") {
    *value = Shuffle(b, tokens, call, site);
  } else if (op == "vote") {
    *value = Vote(b, tokens, call, site);
  } else if (op == "match") {
    *value = Match(b, tokens, call, site);
  } else if (op == "redux") {
    *value = Redux(b, tokens, call, site);
    return *value != nullptr;
  } else if (op == "activemask") {
    *value = CallRuntime(b, "__reprise_activemask", b.getInt32Ty(), {site});
  } else if (op == "elect") {
    *value = Unpack(b,
                    CallRuntime(b, "__reprise_elect", b.getInt64Ty(),
                                {call.getArgOperand(0), site}),
                    call.getType());
  } else {
    *value = CallRuntime(b, "__reprise_warp_sync", b.getVoidTy(),
                         {call.getArgOperand(0), site});
  }
  return true;
}

llvm::Constant* UnnamedSite(llvm::Module& module) {
  return module.getOrInsertGlobal("__reprise_unnamed_site",
                                  llvm::Type::getInt8Ty(module.getContext()));
}

void NameSites(llvm::Module& module) {
  auto* unnamed = module.getGlobalVariable("__reprise_unnamed_site");
  if (unnamed == nullptr) return;
  for (llvm::Use& use : llvm::make_early_inc_range(unnamed->uses())) {
    use.set(SiteString(module, *llvm::cast<llvm::Instruction>(use.getUser())));
  }
  unnamed->eraseFromParent();
}

bool NeedsFibers(StringRef runtime_function) {
  return StringSwitch<bool>(runtime_function)
      .Cases({"__reprise_barrier", "__reprise_barrier_arrive",
              "__reprise_warp_sync"},
             true)
      .Cases({"__reprise_shuffle", "__reprise_vote", "__reprise_match_any"},
             true)
      .Cases({"__reprise_match_all", "__reprise_redux", "__reprise_activemask"},
             true)
      .Cases({"__reprise_elect", "__reprise_exit_thread", "__reprise_yield"},
             true)
      .Default(false);
}

}  // namespace reprise::cpu
