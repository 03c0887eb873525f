#include "replay/compiler/note_accesses.h"

#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "replay/base/status_macros.h"
#include "replay/compiler/address_spaces.h"
#include "replay/compiler/inline_ptx.h"
#include "replay/compiler/kernel_selection.h"
#include "replay/device/cuda/access_notes.h"
#include "replay/device/instruction_facts.h"

namespace reprise {

std::string_view NoteFunctionsBitcode();  // note_functions_bitcode.cc

namespace {

constexpr char kOwnPrefix[] = "__reprise_";

absl::Status CheckNames(const llvm::Module& module) {
  for (const llvm::GlobalValue& value : module.global_values()) {
    if (!value.getName().starts_with(kOwnPrefix)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the device code defines ", value.getName().str(),
        "; names that begin with ", kOwnPrefix, " belong to Reprise"));
  }
  return absl::OkStatus();
}

// The note functions are for any architecture; they take the module's.
void AdoptTarget(const llvm::Module& from, llvm::Module& to) {
  llvm::AttrBuilder target(from.getContext());
  unsigned architecture = 0;
  for (const llvm::Function& function : from) {
    if (!function.hasFnAttribute("target-cpu")) continue;
    target.addAttribute(function.getFnAttribute("target-cpu"));
    target.addAttribute(function.getFnAttribute("target-features"));
    llvm::StringRef cpu =
        function.getFnAttribute("target-cpu").getValueAsString();
    if (!cpu.consume_front("sm_") || cpu.consumeInteger(10, architecture))
      architecture = 0;
    break;
  }
  for (llvm::Function& function : to) {
    if (!function.isDeclaration()) function.addFnAttrs(target);
  }
  llvm::GlobalVariable* number = to.getGlobalVariable("__reprise_architecture");
  number->setInitializer(
      llvm::ConstantInt::get(number->getValueType(), architecture));
  number->setConstant(true);
  number->setExternallyInitialized(false);
  number->setLinkage(llvm::GlobalValue::InternalLinkage);
}

// Links note_functions.cc in. To the program's code its functions are out of
// line and touch memory that the program cannot: its own accesses may be
// reordered with them and optimized as if they were not there. Calls keep their
// order among themselves and with barriers and fences.
absl::Status LinkNoteFunctions(llvm::Module& module) {
  const std::string_view bitcode = NoteFunctionsBitcode();
  auto parsed = llvm::parseBitcodeFile(
      llvm::MemoryBufferRef(llvm::StringRef(bitcode.data(), bitcode.size()),
                            "note_functions"),
      module.getContext());
  if (!parsed) return absl::InternalError(llvm::toString(parsed.takeError()));
  llvm::Module& notes = **parsed;
  // What the flags say of arithmetic is for the program's code.
  if (llvm::NamedMDNode* flags = notes.getModuleFlagsMetadata())
    flags->eraseFromParent();
  if (auto* used = notes.getGlobalVariable("llvm.compiler.used"))
    used->eraseFromParent();
  notes.setDataLayout(module.getDataLayout());
  notes.setTargetTriple(module.getTargetTriple());
  AdoptTarget(module, notes);
  if (llvm::Linker::linkModules(module, std::move(*parsed)))
    return absl::InternalError("the note functions do not link to the module");
  for (llvm::Function& function : module) {
    if (!function.getName().starts_with(kOwnPrefix)) continue;
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.addFnAttr(llvm::Attribute::NoInline);
    function.addFnAttr(llvm::Attribute::WillReturn);
    function.setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly());
  }
  // A note that calls nothing saves no registers to memory.
  llvm::Function* leaf = module.getFunction("__reprise_note_is_parameter");
  leaf->removeFnAttr(llvm::Attribute::NoInline);
  leaf->addFnAttr(llvm::Attribute::AlwaysInline);
  return absl::OkStatus();
}

