// Where one device's allocations lie.
#include "replay/recorder/driver/arena.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace reprise::driver {
namespace {

constexpr uint64_t kBase = 0x200000000000;
constexpr uint64_t kBytes = uint64_t{1} << 32;

// Memory up to a limit, with every mapping checked.
class CheckedBacking final : public Backing {
 public:
  bool Map(uint64_t address, uint64_t bytes, uint64_t* handle) override {
    if (used_ + bytes > limit_) return false;
    EXPECT_EQ(address % kPageBytes, 0);
    EXPECT_EQ(bytes % kPageBytes, 0);
    for (const auto& [other, size] : mapped_)
      EXPECT_FALSE(address < other + size && other < address + bytes);
    mapped_[address] = bytes;
    used_ += bytes;
    *handle = ++last_handle_;
    return true;
  }
  void Unmap(uint64_t address, uint64_t bytes, uint64_t) override {
    EXPECT_EQ(mapped_.count(address), 1);
    EXPECT_EQ(mapped_[address], bytes);
    mapped_.erase(address);
    used_ -= bytes;
  }
  bool Holds(uint64_t address, uint64_t bytes) const {
    auto it = mapped_.upper_bound(address);
    if (it == mapped_.begin()) return false;
    --it;
    return address + bytes <= it->first + it->second;
  }

  uint64_t limit_ = kBytes;
  uint64_t used_ = 0;

 private:
  std::map<uint64_t, uint64_t> mapped_;
  uint64_t last_handle_ = 0;
};

class ArenaTest : public ::testing::Test {
 protected:
  ArenaTest() { EXPECT_TRUE(arena_.Open(kBase, kBytes, &backing_)); }

  uint64_t Allocate(uint64_t bytes, uint32_t lane = kSettledLane,
                    uint64_t owner = 1) {
    return arena_.Allocate(bytes, owner, 1, lane, /*may_grow=*/true);
  }

