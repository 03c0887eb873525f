// main of test programs whose children are this program again.
#include <gtest/gtest.h>

#include <cstring>

#include "replay/base/log.h"
#include "replay/device/cpu/executor_client.h"

int main(int argc, char** argv) {
  reprise::InitializeLogging();
  if (argc > 1 && std::strcmp(argv[1], "executor") == 0) {
    return reprise::ExecutorMain(argc - 2, argv + 2);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