// Memory of a thread, a block or a launch's parameters.
bool IsPrivateSpace(unsigned space) {
  return space != 0 && space != kGlobalSpace && space != kConstantSpace;
}

bool IsPrivateObject(const llvm::Value& object) {
  if (IsPrivateSpace(object.getType()->getPointerAddressSpace())) return true;
  if (llvm::isa<llvm::AllocaInst, llvm::ConstantPointerNull, llvm::UndefValue>(
          object))
    return true;
  if (const auto* argument = llvm::dyn_cast<llvm::Argument>(&object))
    return argument->hasByValAttr();
  // Constants that nobody can write are no memory of the program.
  const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(&object);
  return variable != nullptr && !variable->isDeclaration() &&
         !IsDeviceState(*variable);
}

// Certainly not memory that others see.
bool IsPrivate(const llvm::Value& pointer) {
  if (IsPrivateSpace(pointer.getType()->getPointerAddressSpace())) return true;
  llvm::SmallVector<const llvm::Value*, 4> objects;
  llvm::getUnderlyingObjects(&pointer, objects, nullptr, /*MaxLookup=*/0);
  return llvm::all_of(objects, [](const llvm::Value* object) {
    return IsPrivateObject(*object);
  });
}

// Inline PTX of a call, read once.
class InlinePtxCache {
 public:
  const InlinePtx& Read(const llvm::CallBase& call) {
    const std::string text =
        llvm::cast<llvm::InlineAsm>(call.getCalledOperand())
            ->getAsmString()
            .str();
    const auto found = known_.find(text);
    if (found != known_.end()) return found->second;
    return known_.emplace(text, ReadInlinePtx(text)).first->second;
  }

 private:
  std::map<std::string, InlinePtx> known_;
};

// Of a whole module.
struct NotingState {
  llvm::Module& module;
  InlinePtxCache inline_ptx;
  // Functions that may end the thread, themselves or by what they call.
  std::set<const llvm::Function*> may_exit;
  std::vector<std::string> not_noted;  // each once
};

bool MayExit(const llvm::CallBase& call, NotingState& state) {
  if (call.isInlineAsm()) return state.inline_ptx.Read(call).exits;
  const llvm::Function* callee = call.getCalledFunction();
  if (callee == nullptr) return false;
  return callee->getIntrinsicID() == llvm::Intrinsic::nvvm_exit ||
         state.may_exit.count(callee) != 0;
}

void FindExits(const std::vector<llvm::Function*>& functions,
               NotingState& state) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (llvm::Function* function : functions) {
      if (state.may_exit.count(function) != 0) continue;
      for (llvm::Instruction& instruction : llvm::instructions(*function)) {
        const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        if (call == nullptr || !MayExit(*call, state)) continue;
        changed = state.may_exit.insert(function).second;
        break;
      }
    }
  }
}

// Calls of functions that the device runtime supplies and that touch no memory
// but their own.
bool IsHarmlessFunction(llvm::StringRef name) {
  return name == "vprintf" || name == "__assertfail" || name == "malloc" ||
         name == "free" || name == "__nvvm_reflect";
}

uint64_t NvvmFlops(llvm::StringRef name, const llvm::CallBase& call) {
  if (!name.consume_front("llvm.nvvm.")) return 0;
  const llvm::Type* type = call.getType();
  if (name.contains("mma.m")) {
    // The pieces of the result are in a struct; "m16n8k16" is of a warp.
    if (const auto* pieces = llvm::dyn_cast<llvm::StructType>(type))
      type = pieces->getElementType(0);
    if (!type->getScalarType()->isFloatingPointTy()) return 0;
    llvm::StringRef rest = name.substr(name.find("mma.m") + 5);
    uint64_t product = 1;
    for (char letter : {'n', 'k', '.'}) {
      uint64_t size = 0;
      if (rest.consumeInteger(10, size)) return 0;
      if (letter != '.' && !rest.consume_front(llvm::StringRef(&letter, 1)))
        return 0;
      product *= size;
    }
    return 2 * product / 32;
  }
  if (!type->getScalarType()->isFloatingPointTy()) return 0;
  const uint64_t lanes = LanesOf(type);
  const llvm::StringRef operation =
      name.take_until([](char letter) { return letter == '.'; });
  if (operation == "fma") return 2 * lanes;
  for (const char* one : {"add", "sub", "mul", "div", "sqrt", "rsqrt", "rcp",
                          "ex2", "lg2", "sin", "cos", "tanh"}) {
    if (operation == one) return lanes;
  }
  return 0;
}

