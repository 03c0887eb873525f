#include "replay/recorder/session/arena_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace reprise {
namespace {

constexpr uint64_t kBase = 0x200000000000;
constexpr uint64_t kPage = ArenaMemory::kPageBytes;

class ArenaMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { memory_ = Make(); }

  static std::unique_ptr<ArenaMemory> Make() {
    auto memory = ArenaMemory::Create({kBase, 64 << 20, 1 << 20});
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *std::move(memory);
  }

  absl::Status Add(uint64_t offset, uint64_t bytes) {
    return memory_->Add(kBase + (1 << 20) + offset, bytes,
                        v1::MEMORY_ORIGIN_DEVICE);
  }

  static v1::ModuleGlobal Global(const std::string& name, uint64_t bytes) {
    v1::ModuleGlobal global;
    global.set_symbol(name);
    global.set_bytes(bytes);
    global.set_alignment(16);
    return global;
  }

  std::unique_ptr<ArenaMemory> memory_;
};

TEST_F(ArenaMemoryTest, RefusesWhatAnApplicationCannotHave) {
  EXPECT_TRUE(Add(0, 100).ok());
  EXPECT_FALSE(Add(0, 100).ok());                     // taken
  EXPECT_FALSE(Add(8, 8).ok());                       // not a page
  EXPECT_FALSE(Add(kPage, 0).ok());                   // empty
  EXPECT_FALSE(Add(uint64_t{63} << 20, kPage).ok());  // past the end
  EXPECT_FALSE(Add(kPage, ~uint64_t{0}).ok());        // overflows
  EXPECT_FALSE(memory_->Add(kBase, kPage, v1::MEMORY_ORIGIN_DEVICE).ok());
  EXPECT_TRUE(Add(8 * kPage, 100).ok());
  EXPECT_FALSE(Add(4 * kPage, 5 * kPage).ok());  // runs into the next
}

TEST_F(ArenaMemoryTest, FindsWhatHoldsAByte) {
  ASSERT_TRUE(Add(0, 100).ok());
  const uint64_t address = kBase + (1 << 20);
  ASSERT_NE(memory_->Find(address + 99), nullptr);
  EXPECT_EQ(memory_->Find(address + 99)->bytes, 100u);
  EXPECT_EQ(memory_->Find(address + 100), nullptr);
  EXPECT_EQ(memory_->Find(address - 1), nullptr);
  const uint64_t before = memory_->generation();
  EXPECT_TRUE(memory_->Remove(address).ok());
  EXPECT_NE(memory_->generation(), before);
  EXPECT_FALSE(memory_->Remove(address).ok());
}

TEST_F(ArenaMemoryTest, GlobalsHavePagesOfTheirOwn) {
  const auto a = memory_->AddGlobal(Global("a", 4));
  const auto b = memory_->AddGlobal(Global("b", kPage));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_GE(*b, *a + 2 * kPage);  // an unmapped page between them
  EXPECT_EQ(memory_->Find(*b)->symbol, "b");
  EXPECT_FALSE(memory_->Remove(*a).ok()) << "cudaFree of a variable";
  EXPECT_FALSE(memory_->AddGlobal(Global("huge", 2 << 20)).ok());
  const auto mappings = memory_->Mappings();
  ASSERT_EQ(mappings.size(), 2u);
  EXPECT_EQ(mappings[1].address(), *b);
  EXPECT_EQ(mappings[1].file_offset(), *b - kBase);
  EXPECT_EQ(mappings[0].bytes(), kPage);
}

TEST_F(ArenaMemoryTest, ACopyHoldsWhatIsLiveAndNothingElse) {
  const uint64_t address = kBase + (1 << 20);
  ASSERT_TRUE(Add(0, 3 * kPage).ok());
  ASSERT_TRUE(Add(16 * kPage, 10).ok());
  std::memset(memory_->At(address + kPage), 7, kPage);
  std::memset(memory_->At(address + 16 * kPage), 9, 10);
  const std::unique_ptr<ArenaMemory> copy = Make();
  // Left from before: must be gone.
  std::memset(copy->At(address), 1, 3 * kPage);
  copy->CopyFrom(*memory_);
  EXPECT_EQ(std::memcmp(copy->At(address), memory_->At(address), 3 * kPage), 0);
  EXPECT_EQ(*copy->At(address + 16 * kPage + 9), 9);
  EXPECT_EQ(copy->live().size(), 2u);
}

TEST_F(ArenaMemoryTest, ResetForgetsEverything) {
  ASSERT_TRUE(Add(0, 100).ok());
  const auto global = memory_->AddGlobal(Global("a", 4));
  ASSERT_TRUE(global.ok());
  *memory_->At(*global) = 5;
  memory_->Clear();
  EXPECT_TRUE(memory_->live().empty());
  const auto again = memory_->AddGlobal(Global("a", 4));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*memory_->At(*again), 0);
}

}  // namespace
}  // namespace reprise
