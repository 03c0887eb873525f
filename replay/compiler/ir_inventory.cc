#include "replay/compiler/ir_inventory.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "replay/compiler/address_spaces.h"
#include "replay/compiler/pipeline.h"
#include "replay/compiler/source_tree.h"

namespace reprise {
namespace {

// "a.cu:12", or empty in a toolchain's header.
std::string UsersPlace(const llvm::DILocation& location) {
  std::string file = location.getFilename().str();
  if (!file.empty() && file[0] != '/')
    file = absl::StrCat(location.getDirectory().str(), "/", file);
  if (file.empty() || file.compare(0, 5, "/usr/") == 0 ||
      IsToolchainHeader(file))
    return "";
  return absl::StrCat(file, ":", location.getLine());
}

// Of an instruction; of one within a toolchain's header, where that is called
// from.
std::string PlaceOf(const llvm::Instruction& instruction, int depth = 0) {
  for (const llvm::DILocation* location = instruction.getDebugLoc().get();
       location != nullptr; location = location->getInlinedAt()) {
    std::string place = UsersPlace(*location);
    if (!place.empty()) return place;
  }
  if (depth == 8) return "";
  for (const llvm::User* user : instruction.getFunction()->users()) {
    const auto* call = llvm::dyn_cast<llvm::Instruction>(user);
    if (call == nullptr) continue;
    std::string place = PlaceOf(*call, depth + 1);
    if (!place.empty()) return place;
  }
  return "";
}

// Intrinsics that compute, move data or tell the optimizer something. Sources
// can name any of LLVM's, those of the host's processor too.
bool IsHarmless(llvm::StringRef name) {
  constexpr llvm::StringRef kFamilies[] = {"nvvm.",
                                           "lifetime.",
                                           "memcpy.",
                                           "memmove.",
                                           "memset.",
                                           "assume",
                                           "expect.",
                                           "fma.",
                                           "fmuladd.",
                                           "sqrt.",
                                           "fabs.",
                                           "floor.",
                                           "ceil.",
                                           "trunc.",
                                           "rint.",
                                           "nearbyint.",
                                           "round.",
                                           "roundeven.",
                                           "lround.",
                                           "llround.",
                                           "lrint.",
                                           "llrint.",
                                           "copysign.",
                                           "minnum.",
                                           "maxnum.",
                                           "minimum.",
                                           "maximum.",
                                           "minimumnum.",
                                           "maximumnum.",
                                           "pow.",
                                           "powi.",
                                           "exp.",
                                           "exp2.",
                                           "exp10.",
                                           "log.",
                                           "log2.",
                                           "log10.",
                                           "sin.",
                                           "cos.",
                                           "tan.",
                                           "asin.",
                                           "acos.",
                                           "atan.",
                                           "atan2.",
                                           "sinh.",
                                           "cosh.",
                                           "tanh.",
                                           "sincos.",
                                           "sincospi.",
                                           "canonicalize.",
                                           "is.fpclass.",
                                           "ctpop.",
                                           "ctlz.",
                                           "cttz.",
                                           "bitreverse.",
                                           "bswap.",
                                           "fshl.",
                                           "fshr.",
                                           "abs.",
                                           "smax.",
                                           "smin.",
                                           "umax.",
                                           "umin.",
                                           "scmp.",
                                           "ucmp.",
                                           "sadd.",
                                           "uadd.",
                                           "ssub.",
                                           "usub.",
                                           "smul.",
                                           "umul.",
                                           "sshl.",
                                           "ushl.",
                                           "fptosi.sat.",
                                           "fptoui.sat.",
                                           "ldexp.",
                                           "frexp.",
                                           "modf.",
                                           "vector.",
                                           "masked.",
                                           "is.constant.",
                                           "objectsize.",
                                           "trap",
                                           "debugtrap",
                                           "ubsantrap",
                                           "stacksave",
                                           "stackrestore",
                                           "prefetch.",
                                           "launder.invariant.group.",
                                           "strip.invariant.group.",
                                           "invariant.",
                                           "experimental.noalias.scope.decl",
                                           "experimental.convergence.",
                                           "experimental.constrained.",
                                           "arithmetic.fence.",
                                           "annotation.",
                                           "var.annotation",
                                           "ptr.annotation",
                                           "donothing",
                                           "sideeffect",
                                           "va_start",
                                           "va_end",
                                           "va_copy",
                                           "ptrmask.",
                                           "convert.",
                                           "dbg."};
  if (!name.consume_front("llvm.")) return false;
  return std::any_of(
      std::begin(kFamilies), std::end(kFamilies),
      [&](llvm::StringRef family) { return name.starts_with(family); });
}

// Of the first instruction that uses it, maybe through constants.
std::string PlaceOfUse(const llvm::Value& value, int depth = 0) {
  for (const llvm::User* user : value.users()) {
    std::string place;
    if (const auto* instruction = llvm::dyn_cast<llvm::Instruction>(user)) {
      place = PlaceOf(*instruction);
    } else if (depth < 8) {
      place = PlaceOfUse(*user, depth + 1);
    }
    if (!place.empty()) return place;
  }
  return "";
}

// Whether an integer was made from a pointer, so that turning it back says no
// more than pointer arithmetic does.
class PointerOrigins {
 public:
  bool ComesFromPointer(const llvm::Value& value, int depth = 0) {
    if (depth > 24) return false;
    if (value.getType()->isPointerTy()) return true;
    const auto* operation = llvm::dyn_cast<llvm::Operator>(&value);
    if (operation == nullptr) return false;
    if (operation->getOpcode() == llvm::Instruction::PtrToInt) return true;
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&value))
      return HoldsPointer(*load->getPointerOperand(), depth);
    if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&value))
      return call->isInlineAsm() ? TakesPointer(*call, depth)
                                 : ReturnsPointer(*call, depth);
    if (!llvm::isa<llvm::BinaryOperator, llvm::CastInst, llvm::PHINode,
                   llvm::SelectInst>(operation))
      return false;
    for (const llvm::Value* operand : operation->operands()) {
      if (ComesFromPointer(*operand, depth + 1)) return true;
    }
    return false;
  }

 private:
  // A local variable into which only such integers are stored.
  bool HoldsPointer(const llvm::Value& variable, int depth) {
    if (!llvm::isa<llvm::AllocaInst>(variable)) return false;
    if (!visiting_.insert(&variable).second) return true;
    bool any = false;
    bool all = true;
    for (const llvm::User* user : variable.users()) {
      const auto* store = llvm::dyn_cast<llvm::StoreInst>(user);
      if (store == nullptr || store->getPointerOperand() != &variable) continue;
      any = true;
      all = all && ComesFromPointer(*store->getValueOperand(), depth + 1);
    }
    visiting_.erase(&variable);
    return any && all;
  }

  // Conversions in inline PTX (cvta).
  bool TakesPointer(const llvm::CallInst& call, int depth) {
    for (const llvm::Value* argument : call.args())
      if (ComesFromPointer(*argument, depth + 1)) return true;
    return false;
  }

  // Conversions of the toolkit's headers (__cvta_generic_to_global).
  bool ReturnsPointer(const llvm::CallInst& call, int depth) {
    const llvm::Function* callee = call.getCalledFunction();
    if (callee == nullptr || callee->isDeclaration()) return false;
    if (!visiting_.insert(callee).second) return true;
    bool any = false;
    bool all = true;
    for (const llvm::Instruction& instruction : llvm::instructions(callee)) {
      const auto* back = llvm::dyn_cast<llvm::ReturnInst>(&instruction);
      if (back == nullptr || back->getReturnValue() == nullptr) continue;
      any = true;
      all = all && ComesFromPointer(*back->getReturnValue(), depth + 1);
    }
    visiting_.erase(callee);
    return any && all;
  }

  std::set<const llvm::Value*> visiting_;
};

