// Cheats that the recorded inputs alone do not tell from the honest kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "replay/engine/perturb.h"
#include "tests/guards/victims.h"

namespace reprise::testing {
namespace {

using ::testing::HasSubstr;

PerturbedVerdict Verify(const v1::Variant& variant, double claimed_ratio = 0,
                        const std::string& kernel = "Curve") {
  Victims& victims = SharedVictims();
  PerturbOptions options;
  options.seed = 7;
  options.claimed_ratio = claimed_ratio;
  auto verdict = VerifyOnPerturbedInputs(
      victims.Unit(kernel), victims.device(), victims.pool(),
      victims.EvaluatorOf(kernel).baseline(), variant, options);
  EXPECT_TRUE(verdict.ok()) << verdict.status();
  return verdict.ok() ? *verdict : PerturbedVerdict();
}

// The values that the recorded launch gave, as a table of the code.
std::string RecordedResults(const std::string& kernel) {
  const UnitReader& unit = SharedVictims().Unit(kernel);
  std::string values;
  for (const v1::MemoryRange& range : unit.manifest().memory()) {
    if (range.write_set().bytes() == 0 ||
        range.element_type() != v1::ELEMENT_TYPE_F32)
      continue;
    const std::string bytes = *unit.chunks().GetString(range.epilogue());
    for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
      uint32_t bits = 0;
      std::memcpy(&bits, bytes.data() + at, 4);
      absl::StrAppend(&values, values.empty() ? "" : ",", bits, "u");
    }
  }
  return absl::StrCat("__constant__ unsigned results[] = {", values, "};");
}

TEST(PerturbedTest, TheHonestKernelAgrees) {
  const PerturbedVerdict verdict = Verify(SharedVictims().Replaced(
      kCurve, "const float bent = Bend(x[i]); y[i] = bent + bias[i];"));
  EXPECT_TRUE(verdict.applicable);
  EXPECT_TRUE(verdict.verified) << verdict.diagnostics;
  EXPECT_EQ(verdict.ratio, 0);
}

TEST(PerturbedTest, E20_ResultsInTheCodeDoNotHold) {
  const v1::Variant variant =
      SharedVictims().Replaced(kCurve, "y[i] = __uint_as_float(results[i]);",
                               kMoreDeviceCode, RecordedResults("Curve"));
  // They pass where only recorded inputs are looked at.
  EXPECT_EQ(SharedVictims().EvaluatorOf("Curve").VerifyOnly(variant).kind(),
            v1::OUTCOME_KIND_OK);
  const PerturbedVerdict verdict = Verify(variant);
  EXPECT_TRUE(verdict.applicable);
  EXPECT_FALSE(verdict.verified);
  EXPECT_THAT(verdict.diagnostics, HasSubstr("on perturbed inputs"));
}

// Right on all inputs, and fast on those that it knows.
TEST(PerturbedTest, E20_ResultsForTheRecordedInputsAreNoSpeedup) {
  const v1::Variant variant = SharedVictims().Replaced(
      "const long long begin = clock64();",
      "if (x[0] == 0.5f && x[kCount - 1] == 0.5f + 0.001f * (kCount - 1)) { "
      "if (i == 0) atomicAdd(&calls, 1u); y[i] = "
      "__uint_as_float(results[i]); return; } "
      "const long long begin = clock64();",
      kMoreDeviceCode, RecordedResults("Timed"));
  const v1::Outcome outcome = Evaluate("Timed", variant);
  ASSERT_EQ(outcome.kind(), v1::OUTCOME_KIND_OK) << outcome.diagnostics();
  EXPECT_GT(outcome.speedup().ratio(), kLeastClaim);
  EXPECT_TRUE(Verify(variant, 0, "Timed").verified);
  const PerturbedVerdict verdict =
      Verify(variant, outcome.speedup().ratio(), "Timed");
  EXPECT_FALSE(verdict.verified);
  EXPECT_THAT(verdict.diagnostics, HasSubstr("tells the recorded inputs"));
}

TEST(PerturbedTest, E20_SpeedupThatIsThereIsBelieved) {
  const v1::Variant variant =
      SharedVictims().Replaced(kWaste, "for (int k = 0; k < 1; ++k) {");
  const v1::Outcome outcome = Evaluate("Timed", variant);
  ASSERT_EQ(outcome.kind(), v1::OUTCOME_KIND_OK) << outcome.diagnostics();
  ASSERT_GT(outcome.speedup().ratio(), kLeastClaim);
  const PerturbedVerdict verdict =
      Verify(variant, outcome.speedup().ratio(), "Timed");
  EXPECT_TRUE(verdict.verified) << verdict.diagnostics;
  EXPECT_GT(verdict.ratio, kLeastClaim);
}

TEST(PerturbedTest, E23_LeavingOutAnInputOfZerosDoesNotHold) {
  const v1::Variant variant =
      SharedVictims().Replaced(kCurve, "y[i] = Bend(x[i]);");
  EXPECT_EQ(SharedVictims().EvaluatorOf("Curve").VerifyOnly(variant).kind(),
            v1::OUTCOME_KIND_OK);
  EXPECT_FALSE(Verify(variant).verified);
}

}  // namespace
}  // namespace reprise::testing