  CheckedBacking backing_;
  Arena arena_;
};

TEST_F(ArenaTest, AllocationsAreAlignedDisjointAndBacked) {
  std::map<uint64_t, uint64_t> live;
  std::mt19937_64 random(7);  // NOLINT(bugprone-random-generator-seed)
  for (int i = 0; i < 20000; ++i) {
    if (live.size() > 500 && random() % 2 == 0) {
      auto it = live.begin();
      std::advance(it, random() % live.size());
      ASSERT_TRUE(arena_.Free(it->first, kSettledLane));
      live.erase(it);
      continue;
    }
    const int magnitude = static_cast<int>(random() % 23);
    const uint64_t bytes = 1 + random() % (uint64_t{1} << magnitude);
    const uint64_t address = Allocate(bytes);
    ASSERT_NE(address, 0);
    ASSERT_EQ(address % kSlotAlignment, 0);
    ASSERT_TRUE(backing_.Holds(address, bytes));
    const auto next = live.lower_bound(address);
    if (next != live.end()) ASSERT_LE(address + bytes, next->first);
    if (next != live.begin()) {
      const auto previous = std::prev(next);
      ASSERT_LE(previous->first + previous->second, address);
    }
    live[address] = bytes;
  }
  std::map<uint64_t, uint64_t> seen;
  uint64_t last = 0;
  arena_.ForEachLive([&](const Allocation& one) {
    EXPECT_GT(one.address, last);
    last = one.address;
    seen[one.address] = one.bytes;
  });
  EXPECT_EQ(seen, live);
}

TEST_F(ArenaTest, EverySizeFitsItsSlot) {
  uint64_t last = 0;
  uint64_t last_bytes = 0;
  for (uint64_t bytes = 1; bytes < kLargeBytes + 5000; bytes += 509) {
    const uint64_t address = Allocate(bytes);
    Allocation found;
    ASSERT_TRUE(arena_.Find(address + bytes - 1, &found)) << bytes;
    EXPECT_EQ(found.address, address);
    EXPECT_EQ(found.bytes, bytes);
    EXPECT_FALSE(arena_.Find(address + bytes, &found) &&
                 found.address == address);
    ASSERT_TRUE(arena_.Free(address, kSettledLane));
    last = address;
    last_bytes = bytes;
  }
  EXPECT_NE(last, 0);
  EXPECT_GT(last_bytes, kLargeBytes);
}

TEST_F(ArenaTest, FreesOnlyTheBeginningsOfLiveAllocations) {
  const uint64_t small = Allocate(100);
  const uint64_t large = Allocate(5 << 20);
  EXPECT_FALSE(arena_.Free(small + 1, kSettledLane));
  EXPECT_FALSE(arena_.Free(small + 512, kSettledLane));
  EXPECT_FALSE(arena_.Free(large + kPageBytes, kSettledLane));
  EXPECT_FALSE(arena_.Free(kBase + kBytes, kSettledLane));
  EXPECT_FALSE(arena_.Free(0, kSettledLane));
  EXPECT_TRUE(arena_.Free(small, kSettledLane));
  EXPECT_FALSE(arena_.Free(small, kSettledLane));
  EXPECT_TRUE(arena_.Free(large, kSettledLane));
  EXPECT_FALSE(arena_.Free(large, kSettledLane));
}

TEST_F(ArenaTest, AStreamsMemoryIsItsOwnUntilItSettles) {
  for (const uint64_t bytes : {uint64_t{700}, uint64_t{4} << 20}) {
    arena_.SetCacheBound(kBytes);
    const uint64_t first = Allocate(bytes, 1);
    ASSERT_TRUE(arena_.Free(first, 1));
    EXPECT_TRUE(arena_.HasPending(1));
    EXPECT_NE(Allocate(bytes, 2), first);
    EXPECT_NE(Allocate(bytes), first);
    EXPECT_EQ(Allocate(bytes, 1), first);
    ASSERT_TRUE(arena_.Free(first, 1));
    arena_.Move(1, 3);
    EXPECT_NE(Allocate(bytes, 1), first);
    arena_.Settle(3);
    EXPECT_FALSE(arena_.HasPending(3));
    EXPECT_EQ(Allocate(bytes, 2), first);
  }
}

TEST_F(ArenaTest, GrowsOnlyWhereAllowed) {
  EXPECT_EQ(arena_.Allocate(100, 1, 1, kSettledLane, false), 0);
  EXPECT_EQ(arena_.Allocate(4 << 20, 1, 1, kSettledLane, false), 0);
  Allocate(100);
  EXPECT_NE(arena_.Allocate(100, 1, 1, kSettledLane, false), 0);
}

TEST_F(ArenaTest, LargeMemoryGoesBackBeyondTheBound) {
  arena_.SetCacheBound(8 << 20);
  std::vector<uint64_t> all;
  for (int i = 0; i < 8; ++i) all.push_back(Allocate(4 << 20));
  for (const uint64_t address : all)
    ASSERT_TRUE(arena_.Free(address, kSettledLane));
  EXPECT_EQ(backing_.used_, 8 << 20);
  EXPECT_EQ(arena_.cached_bytes(), 8 << 20);
  arena_.Trim();
  EXPECT_EQ(backing_.used_, 0);
  EXPECT_EQ(arena_.mapped_bytes(), 0);
}

TEST_F(ArenaTest, TrimGivesEmptySmallChunksBack) {
  std::vector<uint64_t> all;
  for (int i = 0; i < 10000; ++i) all.push_back(Allocate(600));
  const uint64_t kept = all.back();
  all.pop_back();
  for (const uint64_t address : all)
    ASSERT_TRUE(arena_.Free(address, kSettledLane));
  arena_.Trim();
  EXPECT_EQ(backing_.used_, kPageBytes);
  // What is left of that chunk is used again.
  EXPECT_EQ(Allocate(600) / kPageBytes, kept / kPageBytes);
  ASSERT_TRUE(arena_.Free(kept, kSettledLane));
  Allocation found;
  EXPECT_FALSE(arena_.Find(kept, &found));
}

TEST_F(ArenaTest, MemoryThatStreamsMayUseIsNotTrimmed) {
  const uint64_t small = Allocate(600, 5);
  const uint64_t large = Allocate(4 << 20, 5);
  ASSERT_TRUE(arena_.Free(small, 5));
  ASSERT_TRUE(arena_.Free(large, 5));
  arena_.Trim();
  EXPECT_EQ(backing_.used_, 6 << 20);
  arena_.Settle(5);
  arena_.Trim();
  EXPECT_EQ(backing_.used_, 0);
}

TEST_F(ArenaTest, ReportsExhaustionAndRecovers) {
  backing_.limit_ = 16 << 20;
  std::vector<uint64_t> all;
  while (const uint64_t address = Allocate(3 << 20)) all.push_back(address);
  EXPECT_EQ(all.size(), 4);
  EXPECT_EQ(Allocate(100), 0);
  ASSERT_TRUE(arena_.Free(all[1], kSettledLane));
  EXPECT_NE(Allocate(100), 0);
  EXPECT_EQ(Allocate(kBytes + 1), 0);
  EXPECT_EQ(Allocate(0), 0);
}

TEST_F(ArenaTest, AContextsMemoryGoesWithIt) {
  const uint64_t kept = Allocate(1000, kSettledLane, /*owner=*/2);
  for (int i = 0; i < 100; ++i) Allocate(1000 + i * 30000);
  arena_.FreeOwner(1);
  arena_.Trim();
  int live = 0;
  arena_.ForEachLive([&](const Allocation& one) {
    ++live;
    EXPECT_EQ(one.address, kept);
    EXPECT_EQ(one.owner, 2);
  });
  EXPECT_EQ(live, 1);
  EXPECT_EQ(backing_.used_, kPageBytes);
}

}  // namespace
}  // namespace reprise::driver
