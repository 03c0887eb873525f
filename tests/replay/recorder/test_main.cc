// main() of tests whose program is its own compiler launcher, compile worker
// and executor, as the program `reprise` is.
#include <gtest/gtest.h>

#include <cstring>

#include "replay/recorder/cc/launcher.h"
#ifdef REPRISE_TEST_WITH_SESSION
#include "replay/compiler/compile_pool.h"
#include "replay/device/cpu/executor_client.h"
#endif

int main(int argc, char** argv) {
  if (argc > 1) {
    if (std::strcmp(argv[1], "cc") == 0)
      return reprise::CompilerLauncherMain(argc - 2, argv + 2);
#ifdef REPRISE_TEST_WITH_SESSION
    if (std::strcmp(argv[1], "executor") == 0)
      return reprise::ExecutorMain(argc - 2, argv + 2);
    if (std::strcmp(argv[1], "compile-worker") == 0)
      return reprise::CompileWorkerMain(argc - 2, argv + 2);
#endif
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
