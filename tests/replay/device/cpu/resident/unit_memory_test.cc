#include "replay/device/cpu/resident/unit_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>

#include "replay/base/file_util.h"
#include "replay/unit/blob.h"

namespace reprise::cpu {
namespace {

constexpr uint64_t kBase = 0x200000000000;

// Two float arrays of 3000 elements on pages of their own: `in` is read, of
// `out` the elements 8 to 1007 are written; elements 8 and 9 are read before
// that.
class UnitMemoryTest : public testing::Test {
 protected:
  static constexpr uint64_t kBytes = 3000 * sizeof(float);

  void SetUp() override {
    store_ = *ChunkStore::Open({.directory = directory_.path()});
    v1::Unit unit;
    AddRange(&unit, kBase, std::vector<float>(3000, 1.5f), std::vector<float>(),
             {}, {});
    std::vector<float> after(3000, 2.0f);
    for (int i = 8; i < 1008; ++i) after[i] = 4.0f;
    AddRange(&unit, kBase + 0x8000, std::vector<float>(3000, 2.0f), after,
             {32, 4032}, {32, 40});
    const uint64_t arguments[] = {kBase, kBase + 0x8000};
    unit.set_arguments(arguments, sizeof(arguments));
    AddParameter(&unit, 0, "in");
    AddParameter(&unit, 8, "out");
    manifest_ = unit;
  }

  void AddRange(v1::Unit* unit, uint64_t address,
                const std::vector<float>& before,
                const std::vector<float>& after, Interval written,
                Interval read_first) {
    v1::MemoryRange* range = unit->add_memory();
    range->set_address(address);
    range->set_bytes(kBytes);
    range->set_element_type(v1::ELEMENT_TYPE_F32);
    *range->mutable_prologue() =
        *store_->Put({reinterpret_cast<const char*>(before.data()), kBytes});
    if (!after.empty()) {
      *range->mutable_epilogue() =
          *store_->Put({reinterpret_cast<const char*>(after.data()), kBytes});
    }
    IntervalSet writes, reads_first;
    if (written.end > 0) writes.Add(written.begin, written.end);
    if (read_first.end > 0) reads_first.Add(read_first.begin, read_first.end);
    *range->mutable_write_set() = *StoreIntervals(*store_, writes);
    *range->mutable_read_before_write_set() =
        *StoreIntervals(*store_, reads_first);
  }
  static void AddParameter(v1::Unit* unit, uint32_t offset,
                           const std::string& name) {
    v1::KernelParameter* parameter = unit->mutable_kernel()->add_parameters();
    parameter->set_offset(offset);
    parameter->set_bytes(8);
    parameter->set_name(name);
  }

  std::unique_ptr<UnitMemory> Create(const LoadOptions& options = {}) {
    auto memory =
        UnitMemory::Create(UnitReader("u-1", manifest_, store_), options);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return memory.ok() ? *std::move(memory) : nullptr;
  }

  // The kernel's view: maps what the executor would map, at other addresses.
  struct View {
    char* at = nullptr;
    uint64_t bytes = 0;
  };
  View Map(const UnitMemory& memory, uint64_t address) {
    for (const v1::MemoryMapping& mapping : memory.mappings()) {
      if (address < mapping.address() ||
          address >= mapping.address() + mapping.bytes())
        continue;
      const int protection =
          mapping.writable() ? PROT_READ | PROT_WRITE : PROT_READ;
      void* at = mmap(nullptr, mapping.bytes(), protection, MAP_SHARED,
                      memory.fd(), static_cast<off_t>(mapping.file_offset()));
      EXPECT_NE(at, MAP_FAILED);
      return {static_cast<char*>(at) + (address - mapping.address()),
              mapping.bytes() - (address - mapping.address())};
    }
    return {};
  }
  static float* Floats(const View& view) {
    return reinterpret_cast<float*>(view.at);
  }

  void RunCorrectly(const UnitMemory& memory) {
    float* out = Floats(Map(memory, kBase + 0x8000));
    for (int i = 8; i < 1008; ++i) out[i] = 4.0f;
  }