// The local variable that an address lies in, and where; null where that is
// not a constant.
const llvm::AllocaInst* LocalAt(const llvm::Value& address,
                                const llvm::DataLayout& layout, int64_t* at) {
  llvm::APInt offset(layout.getIndexTypeSizeInBits(address.getType()), 0);
  const llvm::Value* base = address.stripAndAccumulateConstantOffsets(
      layout, offset, /*AllowNonInbounds=*/true);
  *at = offset.getSExtValue();
  return llvm::dyn_cast<llvm::AllocaInst>(base);
}

// What is copied byte by byte, by a union or by memcpy, becomes a cast.
void ShowCasts(llvm::Module& module) {
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass());
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(
      llvm::SROAPass(llvm::SROAOptions::PreserveCFG)));
  RunPasses(passes, module);
}

// A variable that no other code can reach and that nothing writes: tables of
// libdevice's sine are such, though they are not declared constant.
bool IsOnlyRead(const llvm::GlobalVariable& variable) {
  if (!variable.hasLocalLinkage()) return false;
  std::vector<const llvm::User*> users(variable.user_begin(),
                                       variable.user_end());
  while (!users.empty()) {
    const llvm::User* const user = users.back();
    users.pop_back();
    if (llvm::isa<llvm::LoadInst>(user)) continue;
    if (!llvm::isa<llvm::GEPOperator>(user) &&
        !llvm::isa<llvm::AddrSpaceCastOperator>(user))
      return false;
    users.insert(users.end(), user->user_begin(), user->user_end());
  }
  return true;
}

