#include "replay/base/file_util.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FileUtilTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<TemporaryDirectory> directory =
        TemporaryDirectory::Create("file-util-test");
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_.emplace(*std::move(directory));
  }
  std::string Path(const std::string& name) const {
    return directory_->path() + "/" + name;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(directory_->path()))
      names.push_back(entry.path().filename().string());
    return names;
  }
  std::optional<TemporaryDirectory> directory_;
};

TEST(ErrnoToStatusTest, TellsErrorsApart) {
  EXPECT_EQ(ErrnoToStatus(ENOENT, "w").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrnoToStatus(EEXIST, "w").code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ErrnoToStatus(EACCES, "w").code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrnoToStatus(EIO, "w").code(), absl::StatusCode::kUnknown);
  for (int full : {ENOSPC, EDQUOT}) {
    const absl::Status status = ErrnoToStatus(full, "cannot write /a/b");
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()),
                ::testing::StartsWith("cannot write /a/b: "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("disk full"));
  }
}

TEST_F(FileUtilTest, ReadsWhatWasWritten) {
  const std::string bytes = std::string("a\0b\n", 4) + std::string(200000, 'x');
  ASSERT_TRUE(WriteFileAtomically(Path("f"), bytes).ok());
  EXPECT_EQ(*ReadFile(Path("f")), bytes);
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "").ok());
  EXPECT_EQ(*ReadFile(Path("f")), "");
  EXPECT_THAT(Names(), ElementsAre("f"));
}

TEST_F(FileUtilTest, ReadsFilesThatSayTheyAreEmpty) {
  const absl::StatusOr<std::string> status = ReadFile("/proc/self/status");
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(*status, HasSubstr("Pid:"));
}

TEST_F(FileUtilTest, ErrorsNameThePath) {
  const absl::Status missing = ReadFile(Path("none")).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr(Path("none")));
  const absl::Status directory = ReadFile(directory_->path()).status();
  EXPECT_FALSE(directory.ok());
  const absl::Status nowhere = WriteFileAtomically(Path("no/f"), "x");
  EXPECT_EQ(nowhere.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(nowhere.message()), HasSubstr(Path("no/f")));
}

TEST_F(FileUtilTest, AFailedWriteLeavesTheOldFileAndNothingElse) {
  std::filesystem::create_directory(Path("target"));
  std::ofstream(Path("target/keep")) << "kept";
  EXPECT_FALSE(WriteFileAtomically(Path("target"), "new").ok());
  EXPECT_EQ(*ReadFile(Path("target/keep")), "kept");
  EXPECT_THAT(Names(), ElementsAre("target"));
}

