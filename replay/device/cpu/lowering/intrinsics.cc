// NVPTX intrinsics and device-side library calls, one call at a time.
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Intrinsics.h>

#include "absl/strings/str_cat.h"
#include "replay/base/status_macros.h"
#include "replay/device/cpu/abi.h"
#include "replay/device/cpu/lowering/intrinsics.h"

namespace reprise::cpu {
namespace {

using llvm::CallInst;
using llvm::IRBuilder;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::StringSwitch;
using llvm::Type;
using llvm::Value;

bool Has(llvm::ArrayRef<StringRef> tokens, StringRef token) {
  return llvm::is_contained(tokens, token);
}

char RoundingOf(llvm::ArrayRef<StringRef> tokens) {
  for (StringRef token : tokens) {
    if (token == "rn" || token == "rz" || token == "rm" || token == "rp")
      return token[1];
  }
  return 'n';
}

Value* FloatIntrinsic(IRBuilder<>& b, llvm::ArrayRef<StringRef> tokens,
                      llvm::ArrayRef<Value*> args) {
  const StringRef name =
      StringSwitch<StringRef>(tokens[0])
          .Cases({"add", "mul", "div", "fma", "sqrt", "rcp", "rsqrt", "ex2",
                  "lg2", "sin", "cos", "ceil", "floor", "trunc", "round",
                  "saturate", "neg"},
                 tokens[0])
          .Case("fmin", "min")
          .Case("fmax", "max")
          .Case("fabs", "abs")
          .Default("");
  if (name.empty()) return nullptr;
  FloatOp op;
  op.name = name;
  op.rounding = RoundingOf(tokens);
  op.flush = Has(tokens, "ftz");
  op.saturate = Has(tokens, "sat");
  op.relu = Has(tokens, "relu");
  op.propagate_nan = Has(tokens, "nan");
  op.absolute = Has(tokens, "xorsign");
  op.approximate = Has(tokens, "approx");
  return EmitFloatOp(b, op, args);
}

// "d2i", "ull2f" and the like.
Value* ConversionIntrinsic(IRBuilder<>& b, llvm::ArrayRef<StringRef> tokens,
                           CallInst& call) {
  const auto [source, target] = tokens[0].split('2');
  Conversion how;
  how.rounding = RoundingOf(tokens);
  how.flush = Has(tokens, "ftz");
  how.relu = Has(tokens, "relu");
  how.source_signed = source == "i" || source == "ll";
  how.target_signed = target == "i" || target == "ll";
  if (Has(tokens, "satfinite") || Has(tokens, "rs")) return nullptr;
  Value* operand = call.getArgOperand(0);
  if (source == "ff" && (target == "f16x2" || target == "bf16x2")) {
    auto* type = llvm::cast<llvm::FixedVectorType>(call.getType());
    Type* element = type->getElementType();
    Value* high = EmitConversion(b, operand, element, how);
    Value* low = EmitConversion(b, call.getArgOperand(1), element, how);
    Value* result =
        b.CreateInsertElement(llvm::PoisonValue::get(type), low, uint64_t{0});
    return b.CreateInsertElement(result, high, uint64_t{1});
  }
  if (target == "h") {  // f2h, bf2h: the half's bits
    return b.CreateBitCast(EmitConversion(b, operand, b.getHalfTy(), how),
                           call.getType());
  }
  const bool known =
      StringSwitch<bool>(target)
          .Cases({"i", "ui", "ll", "ull", "f", "d", "f16", "bf16"}, true)
          .Default(false) &&
      StringSwitch<bool>(source)
          .Cases({"i", "ui", "ll", "ull", "f", "d"}, true)
          .Default(false);
  return known ? EmitConversion(b, operand, call.getType(), how) : nullptr;
}

Value* MultiplyHigh(IRBuilder<>& b, Value* x, Value* y, bool is_signed) {
  const unsigned width = x->getType()->getIntegerBitWidth();
  Type* wide = b.getIntNTy(2 * width);
  auto extend = [&](Value* v) {
    return is_signed ? b.CreateSExt(v, wide) : b.CreateZExt(v, wide);
  };
  return b.CreateTrunc(b.CreateLShr(b.CreateMul(extend(x), extend(y)), width),
                       x->getType());
}

Value* Multiply24(IRBuilder<>& b, Value* x, Value* y, bool is_signed) {
  auto cut = [&](Value* v) {
    Value* top = b.CreateShl(v, 8);
    return is_signed ? b.CreateAShr(top, 8) : b.CreateLShr(top, 8);
  };
  return b.CreateMul(cut(x), cut(y));
}

Value* AbsoluteDifference(IRBuilder<>& b, Value* x, Value* y, Value* z,
                          bool is_signed) {
  Value* less = is_signed ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
  Value* difference =
      b.CreateSelect(less, b.CreateSub(y, x), b.CreateSub(x, y));
  return b.CreateAdd(difference, z);
}

Value* DotProduct(IRBuilder<>& b, llvm::ArrayRef<StringRef> tokens,
                  CallInst& call) {
  SmallVector<Value*, 4> args(call.args());
  const std::string name =
      absl::StrCat("__reprise_d", std::string(tokens[0].drop_front(2)), "_",
                   tokens[1].str(), "_", tokens[2].str());
  return CallLibrary(b, name, b.getInt32Ty(), args);
}

Value* FunnelClamp(IRBuilder<>& b, CallInst& call, bool left) {
  Value* amount = b.CreateBinaryIntrinsic(
      llvm::Intrinsic::umin, call.getArgOperand(2), b.getInt32(32));
  Type* i64 = b.getInt64Ty();
  Value* wide =
      b.CreateOr(b.CreateShl(b.CreateZExt(call.getArgOperand(0), i64), 32),
                 b.CreateZExt(call.getArgOperand(1), i64));
  amount = b.CreateZExt(amount, i64);
  Value* shifted = left ? b.CreateLShr(b.CreateShl(wide, amount), 32)
                        : b.CreateLShr(wide, amount);
  return b.CreateTrunc(shifted, b.getInt32Ty());
}

Value* IntegerIntrinsic(IRBuilder<>& b, llvm::ArrayRef<StringRef> tokens,
                        CallInst& call) {
  SmallVector<Value*, 4> args(call.args());
  const StringRef op = tokens[0];
  const StringRef type = tokens.size() > 1 ? tokens[1] : StringRef();
  const bool is_signed = type == "i" || type == "ll" || type == "s";
  if (op == "mulhi") return MultiplyHigh(b, args[0], args[1], is_signed);
  if (op == "mul24") return Multiply24(b, args[0], args[1], is_signed);
  if (op == "sad")
    return AbsoluteDifference(b, args[0], args[1], args[2], is_signed);
  if (op == "idp4a" || op == "idp2a") return DotProduct(b, tokens, call);
  if (op == "fshl") return FunnelClamp(b, call, true);
  if (op == "fshr") return FunnelClamp(b, call, false);
  if (op == "fns") return CallLibrary(b, "__reprise_fns", b.getInt32Ty(), args);
  if (op == "prmt") {
    const bool plain = tokens.size() == 1;
    if (args.size() == 2) args.insert(args.begin() + 1, b.getInt32(0));
    return CallLibrary(b, plain ? "__reprise_prmt" : "__reprise_prmt_" + type,
                       b.getInt32Ty(), args);
  }
  if (op == "d2i" && (type == "lo" || type == "hi")) {
    Value* bits = b.CreateBitCast(args[0], b.getInt64Ty());
    return b.CreateTrunc(type == "hi" ? b.CreateLShr(bits, 32) : bits,
                         b.getInt32Ty());
  }
  if (op == "lohi") {
    Type* i64 = b.getInt64Ty();
    Value* bits = b.CreateOr(b.CreateZExt(args[0], i64),
                             b.CreateShl(b.CreateZExt(args[1], i64), 32));
    return b.CreateBitCast(bits, b.getDoubleTy());
  }
  if (op == "move") return args[0];
  return nullptr;
}

// Counters and ids that do not depend on the thread.
Value* SpecialRegister(IRBuilder<>& b, StringRef name, CallInst& call) {
  Type* type = call.getType();
  if (name == "clock" || name == "clock64") {
    return b.CreateTrunc(CallRuntime(b, "__reprise_clock", b.getInt64Ty(), {}),
                         type);
  }
  if (name == "globaltimer" || name == "globaltimer.lo") {
    return b.CreateTrunc(
        CallRuntime(b, "__reprise_globaltimer", b.getInt64Ty(), {}), type);
  }
  const int64_t value =
      StringSwitch<int64_t>(name)
          .Case("warpsize", 32)
          .Cases({"smid", "gridid", "pm0", "pm1", "pm2", "pm3"}, 0)
          .Cases({"nsmid", "cluster.nctarank"}, 1)
          .Cases({"cluster.nctaid.x", "cluster.nctaid.y", "cluster.nctaid.z"},
                 1)
          .Cases({"cluster.ctaid.x", "cluster.ctaid.y", "cluster.ctaid.z"}, 0)
          .Cases({"cluster.ctarank", "tid.w", "ctaid.w"}, 0)
          .Default(-1);
  return value < 0 ? nullptr : llvm::ConstantInt::get(type, value);
}

// Left for BuildThreadFunctions.
bool IsThreadRegister(StringRef name) {
  return StringSwitch<bool>(name)
      .Cases({"tid.x", "tid.y", "tid.z", "ntid.x", "ntid.y", "ntid.z"}, true)
      .Cases(
          {"ctaid.x", "ctaid.y", "ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z"},
          true)
      .Cases({"clusterid.x", "clusterid.y", "clusterid.z"}, true)
      .Cases({"nclusterid.x", "nclusterid.y", "nclusterid.z"}, true)
      .Cases({"laneid", "warpid", "nwarpid"}, true)
      .Cases({"lanemask.eq", "lanemask.lt", "lanemask.le", "lanemask.gt",
              "lanemask.ge"},
             true)
      .Cases({"dynamic_smem_size", "total_smem_size", "aggr_smem_size"}, true)
      .Default(false);
}

// Replaces an intrinsic that gives no value.
bool LowerEffect(IRBuilder<>& b, llvm::ArrayRef<StringRef> tokens,
                 CallInst& call) {
  const StringRef op = tokens[0];
  if (op == "membar" || op == "fence") {
    b.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
    return true;
  }
  if (op == "nanosleep") {
    CallRuntime(b, "__reprise_yield", b.getVoidTy(), {});
    return true;
  }
  if (op == "griddepcontrol") return true;
  if (op == "cp" && tokens.size() > 2 && tokens[1] == "async") {
    if (tokens[2] == "commit" || tokens[2] == "wait") return true;
    if (tokens[2] == "ca" || tokens[2] == "cg") {
      // Copied at once: a wait may only follow.
      uint64_t bytes = 0;
      if (call.arg_size() != 2 || tokens.back().getAsInteger(10, bytes))
        return false;
      b.CreateMemCpy(call.getArgOperand(0), llvm::Align(bytes),
                     call.getArgOperand(1), llvm::Align(bytes), bytes);
      return true;
    }
  }
  return false;
}

Value* IsSpace(IRBuilder<>& b, StringRef space, Value* pointer) {
  const auto kind = StringSwitch<MemorySpace>(space)
                        .Case("shared", MemorySpace::kShared)
                        .Case("local", MemorySpace::kLocal)
                        .Case("const", MemorySpace::kConstant)
                        .Default(MemorySpace::kGlobal);
  Value* result =
      CallRuntime(b, "__reprise_is_space", b.getInt32Ty(),
                  {pointer, b.getInt32(static_cast<uint32_t>(kind))});
  return b.CreateICmpNE(result, b.getInt32(0));
}

Value* LoadIntrinsic(IRBuilder<>& b, CallInst& call) {
  auto align =
      llvm::cast<llvm::ConstantInt>(call.getArgOperand(1))->getZExtValue();
  return b.CreateAlignedLoad(call.getType(), call.getArgOperand(0),
                             llvm::Align(align));
}

llvm::AtomicRMWInst::BinOp AtomicOperation(StringRef name, Type* type) {
  using Op = llvm::AtomicRMWInst;
  if (name == "add") return type->isFloatingPointTy() ? Op::FAdd : Op::Add;
  return StringSwitch<Op::BinOp>(name)
      .Case("exch", Op::Xchg)
      .Case("and", Op::And)
      .Case("or", Op::Or)
      .Case("xor", Op::Xor)
      .Case("max", Op::Max)
      .Case("min", Op::Min)
      .Case("inc", Op::UIncWrap)
      .Case("dec", Op::UDecWrap)
      .Default(Op::BAD_BINOP);
}

Value* AtomicIntrinsic(IRBuilder<>& b, StringRef name, CallInst& call) {
  const auto order = llvm::AtomicOrdering::SequentiallyConsistent;
  if (name == "cas") {
    Value* pair = b.CreateAtomicCmpXchg(
        call.getArgOperand(0), call.getArgOperand(1), call.getArgOperand(2),
        llvm::MaybeAlign(), order, order);
    return b.CreateExtractValue(pair, 0);
  }
  const auto op = AtomicOperation(name, call.getType());
  if (op == llvm::AtomicRMWInst::BAD_BINOP) return nullptr;
  return b.CreateAtomicRMW(op, call.getArgOperand(0), call.getArgOperand(1),
                           llvm::MaybeAlign(), order);
}

Value* ValueOf(IRBuilder<>& b, llvm::ArrayRef<StringRef> tokens, StringRef name,
               CallInst& call) {
  const StringRef op = tokens[0];
  if (name.consume_front("read.ptx.sreg."))
    return SpecialRegister(b, name, call);
  if (op == "isspacep") return IsSpace(b, tokens[1], call.getArgOperand(0));
  if (op == "ldu" || op == "ldg") return LoadIntrinsic(b, call);
  if (op == "atomic") return AtomicIntrinsic(b, tokens[1], call);
  if (op == "is_explicit_cluster") return b.getFalse();
  if (op == "mapa") return call.getArgOperand(0);
  if (op == "getctarank") return b.getInt32(0);
  if (Value* value = IntegerIntrinsic(b, tokens, call)) return value;
  if (op.contains('2') && call.arg_size() > 0 && op != "ex2" && op != "lg2") {
    return ConversionIntrinsic(b, tokens, call);
  }
  SmallVector<Value*, 4> args(call.args());
  return args.empty() ? nullptr : FloatIntrinsic(b, tokens, args);
}

void Replace(CallInst& call, Value* value) {
  if (value != nullptr && !call.getType()->isVoidTy())
    call.replaceAllUsesWith(value);
  call.eraseFromParent();
}

absl::Status LowerIntrinsic(LoweringState& state, CallInst& call,
                            StringRef full_name) {
  StringRef name = full_name;
  name.consume_front("llvm.nvvm.");
  StringRef sreg = name;
  if (sreg.consume_front("read.ptx.sreg.") && IsThreadRegister(sreg))
    return absl::OkStatus();
  if (name == "exit") return absl::OkStatus();
  SmallVector<StringRef, 8> tokens;
  name.split(tokens, '.');
  IRBuilder<> b(&call);
  Value* value = nullptr;
  if (LowerSynchronization(b, tokens, call, &value)) {
    Replace(call, value);
    return absl::OkStatus();
  }
  if (LowerEffect(b, tokens, call)) {
    Replace(call, nullptr);
    return absl::OkStatus();
  }
  value = ValueOf(b, tokens, name, call);
  if (value == nullptr) return Refuse(state, call, full_name);
  Replace(call, value);
  return absl::OkStatus();
}

// Functions that CUDA's device runtime supplies.
absl::Status LowerDeviceCall(LoweringState& state, CallInst& call,
                             StringRef name) {
  IRBuilder<> b(&call);
  if (name == "vprintf") {
    Replace(call, CallRuntime(b, "__reprise_vprintf", b.getInt32Ty(),
                              {call.getArgOperand(0), call.getArgOperand(1)}));
  } else if (name == "__assertfail" || name == "__assert_fail") {
    CallRuntime(b, "__reprise_assert_fail", b.getVoidTy(),
                {call.getArgOperand(0), call.getArgOperand(1),
                 call.getArgOperand(2), call.getArgOperand(3)});
    Replace(call, nullptr);
  } else {
    return Refuse(state, call, llvm::demangle(name.str()));
  }
  return absl::OkStatus();
}

}  // namespace

namespace {

std::vector<CallInst*> Calls(llvm::Module& module) {
  std::vector<CallInst*> calls;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (auto* call = llvm::dyn_cast<CallInst>(&instruction)) {
        calls.push_back(call);
      }
    }
  }
  return calls;
}

}  // namespace

absl::Status LowerIntrinsics(LoweringState& state) {
  // Inline assembly first: it becomes intrinsics in part.
  for (CallInst* call : Calls(state.module)) {
    if (call->isInlineAsm()) {
      RETURN_IF_ERROR(LowerInlineAssembly(state, *call));
    }
  }
  for (CallInst* call : Calls(state.module)) {
    llvm::Function* callee = call->getCalledFunction();
    if (callee == nullptr || !callee->isDeclaration()) continue;
    const StringRef name = callee->getName();
    if (name.starts_with("llvm.nvvm.")) {
      RETURN_IF_ERROR(LowerIntrinsic(state, *call, name));
    } else if (name == "llvm.trap" || name == "llvm.debugtrap") {
      IRBuilder<> b(call);
      CallRuntime(b, "__reprise_trap", b.getVoidTy(),
                  {UnnamedSite(state.module)});
      Replace(*call, nullptr);
    } else if (!callee->isIntrinsic() && !name.starts_with("__reprise_")) {
      RETURN_IF_ERROR(LowerDeviceCall(state, *call, name));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise::cpu
