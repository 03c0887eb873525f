// Entry points: a loop over the threads of a block, or a hand-over to the
// runtime's fibers, and the facts the executor checks before a launch.
#include <llvm/IR/Constants.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

#include "replay/device/cpu/abi.h"
#include "replay/device/cpu/lowering/index_ranges.h"
#include "replay/device/cpu/lowering/passes.h"
#include "replay/device/cpu/lowering/thread_loop.h"
#include "replay/device/cpu/lowering/threads.h"

namespace reprise::cpu {
namespace {

using llvm::Argument;
using llvm::Attribute;
using llvm::BasicBlock;
using llvm::CmpInst;
using llvm::Function;
using llvm::Instruction;
using llvm::IRBuilder;
using llvm::MDNode;
using llvm::Type;
using llvm::Value;

constexpr uint64_t kArgumentAlignment = 16;
// Bodies up to this size are there twice: for whole blocks and for others.
constexpr unsigned kMaxInstructionsToDouble = 300;

// Builds one entry function.
class EntryBuilder {
 public:
  EntryBuilder(LoweringState& state, KernelState& kernel)
      : state_(state),
        kernel_(kernel),
        context_(state.module.getContext()),
        b_(context_),
        i32_(b_.getInt32Ty()),
        pointer_(b_.getPtrTy()) {}

  Function* Build(const std::vector<ThreadGuard>& guards, MDNode* access_group);

 private:
  Function* CreateFunction(const std::string& name, bool internal,
                           bool with_position);
  void LoadContext(Function* function);
  void LoadArguments(Function* function);
  void CallThread(Value* const (&position)[3]);
  void EmitLoop(int dimension);
  // few: worth a masked rest instead of scalar turns.
  void EmitRange(int dimension, Value* low, Value* high, bool few);
  Value* Repeat(Value* value, int zero_dimension);
  void Bounds(int dimension, Value** low, Value** high);
  void CallRunThreads(Function* entry);

  LoweringState& state_;
  KernelState& kernel_;
  llvm::LLVMContext& context_;
  IRBuilder<> b_;
  Type* i32_;
  Type* pointer_;
  ThreadValues values_;
  std::vector<Value*> arguments_;
  std::vector<ThreadGuard> guards_;
  MDNode* access_group_ = nullptr;
  Value* block_context_ = nullptr;
};

Function* EntryBuilder::CreateFunction(const std::string& name, bool internal,
                                       bool with_position) {
  std::vector<Type*> types = {pointer_, pointer_};
  if (with_position) types.insert(types.end(), 3, i32_);
  Function* function = Function::Create(
      llvm::FunctionType::get(b_.getVoidTy(), types, false),
      internal ? Function::InternalLinkage : Function::ExternalLinkage, name,
      state_.module);
  function->setDoesNotThrow();
  // A frame larger than a guard page must not step over it.
  function->addFnAttr("probe-stack", "inline-asm");
  for (unsigned i = 0; i < 2; ++i) {
    function->addParamAttr(i, Attribute::NoAlias);
    function->addParamAttr(i, Attribute::ReadOnly);
    function->addParamAttr(i, Attribute::NonNull);
  }
  b_.SetInsertPoint(BasicBlock::Create(context_, "entry", function));
  block_context_ = function->getArg(0);
  return function;
}

void EntryBuilder::LoadContext(Function* function) {
  auto field = [&](size_t offset, Type* type, const char* name) -> Value* {
    Value* place = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(),
                                                 function->getArg(0), offset);
    llvm::LoadInst* load = b_.CreateLoad(type, place, name);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                      MDNode::get(context_, {}));
    return load;
  };
  auto range = [&](Value* value, uint32_t low, uint64_t high) {
    llvm::MDBuilder metadata(context_);
    llvm::cast<Instruction>(value)->setMetadata(
        llvm::LLVMContext::MD_range,
        metadata.createRange(llvm::APInt(32, low), llvm::APInt(32, high)));
    return value;
  };
  constexpr uint32_t kMaxBlock[3] = {1024, 1024, 64};
  const v1::LaunchConfig& launch = state_.options.launch;
  const uint32_t block[3] = {launch.block().x(), launch.block().y(),
                             launch.block().z()};
  const uint32_t grid[3] = {launch.grid().x(), launch.grid().y(),
                            launch.grid().z()};
  for (int d = 0; d < 3; ++d) {
    const uint64_t grid_limit =
        grid[d] != 0 ? grid[d] : kMaxThreadsPerDimension - 1;
    values_.block[d] =
        range(field(offsetof(BlockContext, block) + 4 * d, i32_, "block"), 0,
              grid_limit);
    values_.grid[d] =
        grid[d] != 0
            ? b_.getInt32(grid[d])
            : range(field(offsetof(BlockContext, grid) + 4 * d, i32_, "grid"),
                    1, kMaxThreadsPerDimension);
    values_.block_dim[d] =
        block[d] != 0 ? b_.getInt32(block[d])
                      : range(field(offsetof(BlockContext, block_dim) + 4 * d,
                                    i32_, "block_dim"),
                              1, kMaxBlock[d] + 1);
  }
  values_.dynamic_shared_bytes =
      field(offsetof(BlockContext, dynamic_shared_bytes), i32_,
            "dynamic_shared_bytes");
  values_.shared = field(offsetof(BlockContext, shared), pointer_, "shared");
  values_.dynamic_shared =
      field(offsetof(BlockContext, dynamic_shared), pointer_, "dynamic_shared");
}

