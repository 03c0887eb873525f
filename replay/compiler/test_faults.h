// Passes that fail on purpose, for tests of the compile pool: "reprise-crash",
// "reprise-abort", "reprise-hang", "reprise-exhaust-memory" and
// "reprise-break-ir". Workers know them only under --test-faults.
#ifndef REPRISE_REPLAY_COMPILER_TEST_FAULTS_H_
#define REPRISE_REPLAY_COMPILER_TEST_FAULTS_H_

#include "llvm/Passes/PassBuilder.h"

namespace reprise {

void RegisterTestFaults(llvm::PassBuilder& builder);

}  // namespace reprise

#endif  // REPRISE_REPLAY_COMPILER_TEST_FAULTS_H_
