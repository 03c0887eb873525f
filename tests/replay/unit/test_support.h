// What the unit store's tests share: data of several kinds, a small unit, and a
// file system that fails or dies at a chosen step.
#ifndef REPRISE_TESTS_REPLAY_UNIT_TEST_SUPPORT_H_
#define REPRISE_TESTS_REPLAY_UNIT_TEST_SUPPORT_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replay/base/file_util.h"
#include "replay/unit/file_system.h"
#include "replay/unit/unit_store.h"

namespace reprise::testing {

// Bytes that do not compress, the same for a seed on every machine.
std::string Noise(size_t bytes, uint64_t seed);

// Bytes that compress well, no chunk of them equal to another.
std::string Ramp(size_t bytes, uint64_t seed);

// A unit of one kernel with one range of three chunks (noise, zeros, ramp), an
// epilogue that differs in one chunk, a write set and IR; its blobs are put
// into `chunks`.
v1::Unit SmallUnit(ChunkStore& chunks, uint64_t seed = 1);

// All regular files under a directory, sorted; and with its directories.
std::vector<std::string> FilesUnder(const std::string& directory);
std::vector<std::string> EverythingUnder(const std::string& directory);

void OverwriteFile(const std::string& path, std::string_view bytes);

// Adds to one byte of a file.
void FlipByte(const std::string& path, size_t offset);

// Sets a file's (or directory's) modification time hours back.
void Age(const std::string& path, int hours);

// The status' text, "" for OK: what EXPECT_THAT(..., HasSubstr()) wants.
std::string Text(const absl::Status& status);

// Fails at the Nth change (0-based, counted over all kinds), in one of two
// ways.
class FaultyFileSystem : public FileSystem {
 public:
  enum class Fault {
    kDiskFull,  // that step fails with ENOSPC after writing half; later ones
                // work
    kKilled,    // that step does half and every later one nothing
  };
  FaultyFileSystem(Fault fault, int at) : fault_(fault), at_(at) {}

  int steps() const { return steps_; }

  absl::Status WriteNewFile(const std::string& path,
                            std::span<const std::string_view> parts) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status MakeDirectory(const std::string& path) override;
  absl::Status Remove(const std::string& path) override;

 private:
  enum class Verdict { kWork, kFailHalfway, kDead };
  Verdict Next();
  absl::Status Error(Verdict verdict, const std::string& what) const;

  const Fault fault_;
  const int at_;
  std::atomic<int> steps_{0};
};

// A store in a directory of its own.
class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override;
  std::unique_ptr<UnitStore> OpenStore();
  const std::string& root() const { return root_; }

 private:
  std::unique_ptr<TemporaryDirectory> directory_;
  std::string root_;
};

}  // namespace reprise::testing

#define ASSERT_OK(expr)                                     \
  do {                                                      \
    const absl::Status assert_ok_status = (expr);           \
    ASSERT_TRUE(assert_ok_status.ok()) << assert_ok_status; \
  } while (false)
#define EXPECT_OK(expr)                                     \
  do {                                                      \
    const absl::Status expect_ok_status = (expr);           \
    EXPECT_TRUE(expect_ok_status.ok()) << expect_ok_status; \
  } while (false)
// Declares or assigns the value, or ends the test.
#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_(REPRISE_CONCAT_(test_status_or_, __LINE__), lhs, expr)
#define ASSERT_OK_AND_ASSIGN_(name, lhs, expr) \
  auto name = (expr);                          \
  ASSERT_TRUE(name.ok()) << name.status();     \
  lhs = *std::move(name)

#include "replay/base/status_macros.h"

#endif  // REPRISE_TESTS_REPLAY_UNIT_TEST_SUPPORT_H_