class FunctionNoter {
 public:
  FunctionNoter(llvm::Function& function, NotingState& state)
      : function_(function),
        state_(state),
        layout_(function.getParent()->getDataLayout()) {}
  void Run();

 private:
  using Builder = llvm::IRBuilder<>;
  enum class Access { kRead, kWrite };
  enum Total { kFlops, kBytesRead, kBytesWritten, kTotals };

  void Note(llvm::Instruction& instruction);
  void NoteCall(llvm::CallBase& call);
  void NoteIntrinsic(llvm::IntrinsicInst& call);
  bool NoteMatrix(llvm::IntrinsicInst& call, llvm::StringRef name);
  void NoteInlinePtx(llvm::CallBase& call);
  void NotePtxAccess(llvm::CallBase& call, const PtxAccess& access);
  void Mark(Builder& b, Access access, llvm::Value* pointer,
            const llvm::Type* type);
  void MarkBytes(Builder& b, Access access, llvm::Value* pointer,
                 llvm::Value* bytes);
  void MarkAddress(Builder& b, Access access, llvm::Value* address,
                   llvm::Value* bytes, v1::ElementType type);
  llvm::Value* Address(Builder& b, llvm::Value* pointer);
  uint64_t Flops(const llvm::Instruction& instruction);
  void Sum(Builder& b, Total total, llvm::Value* value);
  void CountFlops();
  void AddTotals();
  void NotNoted(llvm::StringRef what);

  llvm::Function& function_;
  NotingState& state_;
  const llvm::DataLayout& layout_;
  llvm::AllocaInst* totals_[kTotals] = {};  // i64 each, where needed
};

void FunctionNoter::NotNoted(llvm::StringRef what) {
  std::string text = absl::StrCat(what.str(), " in ",
                                  llvm::demangle(function_.getName().str()));
  if (!llvm::is_contained(state_.not_noted, text))
    state_.not_noted.push_back(std::move(text));
}

void FunctionNoter::Sum(Builder& b, Total total, llvm::Value* value) {
  llvm::AllocaInst*& variable = totals_[total];
  if (variable == nullptr) {
    Builder entry(&function_.getEntryBlock(),
                  function_.getEntryBlock().getFirstInsertionPt());
    variable = entry.CreateAlloca(entry.getInt64Ty());
    entry.CreateStore(entry.getInt64(0), variable);
  }
  value = b.CreateZExtOrTrunc(value, b.getInt64Ty());
  llvm::Value* sum = b.CreateLoad(b.getInt64Ty(), variable);
  b.CreateStore(b.CreateAdd(sum, value), variable);
}

llvm::Value* FunctionNoter::Address(Builder& b, llvm::Value* pointer) {
  // A constant's own space has other addresses; a global's has the same.
  if (pointer->getType()->getPointerAddressSpace() == kConstantSpace)
    pointer = b.CreateAddrSpaceCast(pointer, b.getPtrTy());
  return b.CreatePtrToInt(pointer, b.getInt64Ty());
}

