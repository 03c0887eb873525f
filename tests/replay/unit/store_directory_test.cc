#include "replay/unit/store_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "replay/unit/unit_store.h"
#include "tests/replay/unit/test_support.h"

namespace reprise {
namespace {

using ::reprise::testing::OverwriteFile;
using ::reprise::testing::Text;
using ::testing::HasSubstr;

class StoreDirectoryTest : public testing::StoreTest {
 protected:
  absl::Status Open(bool create) {
    return StoreDirectory::Open(root(), create, nullptr).status();
  }
  std::string Marker() const { return root() + "/reprise-store"; }
};

TEST_F(StoreDirectoryTest, MakesAStoreOnce) {
  EXPECT_EQ(Open(false).code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(Open(false)), HasSubstr("no such directory"));
  ASSERT_OK(Open(true));
  EXPECT_OK(Open(true));
  EXPECT_OK(Open(false));
  EXPECT_EQ(*ReadFile(Marker()), "reprise unit store, format version 1\n");
}

TEST_F(StoreDirectoryTest, AnEmptyDirectoryBecomesAStore) {
  std::filesystem::create_directory(root());
  EXPECT_THAT(Text(Open(false)), HasSubstr("the directory is empty"));
  EXPECT_OK(Open(true));
}

TEST_F(StoreDirectoryTest, SomebodysDirectoryIsLeftAlone) {
  std::filesystem::create_directory(root());
  OverwriteFile(root() + "/thesis.tex", "");
  for (bool create : {false, true}) {
    EXPECT_EQ(Open(create).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Text(Open(create)), HasSubstr("it has \"thesis.tex\""));
  }
  EXPECT_FALSE(std::filesystem::exists(Marker()));
}

TEST_F(StoreDirectoryTest, ALeftoverOfACreatorThatDiedIsNoObstacle) {
  std::filesystem::create_directory(root());
  OverwriteFile(root() + "/reprise-store.0123", "repri");
  EXPECT_OK(Open(true));
}

TEST_F(StoreDirectoryTest, NewerStore) {
  ASSERT_OK(Open(true));
  OverwriteFile(Marker(), "reprise unit store, format version 2\n");
  EXPECT_EQ(Open(true).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(Open(true)), HasSubstr("expected at most 1"));
}

TEST_F(StoreDirectoryTest, BrokenMarker) {
  ASSERT_OK(Open(true));
  for (const char* text :
       {"", "format", "reprise unit store, format version x\n",
        "reprise unit store, format version 0\n"}) {
    OverwriteFile(Marker(), text);
    EXPECT_EQ(Open(true).code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST_F(StoreDirectoryTest, AFileInItsPlace) {
  OverwriteFile(root(), "a file");
  EXPECT_FALSE(Open(true).ok());
  EXPECT_THAT(Text(Open(true)), HasSubstr(root()));
}

TEST_F(StoreDirectoryTest, AnEmptyPath) {
  EXPECT_EQ(StoreDirectory::Open("", true, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(StoreDirectoryTest, SeveralThreadsMakeOneStore) {
  std::vector<std::thread> threads;
  std::vector<absl::Status> statuses(8);
  for (absl::Status& status : statuses) {
    threads.emplace_back([&status, this] {
      absl::StatusOr<std::unique_ptr<ChunkStore>> store =
          ChunkStore::Open({.directory = root()});
      status =
          store.ok() ? (*store)->Put("something").status() : store.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) EXPECT_OK(status);
}

TEST_F(StoreDirectoryTest, WritesMakeTheDirectoriesTheyNeed) {
  ASSERT_OK_AND_ASSIGN(const StoreDirectory store,
                       StoreDirectory::Open(root(), true, nullptr));
  const std::string path = store.ManifestPath("some-unit");
  const std::string_view parts[] = {"one ", "two"};
  ASSERT_OK(store.WriteFile(path, parts));
  EXPECT_EQ(*ReadFile(path), "one two");
}

// Whether one more lock of this kind could be had right now.
bool CouldLock(const std::string& path, int operation) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const bool could = flock(fd, operation | LOCK_NB) == 0;
  close(fd);
  return could;
}

TEST_F(StoreDirectoryTest, SharedLocksShareAndAnExclusiveOneExcludes) {
  ASSERT_OK_AND_ASSIGN(const StoreDirectory store,
                       StoreDirectory::Open(root(), true, nullptr));
  {
    ASSERT_OK_AND_ASSIGN(const StoreLock first, store.Lock(false));
    ASSERT_OK_AND_ASSIGN(const StoreLock second, store.Lock(false));
    EXPECT_FALSE(CouldLock(Marker(), LOCK_EX));
  }
  {
    ASSERT_OK_AND_ASSIGN(const StoreLock exclusive, store.Lock(true));
    EXPECT_FALSE(CouldLock(Marker(), LOCK_SH));
  }
  EXPECT_TRUE(CouldLock(Marker(), LOCK_EX));
}

}  // namespace
}  // namespace reprise
