// The inventory (code_inventory.h) of device IR as the front end leaves it.
// Thread-safe for different modules.
#ifndef REPRISE_REPLAY_COMPILER_IR_INVENTORY_H_
#define REPRISE_REPLAY_COMPILER_IR_INVENTORY_H_

#include "llvm/IR/Module.h"
#include "replay/compiler/code_inventory.h"

namespace reprise {

// Of all that the module holds, so cut it down to the kernels first.
CodeInventory TakeInventory(const llvm::Module& module);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_IR_INVENTORY_H_