void FunctionNoter::MarkAddress(Builder& b, Access access, llvm::Value* address,
                                llvm::Value* bytes, v1::ElementType type) {
  const std::string prefix = access == Access::kRead ? "__reprise_note_read_"
                                                     : "__reprise_note_write_";
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(bytes);
  const uint64_t count = constant != nullptr ? constant->getZExtValue() : 0;
  const bool is_word =
      count == 1 || count == 2 || count == 4 || count == 8 || count == 16;
  llvm::SmallVector<llvm::Value*, 3> arguments = {address};
  if (!is_word) arguments.push_back(b.CreateZExtOrTrunc(bytes, b.getInt64Ty()));
  arguments.push_back(b.getInt32(static_cast<uint32_t>(type)));
  const std::string name = prefix + (is_word ? std::to_string(count) : "bytes");
  llvm::Function* note = state_.module.getFunction(name);
  llvm::Value* noted = b.CreateCall(note, arguments);
  Sum(b, access == Access::kRead ? kBytesRead : kBytesWritten, noted);
}

void FunctionNoter::Mark(Builder& b, Access access, llvm::Value* pointer,
                         const llvm::Type* type) {
  if (IsPrivate(*pointer)) return;
  MarkAddress(
      b, access, Address(b, pointer),
      b.getInt64(layout_.getTypeStoreSize(const_cast<llvm::Type*>(type))),
      ElementTypeOf(type));
}

void FunctionNoter::MarkBytes(Builder& b, Access access, llvm::Value* pointer,
                              llvm::Value* bytes) {
  if (IsPrivate(*pointer)) return;
  MarkAddress(b, access, Address(b, pointer), bytes, v1::ELEMENT_TYPE_UNTYPED);
}

void FunctionNoter::Note(llvm::Instruction& instruction) {
  Builder b(&instruction);
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) {
    Mark(b, Access::kRead, load->getPointerOperand(), load->getType());
  } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    Mark(b, Access::kWrite, store->getPointerOperand(),
         store->getValueOperand()->getType());
  } else if (auto* rmw = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction)) {
    Mark(b, Access::kRead, rmw->getPointerOperand(), rmw->getType());
    Mark(b, Access::kWrite, rmw->getPointerOperand(), rmw->getType());
  } else if (auto* exchange =
                 llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&instruction)) {
    llvm::Value* pointer = exchange->getPointerOperand();
    if (IsPrivate(*pointer)) return;
    const llvm::Type* type = exchange->getCompareOperand()->getType();
    Mark(b, Access::kRead, pointer, type);
    // Written only where the comparison held.
    Builder after(exchange->getNextNode());
    llvm::Instruction* then = llvm::SplitBlockAndInsertIfThen(
        after.CreateExtractValue(exchange, 1), after.GetInsertPoint(), false);
    Builder inside(then);
    Mark(inside, Access::kWrite, pointer, type);
  } else if (auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
    NoteCall(*call);
  }
}

void FunctionNoter::NoteCall(llvm::CallBase& call) {
  if (call.isInlineAsm()) return NoteInlinePtx(call);
  if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call))
    return NoteIntrinsic(*intrinsic);
  const llvm::Function* callee = call.getCalledFunction();
  if (callee != nullptr && callee->isDeclaration() &&
      !IsHarmlessFunction(callee->getName()))
    NotNoted(llvm::demangle(callee->getName().str()));
}

// Memory operands that are not noted by a rule of their own are named, unless
// they are private or the intrinsic touches none.
bool HasForeignOperand(const llvm::IntrinsicInst& call) {
  if (!call.mayReadOrWriteMemory()) return false;
  for (const llvm::Use& operand : call.args()) {
    if (operand->getType()->isPointerTy() && !IsPrivate(*operand)) return true;
  }
  return false;
}

bool IsHarmlessIntrinsic(const llvm::IntrinsicInst& call,
                         llvm::StringRef name) {
  return call.isAssumeLikeIntrinsic() || name.starts_with("llvm.prefetch") ||
         name.starts_with("llvm.nvvm.prefetch") ||
         name.contains(".prefetch.") || name.starts_with("llvm.va_") ||
         name.starts_with("llvm.stack");
}

