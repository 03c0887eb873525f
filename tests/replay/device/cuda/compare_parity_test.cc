// The compare kernel gives what the cpu device's comparison gives, on random
// memory: one definition of equal for every device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "replay/device/cpu/resident/compare.h"

#define REPRISE_BODY
#include "replay/device/cuda/support_kernels.h"

namespace reprise::cuda {

static bool Any(bool mine) { return mine; }
static void Merge(CompareCounts* to, const CompareCounts& mine) {
  to->wrong += mine.wrong;
  to->outside += mine.outside;
  to->first_wrong = std::max(to->first_wrong, mine.first_wrong);
  to->max_absolute = std::max(to->max_absolute, mine.max_absolute);
  to->max_relative = std::max(to->max_relative, mine.max_relative);
  to->squares += mine.squares;
}

}  // namespace reprise::cuda

#include "replay/device/cuda/support_kernels_body.h"

namespace reprise::cuda {
namespace {

constexpr uint64_t kBytes = 4096;
constexpr uint32_t kLanes = 8;

// Bytes some of which make infinities, NaNs, zeros of both signs.
void Spoil(std::mt19937_64& random, std::string* bytes) {
  static constexpr uint64_t kSpecial[] = {0,
                                          0x8000800080008000,
                                          0x7f8000007f800000,
                                          0x7ff0000000000000,
                                          0xffffffffffffffff,
                                          0x7c007c007c007c00,
                                          0x0001000100010001};
  for (int i = 0; i < 40; ++i) {
    const uint64_t word = random() % 3 == 0 ? random() : kSpecial[random() % 7];
    std::memcpy(bytes->data() + random() % (kBytes / 8) * 8, &word, 8);
  }
  for (int i = 0; i < 20; ++i) (*bytes)[random() % kBytes] ^= 1;
}

CompareCounts RunKernel(const CompareJob& job) {
  const uint32_t size = TypeBytes(job.element_type);
  // Tiles of odd sizes.
  std::vector<CompareTile> tiles;
  for (uint64_t at = 0; at < kBytes; at += 1000 / size * size)
    tiles.push_back({0, at, std::min(at + 1000 / size * size, kBytes)});
  CompareCounts counts;
  for (uint64_t thread = 0; thread < 2 * kLanes; ++thread)
    CompareBody(tiles.data(), tiles.size(), &job, &counts, kLanes,
                {thread, 2 * kLanes});
  return counts;
}

double AsNumber(uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

void CompareBoth(std::mt19937_64& random, v1::ElementType type) {
  std::string expected(kBytes, '\0');
  for (uint64_t at = 0; at < kBytes; at += 8) {
    const uint64_t word = random();
    std::memcpy(expected.data() + at, &word, 8);
  }
  std::string got = expected;
  Spoil(random, &got);
  IntervalSet writable;
  for (uint64_t at = 0; at + 64 < kBytes; at += 64 + random() % 256)
    writable.Add(at, at + 1 + random() % 63);
  v1::Tolerance tolerance;
  if (random() % 2 == 0) tolerance.set_absolute(0.5);
  if (random() % 2 == 0) tolerance.set_relative(0.25);
  const bool all = random() % 2 == 0;

  cpu::CompareInput input;
  input.got = got.data();
  input.expected = expected.data();
  input.bytes = kBytes;
  input.type = type;
  input.tolerance = tolerance;
  input.writable = all ? nullptr : &writable;
  const cpu::CompareResult wanted = cpu::CompareRange(input);

  CompareJob job;
  job.got = reinterpret_cast<uint64_t>(got.data());
  job.expected = reinterpret_cast<uint64_t>(expected.data());
  job.intervals = reinterpret_cast<uint64_t>(writable.intervals().data());
  job.interval_count = writable.intervals().size();
  job.all_may_differ = all ? 1 : 0;
  job.element_type = static_cast<uint32_t>(type);
  job.absolute = tolerance.absolute();
  job.relative = tolerance.relative();
  const CompareCounts counts = RunKernel(job);

  const v1::RangeErrors& errors = wanted.errors;
  EXPECT_EQ(counts.wrong, errors.wrong_elements());
  EXPECT_EQ(counts.outside > 0, errors.outside_write_set());
  if (counts.wrong > 0) {
    EXPECT_EQ(~uint64_t{0} - counts.first_wrong, errors.first_wrong_element());
  }
  EXPECT_EQ(AsNumber(counts.max_absolute), errors.max_absolute());
  EXPECT_EQ(AsNumber(counts.max_relative), errors.max_relative());
  const double compared = static_cast<double>(errors.compared_elements());
  const double rms = std::sqrt(counts.squares / compared);
  if (std::isfinite(errors.rms())) {
    EXPECT_NEAR(rms, errors.rms(), 1e-9 * errors.rms());
  } else {
    EXPECT_FALSE(std::isfinite(rms));
  }
}

TEST(CompareParityTest, KernelAgreesWithTheCpuDevice) {
  for (int type = v1::ELEMENT_TYPE_UNTYPED; type <= v1::ELEMENT_TYPE_I64;
       ++type) {
    for (uint64_t seed = 0; seed < 200; ++seed) {
      std::mt19937_64 random(seed);
      SCOPED_TRACE("type " + std::to_string(type) + ", seed " +
                   std::to_string(seed));
      CompareBoth(random, static_cast<v1::ElementType>(type));
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(CompareParityTest, PoisonIsTheSameHoweverItIsCut) {
  alignas(16) char whole[256] = {}, pieces[256] = {};
  const uint64_t seed = 12345;
  // What is poisoned depends on addresses, so both at one place.
  const auto fill = [&](const std::vector<FillTile>& tiles, char* copy) {
    alignas(4096) static char place[256];
    std::memset(place, 0, sizeof(place));
    std::vector<FillTile> there = tiles;
    for (FillTile& tile : there) tile.at += reinterpret_cast<uint64_t>(place);
    for (uint64_t thread = 0; thread < 4; ++thread)
      PoisonBody(there.data(), there.size(), 2, seed, {thread, 4});
    std::memcpy(copy, place, sizeof(place));
  };
  fill({{3, 200}}, whole);
  fill({{3, 1}, {4, 60}, {64, 17}, {81, 122}}, pieces);
  EXPECT_EQ(std::memcmp(whole, pieces, sizeof(whole)), 0);
  EXPECT_EQ(whole[2], 0);
  EXPECT_EQ(whole[203], 0);
}

}  // namespace
}  // namespace reprise::cuda