void EntryBuilder::LoadArguments(Function* function) {
  Value* buffer = function->getArg(1);
  arguments_.clear();
  for (size_t i = 0; i < kernel_.by_value.size(); ++i) {
    const uint64_t offset = kernel_.info.parameter_offsets(i);
    Value* place =
        b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), buffer, offset);
    Type* type = kernel_.thread->getArg(i)->getType();
    if (kernel_.by_value[i] != nullptr) {
      arguments_.push_back(place);
      continue;
    }
    Type* stored = type->isIntegerTy(1) ? b_.getInt8Ty() : type;
    llvm::LoadInst* load = b_.CreateAlignedLoad(
        stored, place,
        llvm::commonAlignment(llvm::Align(kArgumentAlignment), offset));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load,
                      MDNode::get(context_, {}));
    arguments_.push_back(stored == type ? load : b_.CreateTrunc(load, type));
  }
}

void EntryBuilder::CallThread(Value* const (&position)[3]) {
  std::vector<Value*> all = arguments_;
  all.insert(all.end(), position, position + 3);
  for (auto* group : {&values_.block, &values_.block_dim, &values_.grid}) {
    all.insert(all.end(), *group, *group + 3);
  }
  all.push_back(values_.dynamic_shared_bytes);
  all.push_back(values_.shared);
  all.push_back(values_.dynamic_shared);
  if (kernel_.needs_current_thread && !kernel_.uses_fibers) {
    CallRuntime(b_, "__reprise_set_thread", b_.getVoidTy(),
                {block_context_, position[0], position[1], position[2]});
  }
  b_.CreateCall(kernel_.thread, all);
}

// The thread function's `value`, computed here; threadIdx[zero_dimension] is 0.
Value* EntryBuilder::Repeat(Value* value, int zero_dimension) {
  if (auto* argument = llvm::dyn_cast<Argument>(value)) {
    const unsigned first = FirstPositionArgument(kernel_);
    const unsigned number = argument->getArgNo();
    if (number < first) return arguments_[number];
    const unsigned index = number - first;
    const int d = index % 3;
    switch (index / 3) {
      case 0:
        return d == zero_dimension ? b_.getInt32(0) : values_.thread[d];
      case 1:
        return values_.block[d];
      case 2:
        return values_.block_dim[d];
      case 3:
        return values_.grid[d];
      default:
        return index == 12   ? values_.dynamic_shared_bytes
               : index == 13 ? values_.shared
                             : values_.dynamic_shared;
    }
  }
  auto* instruction = llvm::dyn_cast<Instruction>(value);
  if (instruction == nullptr) return value;
  Instruction* copy = instruction->clone();
  for (llvm::Use& operand : copy->operands())
    operand.set(Repeat(operand, zero_dimension));
  copy->setMetadata(llvm::LLVMContext::MD_access_group, nullptr);
  b_.Insert(copy);
  return copy;
}