void FunctionNoter::NoteIntrinsic(llvm::IntrinsicInst& call) {
  Builder b(&call);
  if (auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(&call)) {
    MarkBytes(b, Access::kRead, copy->getSource(), copy->getLength());
    MarkBytes(b, Access::kWrite, copy->getDest(), copy->getLength());
    return;
  }
  if (auto* set = llvm::dyn_cast<llvm::MemSetInst>(&call))
    return MarkBytes(b, Access::kWrite, set->getDest(), set->getLength());
  llvm::StringRef name = call.getCalledFunction()->getName();
  const std::string full = name.str();
  name.consume_front("llvm.nvvm.");
  if (name.starts_with("ldu.global.") || name.starts_with("ldg.global.")) {
    Mark(b, Access::kRead, call.getArgOperand(0), call.getType());
  } else if (name.starts_with("atomic.")) {
    Mark(b, Access::kRead, call.getArgOperand(0), call.getType());
    Mark(b, Access::kWrite, call.getArgOperand(0), call.getType());
  } else if (name.consume_front("cp.async.ca.shared.global.") ||
             name.consume_front("cp.async.cg.shared.global.")) {
    uint64_t bytes = 0;
    if (name.consumeInteger(10, bytes)) return NotNoted(full);
    MarkBytes(b, Access::kRead, call.getArgOperand(1),
              call.arg_size() > 2 ? call.getArgOperand(2) : b.getInt64(bytes));
  } else if (name.consume_front("wmma.") && NoteMatrix(call, name)) {
    return;
  } else if (name.starts_with("tex.") || name.starts_with("tld4.") ||
             name.starts_with("suld.") || name.starts_with("sust.") ||
             (HasForeignOperand(call) && !IsHarmlessIntrinsic(call, full))) {
    NotNoted(full);
  }
}

// "m16n16k16.load.a.row.stride.f16.p1": a matrix in memory is so many lines,
// `stride` elements apart.
struct MatrixAccess {
  bool is_load = false;
  unsigned lines = 0;
  unsigned line_elements = 0;
  unsigned element_bits = 0;
  bool has_stride = false;
  v1::ElementType type = v1::ELEMENT_TYPE_UNTYPED;
};

std::optional<MatrixAccess> ParseMatrixAccess(llvm::StringRef name) {
  if (!name.consume_front("m")) return std::nullopt;
  unsigned m = 0, n = 0, k = 0;
  if (name.consumeInteger(10, m) || !name.consume_front("n") ||
      name.consumeInteger(10, n) || !name.consume_front("k") ||
      name.consumeInteger(10, k) || !name.consume_front("."))
    return std::nullopt;
  llvm::SmallVector<llvm::StringRef, 6> parts;
  name.split(parts, '.');
  if (parts.size() < 5 || (parts[0] != "load" && parts[0] != "store"))
    return std::nullopt;
  MatrixAccess access;
  access.is_load = parts[0] == "load";
  access.lines = parts[1] == "b" ? k : m;
  access.line_elements = parts[1] == "a" ? k : n;
  if (parts[2] == "col") std::swap(access.lines, access.line_elements);
  access.has_stride = parts[3] == "stride";
  const llvm::StringRef type = parts[access.has_stride ? 4 : 3];
  if (type.drop_while([](char c) { return !llvm::isDigit(c); })
          .getAsInteger(10, access.element_bits))
    return std::nullopt;
  access.type = llvm::StringSwitch<v1::ElementType>(type)
                    .Case("f16", v1::ELEMENT_TYPE_F16)
                    .Case("bf16", v1::ELEMENT_TYPE_BF16)
                    .Cases({"f32", "tf32"}, v1::ELEMENT_TYPE_F32)
                    .Case("f64", v1::ELEMENT_TYPE_F64)
                    .Cases({"s8", "u8"}, v1::ELEMENT_TYPE_I8)
                    .Case("s32", v1::ELEMENT_TYPE_I32)
                    .Default(v1::ELEMENT_TYPE_UNTYPED);
  return access;
}

