// Loading units onto a CUDA device from their stores: of all sizes and kinds
// of contents, and what becomes of a load that fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "replay/base/sha256.h"
#include "replay/device/cuda/transfer_window.h"
#include "tests/replay/device/cuda/cuda_device_fixture.h"

namespace reprise {
namespace {

using testing::HasSubstr;

constexpr uint64_t kLargeOut = kArena + (uint64_t{1} << 30);

class UnitLoadTest : public CudaDeviceTest {
 protected:
  // The unit's two ranges with so many floats, some chunks zeros, and an end
  // that is no whole chunk.
  void MakeLarge(uint64_t bytes) {
    const uint64_t count = bytes / sizeof(float) + 5;
    std::vector<float> in(count), before(count), after(count);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t chunk = i * sizeof(float) / kChunkBytes;
      in[i] = chunk % 5 == 1 ? 0 : static_cast<float>(i % 9973 + 1);
      before[i] = chunk % 5 == 2 ? 0 : static_cast<float>(i % 127 + 1);
      after[i] = 2 * in[i];
    }
    unit_.clear_memory();
    AddRange(kIn, Bytes(in), "", {});
    AddRange(kLargeOut, Bytes(before), Bytes(after),
             {{0, count * sizeof(float)}})
        ->set_element_type(v1::ELEMENT_TYPE_F32);
    unit_.set_arguments(Words({kIn, kLargeOut, count}));
  }

  // Puts other bytes in the place of a chunk; returns its path.
  std::string SpoilChunk(const v1::Chunk& chunk) {
    const std::string name = HexEncode(chunk.sha256());
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(directory_.path())) {
      if (!entry.is_regular_file()) continue;
      const std::string path = entry.path().string();
      std::string hex = path;
      std::erase(hex, '/');
      if (hex.find(name) == std::string::npos) continue;
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-1, std::ios::end);
      file.put('\x55');
      return path;
    }
    return "";
  }
};

TEST_F(UnitLoadTest, UnitLargerThanTheWindowComesThroughIt) {
  MakeLarge(cuda::kWindowBytes / 2 + cuda::kSlotBytes);
  Load();
  EXPECT_TRUE(RunAndJudge("double").equal);
  EXPECT_FALSE(RunAndJudge("nearly_double").equal);
}

TEST_F(UnitLoadTest, WindowThatCannotBePinnedWillDo) {
  setenv("REPRISE_FAKE_CUDA_NO_PINNING", "1", 1);
  MakeLarge(2 * cuda::kSlotBytes);
  Load();
  EXPECT_TRUE(RunAndJudge("double").equal);
}

TEST_F(UnitLoadTest, ManySmallRangesComeTogether) {
  for (uint64_t i = 0; i < 500; ++i) {
    AddRange(kOut + (uint64_t{8} << 20) + 4096 * i, std::string(24, 'a'),
             std::string(24, 'a'), {});
  }
  Load();
  EXPECT_TRUE(RunAndJudge("double").equal);
}

TEST_F(UnitLoadTest, UnitOfZerosIsLoaded) {
  const std::string zeros(2 * kChunkBytes, '\0');
  unit_.clear_memory();
  AddRange(kIn, zeros, "", {});
  AddRange(kLargeOut, std::string(zeros.size(), 'x'), zeros,
           {{0, zeros.size()}});
  unit_.set_arguments(Words({kIn, kLargeOut, zeros.size() / sizeof(float)}));
  Load();
  EXPECT_TRUE(RunAndJudge("double").equal);
}

TEST_F(UnitLoadTest, DamagedChunkIsNamedAndTheDeviceGoesOn) {
  Load();
  const v1::Unit good = unit_;
  MakeLarge(4 * cuda::kSlotBytes);
  const std::string path = SpoilChunk(unit_.memory(0).prologue().chunks(12));
  ASSERT_NE(path, "");
  for (int i = 0; i < 3; ++i) {
    const auto loaded = device_->Load(Unit());
    EXPECT_TRUE(absl::IsDataLoss(loaded.status())) << loaded.status();
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(path));
  }
  unit_ = good;
  EXPECT_TRUE(RunAndJudge("double").equal);
}

TEST_F(UnitLoadTest, LoadThatFailedHoldsNoMemory) {
  MakeLarge(4 * cuda::kSlotBytes);
  // Working memory and two shadows of one such unit, not of two.
  setenv("REPRISE_FAKE_CUDA_BYTES", std::to_string(220 << 20).c_str(), 1);
  device_ = MakeDevice();
  const v1::Unit good = unit_;
  *unit_.mutable_memory(1)->mutable_epilogue()->mutable_chunks(7) =
      unit_.memory(0).prologue().chunks(0);
  unit_.mutable_memory(1)->mutable_epilogue()->mutable_chunks(7)->set_sha256(
      std::string(32, 'x'));
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(absl::IsNotFound(device_->Load(Unit()).status()));
  unit_ = good;
  auto resident = device_->Load(Unit());
  ASSERT_TRUE(resident.ok()) << resident.status();
  resident_ = *std::move(resident);
  EXPECT_TRUE(RunAndJudge("double").equal);
}

TEST_F(UnitLoadTest, ExecutorThatIsKilledDuringALoadIsReplaced) {
  MakeLarge(4 * cuda::kSlotBytes);
  for (const char* upload : {"1", "3", "9"}) {
    setenv("REPRISE_FAKE_CUDA_DIE_AT_UPLOAD", upload, 1);
    device_ = MakeDevice();
    const auto loaded = device_->Load(Unit());
    EXPECT_TRUE(absl::IsUnavailable(loaded.status())) << loaded.status();
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("signal 9"));
  }
  unsetenv("REPRISE_FAKE_CUDA_DIE_AT_UPLOAD");
  auto resident = device_->Load(Unit());
  ASSERT_TRUE(resident.ok()) << resident.status();
  resident_ = *std::move(resident);
  EXPECT_TRUE(RunAndJudge("double").equal);
}

TEST_F(UnitLoadTest, UnitsComeBackFromTheirStoresAfterAFault) {
  Load();
  const auto small = LoadCode(*resident_, "double");
  const v1::Unit small_unit = unit_;
  MakeLarge(2 * cuda::kSlotBytes);
  auto other = device_->Load(Unit());
  ASSERT_TRUE(other.ok()) << other.status();
  const auto large = LoadCode(**other, "double");
  const auto bad = LoadCode(**other, "null");
  EXPECT_EQ(Run(**other, *bad).kind, v1::OUTCOME_KIND_DEVICE_FAULT);
  EXPECT_EQ(Run(**other, *large).kind, v1::OUTCOME_KIND_OK);
  EXPECT_TRUE(Judge(**other).equal);
  EXPECT_EQ(Run(*resident_, *small).kind, v1::OUTCOME_KIND_OK);
  EXPECT_TRUE(Judge(*resident_).equal);
}

TEST_F(UnitLoadTest, LargeAdoptedReferenceSurvivesAFault) {
  MakeLarge(2 * cuda::kSlotBytes);
  Load();
  const auto triple = LoadCode(*resident_, "triple");
  const auto bad = LoadCode(*resident_, "null");
  Run(*resident_, *triple);
  ASSERT_TRUE(resident_->AdoptReference().ok());
  Run(*resident_, *bad);
  EXPECT_TRUE(RunAndJudge("triple").equal);
  EXPECT_FALSE(RunAndJudge("double").equal);
}

}  // namespace
}  // namespace reprise
