#include "replay/base/shared_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace reprise {
namespace {

TEST(SharedMemoryTest, NobodyChangesItsSize) {
  const absl::StatusOr<int> fd = CreateSharedMemory("test", 8192);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_EQ(lseek(*fd, 0, SEEK_END), 8192);
  EXPECT_NE(ftruncate(*fd, 0), 0);
  EXPECT_NE(ftruncate(*fd, 1 << 20), 0);
  EXPECT_EQ(lseek(*fd, 0, SEEK_END), 8192);
  close(*fd);
}

}  // namespace
}  // namespace reprise