// A warp accesses the matrix together; each lane notes one line.
bool FunctionNoter::NoteMatrix(llvm::IntrinsicInst& call,
                               llvm::StringRef name) {
  const std::optional<MatrixAccess> access = ParseMatrixAccess(name);
  if (!access || access->lines > 32) return false;
  llvm::Value* pointer = call.getArgOperand(0);
  if (IsPrivate(*pointer)) return true;
  Builder b(&call);
  llvm::Value* lane =
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_laneid, {});
  llvm::Value* has_line = b.CreateICmpULT(lane, b.getInt32(access->lines));
  b.SetInsertPoint(llvm::SplitBlockAndInsertIfThen(has_line, call.getIterator(),
                                                   /*Unreachable=*/false));
  llvm::Value* stride =
      access->has_stride ? b.CreateZExt(call.getArgOperand(call.arg_size() - 1),
                                        b.getInt64Ty())
                         : b.getInt64(access->line_elements);
  llvm::Value* bits =
      b.CreateMul(b.CreateMul(stride, b.getInt64(access->element_bits)),
                  b.CreateZExt(lane, b.getInt64Ty()));
  MarkAddress(b, access->is_load ? Access::kRead : Access::kWrite,
              b.CreateAdd(Address(b, pointer), b.CreateLShr(bits, 3)),
              b.getInt64(access->line_elements * access->element_bits / 8),
              access->type);
  return true;
}

// The operand of an asm statement that "$number" names; null for a result.
llvm::Value* AsmOperand(const llvm::CallBase& call, unsigned number) {
  const auto* assembly = llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
  unsigned argument = 0;
  unsigned at = 0;
  for (const auto& constraint : assembly->ParseConstraints()) {
    if (constraint.Type == llvm::InlineAsm::isClobber) continue;
    const bool result =
        constraint.Type == llvm::InlineAsm::isOutput && !constraint.isIndirect;
    if (at++ == number) {
      return result ? nullptr : call.getArgOperand(argument);
    }
    if (!result) ++argument;
  }
  return nullptr;
}

// An i64, or null where it is not known before the statement runs.
llvm::Value* ValueBefore(llvm::IRBuilder<>& b, const llvm::CallBase& call,
                         const PtxValue& value) {
  if (!value.operand) return b.getInt64(value.constant);
  llvm::Value* operand = AsmOperand(call, *value.operand);
  if (operand == nullptr) return nullptr;
  if (operand->getType()->isPointerTy())
    operand = b.CreatePtrToInt(operand, b.getInt64Ty());
  if (!operand->getType()->isIntegerTy()) return nullptr;
  return b.CreateAdd(b.CreateZExtOrTrunc(operand, b.getInt64Ty()),
                     b.getInt64(value.constant));
}

void FunctionNoter::NotePtxAccess(llvm::CallBase& call,
                                  const PtxAccess& access) {
  Builder b(&call);
  if (access.guard) {
    llvm::Value* guard = ValueBefore(b, call, *access.guard);
    if (guard == nullptr) return NotNoted("guarded inline PTX");
    llvm::Value* runs = access.guard_is_zero
                            ? b.CreateICmpEQ(guard, b.getInt64(0))
                            : b.CreateICmpNE(guard, b.getInt64(0));
    b.SetInsertPoint(llvm::SplitBlockAndInsertIfThen(runs, call.getIterator(),
                                                     /*Unreachable=*/false));
  }
  llvm::Value* address = ValueBefore(b, call, access.address);
  llvm::Value* bytes = ValueBefore(b, call, access.bytes);
  if (address == nullptr || bytes == nullptr)
    return NotNoted("inline PTX with an address of its own");
  if (access.reads) MarkAddress(b, Access::kRead, address, bytes, access.type);
  if (access.writes)
    MarkAddress(b, Access::kWrite, address, bytes, access.type);
}

