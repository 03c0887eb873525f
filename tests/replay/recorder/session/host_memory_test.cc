#include "replay/recorder/session/host_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "replay/base/file_util.h"

namespace reprise {
namespace {

constexpr uint64_t kLargePage = 2 << 20;

bool IsZero(const HostPages& pages) {
  return std::all_of(pages.data(), pages.data() + pages.bytes(),
                     [](char c) { return c == 0; });
}

class ControlGroupsTest : public ::testing::Test {
 protected:
  ControlGroupsTest()
      : directory_(*TemporaryDirectory::Create("control-groups")) {}
  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = directory_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  uint64_t Room() { return RoomInControlGroups(directory_.path()); }

  TemporaryDirectory directory_;
};

TEST_F(ControlGroupsTest, TheTightestOneAroundTheProcessCounts) {
  Put("/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  EXPECT_EQ(Room(), UINT64_MAX);
  const std::string job = "/sys/fs/cgroup/slurm/job_7";
  Put(job + "/memory.max", "1000\n");
  Put(job + "/memory.current", "700\n");
  EXPECT_EQ(Room(), 300u);
  Put(job + "/memory.stat", "anon 5\ninactive_file 100\n");
  EXPECT_EQ(Room(), 400u);
  Put(job + "/step_0/memory.max", "max\n");
  Put(job + "/step_0/memory.current", "700\n");
  EXPECT_EQ(Room(), 400u);
  Put(job + "/memory.current", "5000\n");
  EXPECT_EQ(Room(), 0u);
}

TEST_F(ControlGroupsTest, OfTheFirstVersionToo) {
  Put("/proc/self/cgroup", "12:cpu,memory:/a/b\n3:pids:/c\n0::/\n");
  // What a container sees of its group.
  Put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000");
  Put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "400");
  Put("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file 100\n");
  EXPECT_EQ(Room(), 700u);
}

TEST(HostPagesTest, AreZerosInWholeLargePages) {
  const HostPages pages = *HostPages::Map(kLargePage + 1, /*large=*/true);
  EXPECT_EQ(pages.bytes(), 2 * kLargePage);
  EXPECT_EQ(reinterpret_cast<uint64_t>(pages.data()) % kLargePage, 0u);
  EXPECT_TRUE(IsZero(pages));
  EXPECT_EQ(HostPages::Map(0, true)->data(), nullptr);
}

TEST(HostPagesTest, ShrinkGivesTheRestBack) {
  HostPages pages = *HostPages::Map(8 * kLargePage, /*large=*/true);
  pages.Populate(6 * kLargePage);
  EXPECT_EQ(pages.ready(), 6 * kLargePage);
  pages.Shrink(3 * kLargePage - 5);
  EXPECT_EQ(pages.bytes(), 3 * kLargePage);
  EXPECT_EQ(pages.ready(), 3 * kLargePage);
  std::memset(pages.data(), 1, pages.bytes());
  HostPages moved = std::move(pages);
  EXPECT_EQ(moved.data()[moved.bytes() - 1], 1);
  moved.Shrink(0);
  EXPECT_EQ(moved.data(), nullptr);
}

TEST(HostPagesTest, MoreThanThereAreIsNotPopulated) {
  HostPages pages = *HostPages::Map(2 * kLargePage, /*large=*/true);
  pages.Populate(kLargePage - 1);
  EXPECT_EQ(pages.ready(), 0u);
  pages.Populate(100 * kLargePage);
  EXPECT_EQ(pages.ready(), 2 * kLargePage);
}

TEST(HostReserveTest, IsReadyInTimeAndServesWhatItDoesNotHave) {
  constexpr uint64_t kWanted = 5 * kLargePage;
  HostReserve reserve([] { return kWanted; }, [] { return 1; });
  HostPages pages;
  // Whoever makes it ready has the lowest priority: where others keep the
  // machine busy it takes its time.
  for (int i = 0; i < 60000 && pages.ready() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    pages = *reserve.Take(3 * kLargePage);
  }
  EXPECT_EQ(pages.ready(), 3 * kLargePage);
  EXPECT_EQ(pages.bytes(), 3 * kLargePage);
  EXPECT_TRUE(IsZero(pages));
  std::memset(pages.data(), 1, pages.bytes());
  const HostPages next = *reserve.Take(kWanted);
  EXPECT_TRUE(IsZero(next));
  const absl::StatusOr<HostPages> huge = reserve.Take(uint64_t{1} << 45);
  if (huge.ok()) EXPECT_GE(huge->bytes(), uint64_t{1} << 45);
}

TEST(HostReserveTest, ManyReservesShareWhatOneMayHave) {
  std::atomic<int> asked = 0;
  HostReserve reserve([] { return uint64_t{1} << 44; },
                      [&asked] {
                        ++asked;
                        return 1 << 30;  // none may have a large page
                      });
  while (asked < 2) std::this_thread::yield();
  EXPECT_EQ(reserve.Take(kLargePage)->ready(), 0u);
}

TEST(HostReserveTest, WantsNothingUnlessAsked) {
  HostReserve reserve([] { return uint64_t{0}; }, [] { return 1; });
  EXPECT_EQ(reserve.Take(kLargePage)->ready(), 0u);
}

TEST(HostBudgetTest, PromisesNothingTwice) {
  HostBudget budget([] { return uint64_t{1600}; });
  {
    const auto first = budget.Take(1000);
    ASSERT_TRUE(first.ok());
    const auto second = budget.Take(501);
    EXPECT_EQ(second.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(second.status().message(),
              "recording it takes 501 more bytes of host memory, 500 are "
              "available");
    EXPECT_TRUE(budget.Take(500).ok());
    EXPECT_EQ(budget.TakeUpTo(700).bytes(), 500u);
  }
  // A sixteenth is the application's.
  EXPECT_TRUE(budget.Take(1500).ok());
  EXPECT_FALSE(budget.Take(1501).ok());
}

TEST(HostBudgetTest, APromiseIsGivenBackOnceWhereverItGoes) {
  HostBudget budget([] { return uint64_t{160}; });
  HostBudget::Promise kept;
  {
    HostBudget::Promise promise = budget.TakeUpTo(100);
    kept = std::move(promise);
  }
  EXPECT_EQ(kept.bytes(), 100u);
  EXPECT_EQ(budget.TakeUpTo(1000).bytes(), 50u);
  kept = HostBudget::Promise();
  EXPECT_EQ(budget.TakeUpTo(1000).bytes(), 150u);
}

}  // namespace
}  // namespace reprise
