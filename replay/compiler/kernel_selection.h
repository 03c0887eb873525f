// Cuts a device module down to what wanted kernels need, keeping the memory
// that outlives a launch. Thread-safe for different modules.
#ifndef REPRISE_REPLAY_COMPILER_KERNEL_SELECTION_H_
#define REPRISE_REPLAY_COMPILER_KERNEL_SELECTION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "llvm/IR/Module.h"
#include "reprise/v1/node.pb.h"

namespace reprise {

// Names of the kernels that the module defines, in its order.
std::vector<std::string> KernelNames(const llvm::Module& module);

// Makes everything but the kernels internal and drops what they do not reach.
// Device variables that stay and that a launch could find changed by an
// earlier one are external and hold unknown values at first, whatever their
// initializer says: what the rest of the program does with them is not in this
// module. NOT_FOUND names the kernel that the module lacks, and those it has.
// With `keep_variables`, device variables stay that no kernel names.
absl::Status SelectKernels(const std::vector<std::string>& kernels,
                           bool keep_variables, llvm::Module& module);

// After a pipeline: INVALID_ARGUMENT where it removed or hid a function that
// must be there (`entries`), or made device variables of other names (some
// passes rename). `globals` loses those that the code does not use any more,
// unless they are to stay.
absl::Status CheckKept(
    const std::vector<std::string>& entries, bool keep_variables,
    const llvm::Module& module,
    google::protobuf::RepeatedPtrField<v1::ModuleGlobal>& globals);

// Of a unit of relocatable device code: gives the variables that only it can
// name names that no other unit has. Linking would give them some, by the order
// it goes in.
void NameVariablesByUnit(const v1::CompileTranslationUnit& unit,
                         llvm::Module& module);

// Device variables in global and constant memory that launches share; not the
// notes of instrumented code, which are its executor's.
bool IsDeviceState(const llvm::GlobalVariable& global);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_KERNEL_SELECTION_H_