// The part [low, high) of the block's threads that pass the guards.
void EntryBuilder::Bounds(int dimension, Value** low, Value** high) {
  Type* i64 = b_.getInt64Ty();
  *low = b_.getInt32(0);
  *high = values_.block_dim[dimension];
  for (const ThreadGuard& guard : guards_) {
    if (guard.dimension != dimension) continue;
    Value* base = b_.CreateSExt(Repeat(guard.sum, dimension), i64);
    Value* limit = Repeat(guard.limit, dimension);
    if (CmpInst::isUnsigned(guard.predicate)) {
      limit = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin,
                                       b_.CreateZExt(limit, i64),
                                       b_.getInt64(INT64_MAX));
    } else {
      limit = b_.CreateSExt(limit, i64);
    }
    Value* edge =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::ssub_sat, limit, base);
    const auto predicate = CmpInst::getStrictPredicate(guard.predicate);
    const bool is_upper =
        predicate == CmpInst::ICMP_SLT || predicate == CmpInst::ICMP_ULT;
    const bool inclusive = CmpInst::isNonStrictPredicate(guard.predicate);
    if (is_upper == inclusive) {
      edge = b_.CreateBinaryIntrinsic(llvm::Intrinsic::sadd_sat, edge,
                                      b_.getInt64(1));
    }
    Value* size = b_.CreateZExt(values_.block_dim[dimension], i64);
    edge =
        b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, edge, b_.getInt64(0));
    edge = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, edge, size);
    edge = b_.CreateTrunc(edge, i32_);
    *(is_upper ? high : low) = b_.CreateBinaryIntrinsic(
        is_upper ? llvm::Intrinsic::umin : llvm::Intrinsic::umax,
        is_upper ? *high : *low, edge);
  }
}