void FunctionNoter::NoteInlinePtx(llvm::CallBase& call) {
  const InlinePtx& ptx = state_.inline_ptx.Read(call);
  for (const PtxAccess& access : ptx.accesses) NotePtxAccess(call, access);
  for (const std::string& what : ptx.not_understood)
    NotNoted("inline PTX " + what);
}

uint64_t FunctionNoter::Flops(const llvm::Instruction& instruction) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr || call->getCalledFunction() == nullptr) {
    return call != nullptr && call->isInlineAsm()
               ? state_.inline_ptx.Read(*call).flops
               : CommonFlops(instruction);
  }
  const uint64_t flops = NvvmFlops(call->getCalledFunction()->getName(), *call);
  return flops != 0 ? flops : CommonFlops(instruction);
}

void FunctionNoter::CountFlops() {
  std::vector<std::pair<llvm::Instruction*, uint64_t>> blocks;
  for (llvm::BasicBlock& block : function_) {
    uint64_t flops = 0;
    for (const llvm::Instruction& instruction : block)
      flops += Flops(instruction);
    if (flops != 0) blocks.emplace_back(block.getTerminator(), flops);
  }
  for (const auto& [end, flops] : blocks) {
    Builder b(end);
    Sum(b, kFlops, b.getInt64(flops));
  }
}

// Where the function ends, and before what may end the thread.
void FunctionNoter::AddTotals() {
  if (llvm::none_of(totals_, [](auto* total) { return total != nullptr; }))
    return;
  std::vector<llvm::Instruction*> ends;
  for (llvm::Instruction& instruction : llvm::instructions(function_)) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (llvm::isa<llvm::ReturnInst>(instruction) ||
        (call != nullptr && MayExit(*call, state_)))
      ends.push_back(&instruction);
  }
  for (llvm::Instruction* end : ends) {
    Builder b(end);
    llvm::SmallVector<llvm::Value*, kTotals> sums;
    for (llvm::AllocaInst* total : totals_) {
      if (total == nullptr) {
        sums.push_back(b.getInt64(0));
        continue;
      }
      sums.push_back(b.CreateLoad(b.getInt64Ty(), total));
      b.CreateStore(b.getInt64(0), total);
    }
    b.CreateCall(state_.module.getFunction("__reprise_note_totals"), sums);
  }
}

void FunctionNoter::Run() {
  CountFlops();
  std::vector<llvm::Instruction*> instructions;
  for (llvm::Instruction& instruction : llvm::instructions(function_))
    instructions.push_back(&instruction);
  for (llvm::Instruction* instruction : instructions) Note(*instruction);
  AddTotals();
}

// Functions and calls that were free of effects now note things.
void AllowNotes(llvm::Function& function) {
  const auto notes = llvm::MemoryEffects::inaccessibleMemOnly();
  function.setMemoryEffects(function.getMemoryEffects() | notes);
  function.removeFnAttr(llvm::Attribute::Speculatable);
  for (llvm::Instruction& instruction : llvm::instructions(function)) {
    auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr || call->isInlineAsm()) continue;
    const llvm::Function* callee = call->getCalledFunction();
    if (callee != nullptr && callee->isDeclaration()) continue;
    call->setMemoryEffects(call->getMemoryEffects() | notes);
    call->removeFnAttr(llvm::Attribute::Speculatable);
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> NoteAccesses(llvm::Module& module) {
  RETURN_IF_ERROR(CheckNames(module));
  std::vector<llvm::Function*> functions;
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) functions.push_back(&function);
  }
  RETURN_IF_ERROR(LinkNoteFunctions(module));
  NotingState state{module, {}, {}, {}};
  FindExits(functions, state);
  for (llvm::Function* function : functions) AllowNotes(*function);
  for (llvm::Function* function : functions)
    FunctionNoter(*function, state).Run();
  return std::move(state.not_noted);
}

}  // namespace reprise
