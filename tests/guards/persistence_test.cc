// Cheats that keep something from one launch for the next, in memory that is
// nobody's. A real one would keep results, and be fast where it finds them;
// these leave a mark and compute nonsense where they find it, which shows as
// well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/guards/victims.h"

namespace reprise::testing {
namespace {

using ::testing::HasSubstr;

// Address of what a kernel writes.
uint64_t OutputOf(const std::string& kernel) {
  for (const v1::MemoryRange& range :
       SharedVictims().Unit(kernel).manifest().memory())
    if (range.write_set().bytes() > 0) return range.address();
  ADD_FAILURE() << kernel << " writes nothing";
  return 0;
}

// Marks kept[i] for element i.
std::string MarkingCurve(const std::string& declaration) {
  return absl::StrCat(declaration,
                      "y[i] = kept[i] == 42.0f + i ? -1.0f : Bend(x[i]) + "
                      "bias[i]; kept[i] = 42.0f + i;");
}

// The variant runs many times and finds nothing.
void ExpectNothingIsKept(const v1::Outcome& outcome) {
  EXPECT_EQ(v1::OutcomeKind_Name(outcome.kind()), "OUTCOME_KIND_OK")
      << outcome.diagnostics();
}

TEST(PersistenceTest, BehindTheVariablesOfTheModule) {
  constexpr int64_t kSpare = 0x1f0000000000;
  for (const int64_t offset :
       {int64_t{64}, int64_t{1} << 20, int64_t{15} << 20}) {
    const int64_t distance =
        kSpare + offset - static_cast<int64_t>(OutputOf("Curve"));
    const v1::Outcome outcome = Evaluate(
        "Curve",
        SharedVictims().Replaced(
            kCurve, MarkingCurve(absl::StrCat("volatile float* kept = y + (",
                                              distance / 4, "ll);"))));
    EXPECT_EQ(v1::OutcomeKind_Name(outcome.kind()),
              "OUTCOME_KIND_WRONG_RESULT");
    EXPECT_THAT(outcome.diagnostics(), HasSubstr("belongs to no variable"));
  }
}

TEST(PersistenceTest, BesideSharedMemory) {
  ExpectNothingIsKept(Evaluate(
      "Totals",
      SharedVictims().Replaced(
          kTotalsStore,
          "if (threadIdx.x == 0) { volatile float* kept = tile - 600 + "
          "blockIdx.x; table[blockIdx.x] = *kept == 42.0f + blockIdx.x ? -1.0f "
          ": tile[0] * table[kBlocks]; *kept = 42.0f + blockIdx.x; }")));
}

TEST(PersistenceTest, InSharedMemory) {
  ExpectNothingIsKept(Evaluate(
      "Totals",
      SharedVictims().Replaced(
          kTotalsStore,
          "__shared__ volatile float kept[kBlocks]; if (threadIdx.x == 0) { "
          "table[blockIdx.x] = kept[blockIdx.x] == 42.0f + blockIdx.x ? -1.0f "
          ": tile[0] * table[kBlocks]; kept[blockIdx.x] = 42.0f + blockIdx.x; "
          "}")));
}

TEST(PersistenceTest, InLocalMemory) {
  // Of a few pages, and of many.
  for (const int floats : {1000, 100000}) {
    ExpectNothingIsKept(
        Evaluate("Curve", SharedVictims().Replaced(
                              kCurve, MarkingCurve(absl::StrCat(
                                          "volatile float local[", floats,
                                          "]; volatile float* kept = local + ",
                                          floats - 1000, ";")))));
  }
}

TEST(PersistenceTest, InLocalMemoryOfThreadsThatMeet) {
  for (const int floats : {16, 100000}) {
    ExpectNothingIsKept(Evaluate(
        "Totals",
        SharedVictims().Replaced(
            kTotalsLoad,
            absl::StrCat("volatile float kept[", floats, "]; ",
                         "tile[threadIdx.x] = kept[blockIdx.x] == 42.0f + "
                         "blockIdx.x ? -1.0f : i < count ? Bend(x[i]) : 0.0f;"
                         "kept[blockIdx.x] = 42.0f + blockIdx.x;"))));
  }
}

}  // namespace
}  // namespace reprise::testing