class InventoryTaker {
 public:
  explicit InventoryTaker(CodeInventory& inventory) : inventory_(inventory) {}

  void AddVariable(const llvm::GlobalVariable& variable) {
    const std::string name = variable.getName().str();
    if (absl::StartsWith(name, "llvm.") || variable.use_empty() ||
        variable.getAddressSpace() == kSharedSpace ||
        variable.hasExternalWeakLinkage())
      return;
    if (variable.isDeclaration()) {
      inventory_.Add("undefined " + name,
                     absl::StrCat("uses a device variable ", name,
                                  " that no source of the unit defines"),
                     PlaceOfUse(variable));
      return;
    }
    if (!variable.isConstant() && !IsOnlyRead(variable)) {
      AddWritableVariable(name, PlaceOfUse(variable), inventory_);
    } else if (!variable.getInitializer()->isNullValue()) {
      inventory_.AddConstantBytes(
          variable.getParent()->getDataLayout().getTypeAllocSize(
              variable.getValueType()));
    }
    AddConstant(*variable.getInitializer(), PlaceOfUse(variable));
  }

  void AddFunction(const llvm::Function& function) {
    if (function.isDeclaration()) {
      if (!function.isIntrinsic() && !function.use_empty())
        AddUndefinedFunction(function.getName().str(), PlaceOfUse(function),
                             inventory_);
      return;
    }
    for (const llvm::Instruction& instruction : llvm::instructions(function))
      AddInstruction(instruction);
    AddPunnedPointers(function);
  }