// Readers see one writer's bytes or another's, never a mixture or a part.
TEST_F(FileUtilTest, ConcurrentWritersNeverShowHalfAFile) {
  constexpr size_t kBytes = 100000;
  ASSERT_TRUE(WriteFileAtomically(Path("f"), std::string(kBytes, 'a')).ok());
  std::vector<std::thread> writers;
  std::vector<absl::Status> statuses(3);
  for (size_t w = 0; w < statuses.size(); ++w) {
    writers.emplace_back([&, w] {
      const std::string bytes(kBytes, static_cast<char>('a' + w));
      for (int i = 0; i < 50 && statuses[w].ok(); ++i)
        statuses[w] = WriteFileAtomically(Path("f"), bytes);
    });
  }
  bool whole = true;
  for (int i = 0; i < 200; ++i) {
    const absl::StatusOr<std::string> bytes = ReadFile(Path("f"));
    whole = whole && bytes.ok() && *bytes == std::string(kBytes, (*bytes)[0]);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_TRUE(whole);
  for (const absl::Status& status : statuses)
    EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(Names(), ElementsAre("f"));
}

// A writer that was killed left its temporary file; a later process may have
// the same process id.
TEST_F(FileUtilTest, LeftoversOfAKilledWriterAreNoObstacle) {
  for (int i = 0; i < 2000; ++i) {
    std::ofstream(Path(absl::StrCat("f.tmp.", getpid(), ".", i))) << "half";
  }
  const absl::Status status = WriteFileAtomically(Path("f"), "whole");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(*ReadFile(Path("f")), "whole");
}

TEST_F(FileUtilTest, MakesDirectoriesWithTheirMode) {
  ASSERT_TRUE(MakeDirectories(Path("a/b/c"), 0700).ok());
  struct stat info;
  ASSERT_EQ(stat(Path("a/b/c").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_TRUE(MakeDirectories(Path("a/b/c"), 0700).ok());
  std::ofstream(Path("file")) << "x";
  const absl::Status status = MakeDirectories(Path("file/d"));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("file/d")));
}

TEST(TemporaryDirectoryTest, IsPrivateAndRemovedWithItsContents) {
  std::string path;
  {
    absl::StatusOr<TemporaryDirectory> directory =
        TemporaryDirectory::Create("prefix");
    ASSERT_TRUE(directory.ok());
    path = directory->path();
    EXPECT_THAT(path, HasSubstr("/prefix."));
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    std::filesystem::create_directories(path + "/a/b");
    std::ofstream(path + "/a/b/f") << "x";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryDirectoryTest, WhatKilledProcessesLeftGoes) {
  const auto outer = TemporaryDirectory::Create("outer");
  ASSERT_TRUE(outer.ok());
  setenv("TMPDIR", outer->path().c_str(), 1);
  const auto make = [&](const std::string& name, bool old) {
    const std::string path = outer->path() + "/" + name;
    std::filesystem::create_directories(path + "/a");
    if (old) {
      std::filesystem::last_write_time(
          path, std::filesystem::file_time_type::clock::now() -
                    std::chrono::minutes(5));
    }
    return path;
  };
  const std::string left = make("prefix.abcdef", true);
  const std::string young = make("prefix.ghijkl", false);
  const std::string longer = make("prefix.abcdefg", true);
  const std::string other = make("other.abcdef", true);
  const auto in_use = TemporaryDirectory::Create("prefix");
  ASSERT_TRUE(in_use.ok());
  EXPECT_FALSE(std::filesystem::exists(left));
  make(in_use->path().substr(outer->path().size() + 1), true);
  const auto another = TemporaryDirectory::Create("prefix");
  unsetenv("TMPDIR");
  EXPECT_TRUE(another.ok());
  for (const std::string& kept : {young, longer, other, in_use->path()})
    EXPECT_TRUE(std::filesystem::exists(kept)) << kept;
}

TEST(TemporaryDirectoryTest, MovesTakeTheDirectoryAlong) {
  absl::StatusOr<TemporaryDirectory> first = TemporaryDirectory::Create("one");
  absl::StatusOr<TemporaryDirectory> second = TemporaryDirectory::Create("two");
  ASSERT_TRUE(first.ok() && second.ok());
  const std::string one = first->path();
  const std::string two = second->path();
  *second = *std::move(first);
  EXPECT_EQ(second->path(), one);
  EXPECT_TRUE(std::filesystem::exists(one));
  EXPECT_FALSE(std::filesystem::exists(two));
  {
    const TemporaryDirectory third = *std::move(second);
    EXPECT_EQ(third.path(), one);
  }
  EXPECT_FALSE(std::filesystem::exists(one));
}

TEST(TemporaryDirectoryTest, FollowsTmpdirAndSaysWhatIsWrong) {
  const char* before = std::getenv("TMPDIR");
  const std::string saved = before == nullptr ? "" : before;
  setenv("TMPDIR", "/no/such/place", 1);
  const absl::Status status = TemporaryDirectory::Create("p").status();
  if (before == nullptr) {
    unsetenv("TMPDIR");
  } else {
    setenv("TMPDIR", saved.c_str(), 1);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/place/p."));
}

}  // namespace
}  // namespace reprise