  TemporaryDirectory directory_ =
      *TemporaryDirectory::Create("unit-memory-test");
  std::shared_ptr<ChunkStore> store_;
  v1::Unit manifest_;
};

TEST_F(UnitMemoryTest, OnlyPagesThatWereWrittenAreWritable) {
  auto memory = Create();
  for (const v1::MemoryMapping& mapping : memory->mappings()) {
    const bool holds_writes = mapping.address() == kBase + 0x8000;
    const bool spare = mapping.address() < kBase;
    EXPECT_EQ(mapping.writable(), holds_writes || spare)
        << std::hex << mapping.address();
    if (holds_writes) EXPECT_EQ(mapping.bytes(), 4096u);
  }
  EXPECT_EQ(*Floats(Map(*memory, kBase + 2999 * sizeof(float))), 1.5f);
}

TEST_F(UnitMemoryTest, PoisonHidesWhatIsWrittenFirstAndNothingElse) {
  auto memory = Create();
  for (uint64_t seed : {1, 2}) {
    memory->Restore();
    memory->Poison(seed);
    const float* out = Floats(Map(*memory, kBase + 0x8000));
    EXPECT_EQ(out[7], 2.0f);
    EXPECT_EQ(out[8], 2.0f);  // read before written: stays
    EXPECT_NE(out[10], 2.0f);
    EXPECT_NE(out[1007], 2.0f);
    EXPECT_EQ(std::isnan(out[500]), seed == 1);
  }
}

TEST_F(UnitMemoryTest, CorrectRunVerifiesAfterPoison) {
  auto memory = Create();
  memory->Restore();
  memory->Poison(3);
  RunCorrectly(*memory);
  const Verdict verdict = memory->Verify({});
  EXPECT_TRUE(verdict.equal);
  ASSERT_EQ(verdict.ranges.size(), 1u);
  EXPECT_EQ(verdict.ranges[0].name(), "out");
  EXPECT_EQ(verdict.ranges[0].compared_elements(), 1000u);
}

TEST_F(UnitMemoryTest,
       RunThatWritesNothingFailsEvenIfTheEpilogueEqualledThePrologue) {
  *manifest_.mutable_memory(1)->mutable_epilogue() =
      manifest_.memory(1).prologue();
  auto memory = Create();
  memory->Restore();
  memory->Poison(4);
  EXPECT_FALSE(memory->Verify({}).equal);
}

TEST_F(UnitMemoryTest, RestoreUndoesEverything) {
  auto memory = Create();
  memory->Poison(5);
  RunCorrectly(*memory);
  Floats(Map(*memory, kBase + 0x8000))[2] = 77;
  memory->Restore();
  const float* out = Floats(Map(*memory, kBase + 0x8000));
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(out[i], 2.0f) << i;
}

TEST_F(UnitMemoryTest, WriteBesideTheWriteSetIsNamed) {
  auto memory = Create();
  memory->Restore();
  RunCorrectly(*memory);
  Floats(Map(*memory, kBase + 0x8000))[1008] = 4.0f;
  const Verdict verdict = memory->Verify({});
  EXPECT_FALSE(verdict.equal);
  ASSERT_FALSE(verdict.ranges.empty());
  EXPECT_TRUE(verdict.ranges[0].outside_write_set());
  EXPECT_EQ(verdict.ranges[0].first_wrong_element(), 1008u);
}

TEST_F(UnitMemoryTest, WriteIntoTheSlackOfAPageIsSeen) {
  // 3000 floats end 288 bytes before their third page does.
  LoadOptions options;
  options.inputs_differ = true;  // all pages writable
  auto memory = Create(options);
  memory->Restore();
  RunCorrectly(*memory);
  EXPECT_TRUE(memory->Verify({}).equal);
  Map(*memory, kBase + 0x8000).at[kBytes + 4] = 1;
  const Verdict verdict = memory->Verify({});
  EXPECT_FALSE(verdict.equal);
  EXPECT_THAT(verdict.ranges.back().name(),
              testing::HasSubstr("belongs to no allocation"));
}

TEST_F(UnitMemoryTest, AdoptedResultBecomesTheReference) {
  LoadOptions options;
  options.inputs_differ = true;
  auto memory = Create(options);
  memory->Restore();
  float* out = Floats(Map(*memory, kBase + 0x8000));
  for (int i = 0; i < 3000; ++i) out[i] = 9;
  EXPECT_FALSE(memory->Verify({}).equal);
  memory->AdoptReference();
  EXPECT_TRUE(memory->Verify({}).equal);
  memory->Restore();
  EXPECT_FALSE(memory->Verify({}).equal);
}

TEST_F(UnitMemoryTest, ToleranceOfTheRangeBeatsTheDefault) {
  manifest_.mutable_memory(1)->mutable_tolerance()->set_absolute(0.5);
  auto memory = Create();
  memory->Restore();
  RunCorrectly(*memory);
  Floats(Map(*memory, kBase + 0x8000))[20] = 4.25f;
  EXPECT_TRUE(memory->Verify({}).equal);
  Floats(Map(*memory, kBase + 0x8000))[20] = 5;
  EXPECT_FALSE(memory->Verify({}).equal);
}

TEST_F(UnitMemoryTest, RangesThatShareAPageKeepApart) {
  manifest_.mutable_memory()->RemoveLast();
  AddRange(&manifest_, kBase + 12288 - 256, std::vector<float>(3000, 6.0f),
           std::vector<float>(), {0, 4}, {});
  auto memory = Create();
  memory->Restore();
  EXPECT_EQ(*Floats(Map(*memory, kBase + 2999 * sizeof(float))), 1.5f);
  EXPECT_EQ(*Floats(Map(*memory, kBase + 12288 - 256)), 6.0f);
}

TEST_F(UnitMemoryTest, SpareGlobalsComeBackWithEveryRestore) {
  auto memory = Create();
  const uint64_t first = *memory->AllocateSpare(4, 4),
                 second = *memory->AllocateSpare(100, 64);
  EXPECT_EQ(second % 64, 0u);
  EXPECT_GE(second, first + 4);
  Floats(Map(*memory, first))[0] = 3;
  memory->CaptureSpare(first);
  Floats(Map(*memory, first))[0] = 8;
  memory->Restore();
  EXPECT_EQ(Floats(Map(*memory, first))[0], 3);
  EXPECT_EQ(memory->AllocateSpare(1 << 30, 16).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(UnitMemoryTest, SpareMemoryThatIsFreedServesAgain) {
  auto memory = Create();
  const uint64_t kept = *memory->AllocateSpare(64, 16);
  Floats(Map(*memory, kept))[0] = 3;
  memory->CaptureSpare(kept);
  for (int load = 0; load < 100; ++load) {
    const auto block = memory->AllocateSpare(1 << 20, 16);
    ASSERT_TRUE(block.ok()) << block.status();
    EXPECT_GE(*block, kept + 64);
    memory->FreeSpare(*block);
  }
  // What others have is not what was captured.
  Floats(Map(*memory, kept))[0] = 8;
  memory->CaptureSpare(*memory->AllocateSpare(16, 16));
  memory->Restore();
  EXPECT_EQ(Floats(Map(*memory, kept))[0], 3);
}

TEST_F(UnitMemoryTest, SpareMemoryThatIsNobodysKeepsNothing) {
  auto memory = Create();
  const uint64_t variable = *memory->AllocateSpare(4, 4);
  memory->Restore();
  EXPECT_TRUE(memory->Verify({}).ranges.empty() ||
              !memory->Verify({}).ranges.back().outside_write_set());
  // In the variable's page and far from it.
  for (const uint64_t offset : {uint64_t{400}, uint64_t{9} << 20}) {
    Floats(Map(*memory, variable))[offset / 4] = 5;
    const Verdict verdict = memory->Verify({});
    EXPECT_FALSE(verdict.equal);
    EXPECT_THAT(verdict.ranges.back().name(),
                testing::HasSubstr("belongs to no variable"));
    memory->Restore();
    EXPECT_EQ(Floats(Map(*memory, variable))[offset / 4], 0);
  }
}

}  // namespace
}  // namespace reprise::cpu
