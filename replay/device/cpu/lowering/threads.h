// Internal to the lowering: clean-up that thread functions share.
#ifndef REPRISE_REPLAY_DEVICE_CPU_LOWERING_THREADS_H_
#define REPRISE_REPLAY_DEVICE_CPU_LOWERING_THREADS_H_

#include <llvm/IR/Function.h>

namespace reprise::cpu {

// Stack slots to values and dead branches gone: no more than what later steps
// need to read the code.
void CleanUp(llvm::Function& function);

}  // namespace reprise::cpu

#endif  // REPRISE_REPLAY_DEVICE_CPU_LOWERING_THREADS_H_