void EntryBuilder::EmitLoop(int dimension) {
  if (dimension < 0) {
    CallThread(values_.thread);
    return;
  }
  Value* low;
  Value* high;
  Bounds(dimension, &low, &high);
  Value* size = values_.block_dim[dimension];
  const bool bounded = !llvm::isa<llvm::ConstantInt>(low) || high != size;
  const bool worthwhile =
      dimension == 0 && bounded && llvm::isa<llvm::ConstantInt>(size) &&
      kernel_.thread->getInstructionCount() < kMaxInstructionsToDouble;
  if (!worthwhile) {
    EmitRange(dimension, low, high, false);
    return;
  }
  // Most blocks are whole; for those the number of turns is a constant.
  Function* function = b_.GetInsertBlock()->getParent();
  BasicBlock* whole = BasicBlock::Create(context_, "whole", function);
  BasicBlock* part = BasicBlock::Create(context_, "part", function);
  BasicBlock* after = BasicBlock::Create(context_, "rows", function);
  Value* is_whole = b_.CreateAnd(b_.CreateICmpEQ(low, b_.getInt32(0)),
                                 b_.CreateICmpEQ(high, size));
  b_.CreateCondBr(is_whole, whole, part,
                  llvm::MDBuilder(context_).createBranchWeights(1000, 1));
  b_.SetInsertPoint(whole);
  EmitRange(dimension, b_.getInt32(0), size, false);
  b_.CreateBr(after);
  b_.SetInsertPoint(part);
  EmitRange(dimension, low, high, true);
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

void EntryBuilder::EmitRange(int dimension, Value* low, Value* high, bool few) {
  Function* function = b_.GetInsertBlock()->getParent();
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* body = BasicBlock::Create(context_, "threads", function);
  BasicBlock* after = BasicBlock::Create(context_, "done", function);
  b_.CreateCondBr(b_.CreateICmpULT(low, high), body, after);
  b_.SetInsertPoint(body);
  llvm::PHINode* index = b_.CreatePHI(i32_, 2, "thread");
  index->addIncoming(low, before);
  values_.thread[dimension] = index;
  EmitLoop(dimension - 1);
  Value* next = b_.CreateAdd(index, b_.getInt32(1), "", true, true);
  index->addIncoming(next, b_.GetInsertBlock());
  llvm::BranchInst* latch =
      b_.CreateCondBr(b_.CreateICmpULT(next, high), body, after);
  if (access_group_ != nullptr) {
    llvm::SmallVector<llvm::Metadata*, 3> properties = {nullptr};
    properties.push_back(MDNode::get(
        context_, {llvm::MDString::get(context_, "llvm.loop.parallel_accesses"),
                   access_group_}));
    if (few) {
      properties.push_back(MDNode::get(
          context_, {llvm::MDString::get(
                         context_, "llvm.loop.vectorize.predicate.enable"),
                     llvm::ConstantAsMetadata::get(b_.getTrue())}));
    }
    MDNode* loop = MDNode::getDistinct(context_, properties);
    loop->replaceOperandWith(0, loop);
    latch->setMetadata(llvm::LLVMContext::MD_loop, loop);
  }
  b_.SetInsertPoint(after);
}

void EntryBuilder::CallRunThreads(Function* entry) {
  Function* fiber =
      CreateFunction("__reprise_fiber_" + kernel_.info.symbol(), true, true);
  LoadContext(fiber);
  LoadArguments(fiber);
  Value* position[3] = {fiber->getArg(2), fiber->getArg(3), fiber->getArg(4)};
  CallThread(position);
  b_.CreateRetVoid();
  b_.SetInsertPoint(&entry->getEntryBlock());
  CallRuntime(b_, "__reprise_run_threads", b_.getVoidTy(),
              {entry->getArg(0), entry->getArg(1), fiber});
}

Function* EntryBuilder::Build(const std::vector<ThreadGuard>& guards,
                              MDNode* access_group) {
  guards_ = guards;
  access_group_ = access_group;
  Function* entry =
      CreateFunction(kEntryPrefix + kernel_.info.symbol(), false, false);
  entry->setDSOLocal(true);
  if (kernel_.uses_fibers) {
    CallRunThreads(entry);
  } else {
    LoadContext(entry);
    LoadArguments(entry);
    EmitLoop(2);
  }
  b_.CreateRetVoid();
  return entry;
}

void EmitFacts(LoweringState& state, const KernelState& kernel,
               const Function& entry) {
  const v1::LaunchConfig& launch = state.options.launch;
  const uint32_t fields[] = {
      kKernelFactsVersion,   launch.block().x(),
      launch.block().y(),    launch.block().z(),
      launch.grid().x(),     launch.grid().y(),
      launch.grid().z(),     kernel.info.static_shared_bytes(),
      kernel.argument_bytes, kernel.info.max_threads_per_block(),
      kernel.uses_fibers,    state.options.instrument};
  static_assert(sizeof(fields) == sizeof(KernelFacts));
  auto* data = llvm::ConstantDataArray::get(state.module.getContext(), fields);
  auto* facts = new llvm::GlobalVariable(state.module, data->getType(), true,
                                         llvm::GlobalVariable::ExternalLinkage,
                                         data, entry.getName() + kFactsSuffix);
  facts->setDSOLocal(true);
}

}  // namespace

absl::Status BuildEntries(LoweringState& state) {
  std::vector<Function*> entries;
  for (KernelState& kernel : state.kernels) {
    std::vector<ThreadGuard> guards = TakeGuards(kernel, state.options.launch);
    if (!kernel.uses_fibers) WidenIndices(kernel);
    MDNode* group = kernel.uses_fibers || state.options.instrument
                        ? nullptr
                        : MarkParallelAccesses(*kernel.thread);
    kernel.thread->removeFnAttr(Attribute::NoInline);
    kernel.thread->removeFnAttr(Attribute::OptimizeNone);
    kernel.thread->addFnAttr(Attribute::AlwaysInline);
    Function* entry = EntryBuilder(state, kernel).Build(guards, group);
    kernel.info.set_entry(entry->getName().str());
    EmitFacts(state, kernel, *entry);
    entries.push_back(entry);
    kernel.function->eraseFromParent();
    kernel.function = nullptr;
  }
  PassRunner passes;
  llvm::ModulePassManager inliner;
  inliner.addPass(llvm::AlwaysInlinerPass(/*InsertLifetime=*/true));
  inliner.addPass(llvm::GlobalDCEPass());
  passes.Run(state.module, inliner);
  for (KernelState& kernel : state.kernels) kernel.thread = nullptr;
  return absl::OkStatus();
}

}  // namespace reprise::cpu
