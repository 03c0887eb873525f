// Shared between the steps of the host lowering; not for use outside this
// folder. Steps run in the order of LowerToHost (lowering.cc), each over the
// whole module, on one thread.
#ifndef REPRISE_REPLAY_DEVICE_CPU_LOWERING_INTERNAL_H_
#define REPRISE_REPLAY_DEVICE_CPU_LOWERING_INTERNAL_H_

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/device/cpu/lowering/lowering.h"

namespace reprise::cpu {

// What one kernel becomes. Filled step by step.
struct KernelState {
  llvm::Function* function = nullptr;  // as Clang emitted it
  llvm::Function* thread = nullptr;    // the body, one CUDA thread per call
  v1::CompiledKernelInfo info;
  uint32_t argument_bytes = 0;
  // Types of struct parameters, null for others.
  std::vector<llvm::Type*> by_value;
  bool uses_fibers = false;
  // Some function out of line asks which thread it runs for.
  bool needs_current_thread = false;
};

struct LoweringState {
  llvm::Module& module;
  const LoweringOptions& options;
  std::vector<KernelState> kernels;
  std::vector<v1::ModuleGlobal> globals;
  // Variables in shared memory, in module order; a declaration or a size of 0
  // is dynamic shared memory.
  std::vector<llvm::GlobalVariable*> shared_variables;
};

// --- Errors.

// FAILED_PRECONDITION: "kernel K uses <what> at file:line, which the cpu device
// cannot run".
absl::Status Refuse(const LoweringState& state, const llvm::Instruction& at,
                    const llvm::Twine& what);
// "file:line", or "function F" without debug information.
std::string PlaceOf(const llvm::Instruction& instruction);
// Pointer to a constant string that names the place.
llvm::Constant* SiteString(llvm::Module& module,
                           const llvm::Instruction& instruction);

// --- Steps.

// Finds kernels and their facts; drops kernels that were not asked for and all
// that nothing uses. Resolves __nvvm_reflect.
absl::Status FindKernels(LoweringState& state);
void ResolveReflect(llvm::Module& module);
void RemoveUnused(LoweringState& state);

// Replaces nvvm intrinsics and inline PTX, except reads of special registers
// and thread exits, by calls of the runtime and of the device library.
absl::Status LowerIntrinsics(LoweringState& state);
absl::Status LinkDeviceLibrary(LoweringState& state);

// Device variables become external declarations, shared variables are listed,
// everything moves to address space 0.
absl::Status LowerGlobals(LoweringState& state);

// Triple, data layout, attributes and calling conventions of the host.
void MoveToHost(LoweringState& state);

// Inlines device functions into kernels, and turns each kernel into a thread
// function that takes its position as parameters.
absl::Status BuildThreadFunctions(LoweringState& state);

// Of an instrumented build. Operations are counted while functions are still
// as written; accesses are noted in thread functions, where local variables are
// values and do not count.
void CountFlops(LoweringState& state);
void NoteAccesses(LoweringState& state);

// Entries, thread loops and kernel facts.
absl::Status BuildEntries(LoweringState& state);

// Nothing of the device is left, and nothing undefined that the executor does
// not have.
absl::Status CheckLowered(LoweringState& state);

// --- Parts that several steps use.

// Lowers one inline PTX statement list. Null Status value: replaced.
absl::Status LowerInlineAssembly(LoweringState& state, llvm::CallInst& call);

// A floating-point instruction of PTX, by name and modifiers.
struct FloatOp {
  llvm::StringRef name;  // add sub mul fma div rcp sqrt rsqrt ex2 lg2 sin cos
                         // tanh min max neg abs saturate ceil floor trunc round
  char rounding = 'n';   // n z m p
  bool flush = false;    // .ftz
  bool saturate = false;  // .sat
  bool relu = false;
  bool propagate_nan = false;  // .nan of min and max
  bool absolute = false;       // .xorsign.abs
  bool approximate = false;    // .approx
};
// All of one type: half, bfloat, float, double, or a vector of these. Null when
// the operation does not exist.
llvm::Value* EmitFloatOp(llvm::IRBuilder<>& b, const FloatOp& op,
                         llvm::ArrayRef<llvm::Value*> arguments);

struct Conversion {
  char rounding = 'n';  // n z m p
  bool source_signed = false;
  bool target_signed = false;
  bool flush = false;
  bool saturate = false;
  bool relu = false;
};
// Between integers and floating point of any widths, as PTX's cvt does it.
llvm::Value* EmitConversion(llvm::IRBuilder<>& b, llvm::Value* value,
                            llvm::Type* target, const Conversion& conversion);
// To an integral value in floating point, by rounding mode n, z, m or p.
llvm::Value* EmitRoundToIntegral(llvm::IRBuilder<>& b, llvm::Value* value,
                                 char rounding);
// Of float and half; other types have no .ftz.
llvm::Value* FlushDenormal(llvm::IRBuilder<>& b, llvm::Value* value);

llvm::Value* CallLibrary(llvm::IRBuilder<>& b, const llvm::Twine& name,
                         llvm::Type* result,
                         llvm::ArrayRef<llvm::Value*> arguments);
// A call of a function of abi.h. They do not throw; `effects` says what else.
llvm::CallInst* CallRuntime(llvm::IRBuilder<>& b, llvm::StringRef name,
                            llvm::Type* result,
                            llvm::ArrayRef<llvm::Value*> arguments);

// Position of a thread as IR values.
struct ThreadValues {
  llvm::Value* thread[3];
  llvm::Value* block[3];
  llvm::Value* block_dim[3];
  llvm::Value* grid[3];
  llvm::Value* dynamic_shared_bytes;  // i32
  llvm::Value* shared;                // base of static shared memory
  llvm::Value* dynamic_shared;
};

// The bitcode of device_library.cc.
llvm::StringRef DeviceLibraryBitcode();

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_LOWERING_INTERNAL_H_