 private:
  void AddInstruction(const llvm::Instruction& instruction) {
    for (const llvm::Value* operand : instruction.operands()) {
      if (const auto* constant = llvm::dyn_cast<llvm::Constant>(operand))
        AddConstant(*constant, PlaceOf(instruction));
    }
    if (const auto* cast = llvm::dyn_cast<llvm::IntToPtrInst>(&instruction)) {
      if (!origins_.ComesFromPointer(*cast->getOperand(0)))
        AddForgedPointer(PlaceOf(instruction));
    }
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr) return;
    if (const auto* text =
            llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand())) {
      AddInlinePtx({text->getAsmString().data(), text->getAsmString().size()},
                   PlaceOf(instruction), inventory_);
      AddPtxAddresses(*text, *call);
    } else if (const llvm::Function* callee = call->getCalledFunction();
               callee != nullptr && callee->isIntrinsic()) {
      AddIntrinsic(callee->getName(), instruction);
    }
  }

  // Operands in brackets, "[$2+16]": addresses. Those of 32 bits are of shared
  // memory.
  void AddPtxAddresses(const llvm::InlineAsm& text,
                       const llvm::CallBase& call) {
    unsigned outputs = 0;
    for (const auto& constraint : text.ParseConstraints())
      outputs += constraint.Type == llvm::InlineAsm::isOutput ? 1 : 0;
    llvm::StringRef rest = text.getAsmString();
    while (!rest.empty()) {
      rest = rest.split('[').second;
      llvm::StringRef operand = rest.split(']').first.ltrim();
      unsigned number = 0;
      if (!operand.consume_front("$")) continue;
      operand.consume_front("{");
      if (operand.consumeInteger(10, number) || number < outputs ||
          number - outputs >= call.arg_size())
        continue;
      const llvm::Value& address = *call.getArgOperand(number - outputs);
      if (address.getType()->isIntegerTy(64) &&
          !origins_.ComesFromPointer(address))
        AddForgedPointer(PlaceOf(call));
    }
  }

  void AddIntrinsic(llvm::StringRef name,
                    const llvm::Instruction& instruction) {
    llvm::StringRef sreg = name;
    if (sreg.consume_front("llvm.nvvm.read.ptx.sreg.")) {
      AddInlinePtx("mov.u32 $0, %" + sreg.split('.').first.str(),
                   PlaceOf(instruction), inventory_);
      return;
    }
    const auto is = [&](std::initializer_list<llvm::StringRef> prefixes) {
      for (const llvm::StringRef prefix : prefixes)
        if (name.starts_with(prefix)) return true;
      return false;
    };
    const std::string place = PlaceOf(instruction);
    const std::string shown = name.str();
    if (is({"llvm.readcyclecounter", "llvm.readsteadycounter"})) {
      inventory_.Add("clock", absl::StrCat("reads a clock (", shown, ")"),
                     place);
    } else if (is({"llvm.nvvm.nanosleep"})) {
      inventory_.Add("sleep", "sleeps (nanosleep)", place);
    } else if (is({"llvm.nvvm.applypriority", "llvm.nvvm.discard",
                   "llvm.nvvm.createpolicy"}) ||
               name.contains("evict.last") || name.contains("evict_last")) {
      inventory_.Add(
          absl::StrCat("cache ", shown),
          absl::StrCat("controls what the L2 cache keeps (", shown, ")"),
          place);
    } else if (is({"llvm.nvvm.griddepcontrol"})) {
      inventory_.Add("griddepcontrol",
                     absl::StrCat("lets other launches begin before it ends (",
                                  shown, ")"),
                     place);
    } else if (!IsHarmless(name)) {
      inventory_.Add(
          absl::StrCat("intrinsic ", shown),
          absl::StrCat("uses ", shown, ", which is none of a kernel's"), place);
    }
  }

  // Constants hold each other; global values are looked at by themselves.
  void AddConstant(const llvm::Constant& constant, const std::string& place) {
    if (llvm::isa<llvm::GlobalValue>(constant) ||
        constant.getNumOperands() == 0 || !seen_.insert(&constant).second)
      return;
    const auto* expression = llvm::dyn_cast<llvm::ConstantExpr>(&constant);
    if (expression != nullptr &&
        expression->getOpcode() == llvm::Instruction::IntToPtr &&
        !origins_.ComesFromPointer(*expression->getOperand(0)))
      AddForgedPointer(place);
    for (const llvm::Value* operand : constant.operands())
      if (const auto* inner = llvm::dyn_cast<llvm::Constant>(operand))
        AddConstant(*inner, place);
  }

  // An integer stored where a pointer is loaded from, in a variable that is
  // volatile or has its address taken.
  void AddPunnedPointers(const llvm::Function& function) {
    const llvm::DataLayout& layout = function.getParent()->getDataLayout();
    struct Store {
      int64_t begin, end;
    };
    std::map<const llvm::AllocaInst*, std::vector<Store>> integers;
    int64_t at = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
      if (store == nullptr) continue;
      const llvm::Value& value = *store->getValueOperand();
      const auto* variable = LocalAt(*store->getPointerOperand(), layout, &at);
      if (variable == nullptr || value.getType()->isPtrOrPtrVectorTy() ||
          llvm::isa<llvm::ConstantAggregateZero>(value) ||
          origins_.ComesFromPointer(value))
        continue;
      const auto size =
          static_cast<int64_t>(layout.getTypeStoreSize(value.getType()));
      integers[variable].push_back({at, at + size});
    }
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
      if (load == nullptr || !load->getType()->isPointerTy()) continue;
      const auto* variable = LocalAt(*load->getPointerOperand(), layout, &at);
      if (variable == nullptr) continue;
      for (const Store& store : integers[variable]) {
        if (store.begin < at + 8 && at < store.end)
          AddForgedPointer(PlaceOf(instruction));
      }
    }
  }

  void AddForgedPointer(const std::string& place) {
    inventory_.Add("forged pointer",
                   "makes a pointer of an integer that never was one", place);
  }

  CodeInventory& inventory_;
  PointerOrigins origins_;
  std::set<const llvm::Constant*> seen_;
};

}  // namespace

CodeInventory TakeInventory(const llvm::Module& module) {
  CodeInventory inventory;
  if (!module.getModuleInlineAsm().empty()) {
    inventory.Add(absl::StrCat("module asm ", module.getModuleInlineAsm()),
                  "has assembly outside of functions", "");
  }
  const std::unique_ptr<llvm::Module> shown = llvm::CloneModule(module);
  ShowCasts(*shown);
  InventoryTaker taker(inventory);
  for (const llvm::GlobalVariable& variable : shown->globals())
    taker.AddVariable(variable);
  for (const llvm::Function& function : *shown) taker.AddFunction(function);
  return inventory;
}

}  // namespace reprise
