// The engine's rules on a device whose behaviour the machine code spells out
// (fake_device.h).
#include "replay/engine/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/base/file_util.h"
#include "replay/unit/blob.h"
#include "replay/unit/interval_set.h"
#include "tests/replay/engine/fake_device.h"

namespace reprise {
namespace {

using testing::HasSubstr;

class EvaluatorTest : public testing::Test {
 protected:
  void SetUp() override {
    store_ = *ChunkStore::Open({.directory = directory_.path()});
    v1::Unit unit;
    unit.mutable_kernel()->set_symbol("k");
    unit.mutable_provenance()->set_device("cpu");
    unit.mutable_launch()->mutable_grid()->set_x(4);
    unit.mutable_launch()->mutable_grid()->set_y(1);
    unit.mutable_launch()->mutable_grid()->set_z(1);
    unit.mutable_launch()->mutable_block()->set_x(64);
    unit.mutable_launch()->mutable_block()->set_y(1);
    unit.mutable_launch()->mutable_block()->set_z(1);
    unit.add_translation_units()->set_main_file("a.cu");
    unit.add_memory()->set_address(0x200000000000);
    manifest_ = unit;
    options_.stopping.maximum_pairs = 8;
  }
  absl::StatusOr<std::unique_ptr<Evaluator>> Create() {
    return Evaluator::Create(UnitReader("k-1", manifest_, store_), device_,
                             pool_, options_);
  }
  static v1::Variant Code(const std::string& text) {
    v1::Variant variant;
    variant.set_pipeline(text);
    return variant;
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("evaluator-test");
  std::shared_ptr<const ChunkStore> store_;
  v1::Unit manifest_;
  FakeDevice device_;
  FakePool pool_;
  EvaluatorOptions options_;
};

TEST_F(EvaluatorTest, FasterVariantIsMeasuredInterleavedAndVerifiedEveryTime) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EXPECT_TRUE((*evaluator)->baseline().matches_epilogue);
  EXPECT_TRUE((*evaluator)->baseline().deterministic);
  device_.log.clear();
  const v1::Outcome outcome = (*evaluator)->Evaluate(Code("time=50"));
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_KIND_OK) << outcome.diagnostics();
  EXPECT_NEAR(outcome.speedup().ratio(), 2.0, 0.05);
  ASSERT_EQ(outcome.baseline_ns_size(), outcome.variant_ns_size());
  // Every launch is restore, poison, launch, verify.
  ASSERT_EQ(device_.log.size() % 4, 0u);
  for (size_t i = 0; i < device_.log.size(); i += 4) {
    EXPECT_EQ(device_.log[i], "restore");
    EXPECT_EQ(device_.log[i + 1], "poison");
    EXPECT_EQ(device_.log[i + 3], "verify");
  }
  // ABBA after the verification launch: base, variant, variant, base, ...
  EXPECT_EQ(device_.log[6], "launch time=100");
  EXPECT_EQ(device_.log[10], "launch time=50");
  EXPECT_EQ(device_.log[14], "launch time=50");
  EXPECT_EQ(device_.log[18], "launch time=100");
}

TEST_F(EvaluatorTest, PoisonSeedsDoNotRepeat) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok());
  (*evaluator)->Evaluate(Code("time=50"));
  std::vector<uint64_t> seeds = device_.last->seeds;
  std::sort(seeds.begin(), seeds.end());
  EXPECT_EQ(std::adjacent_find(seeds.begin(), seeds.end()), seeds.end());
}

TEST_F(EvaluatorTest, EachFailureHasItsOwnOutcome) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok());
  EXPECT_EQ((*evaluator)->Evaluate(Code("syntax")).kind(),
            v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_EQ((*evaluator)->Evaluate(Code("hang")).kind(),
            v1::OUTCOME_KIND_TIMEOUT);
  EXPECT_EQ((*evaluator)->Evaluate(Code("fault")).kind(),
            v1::OUTCOME_KIND_DEVICE_FAULT);
  EXPECT_EQ((*evaluator)->Evaluate(Code("broken machine")).kind(),
            v1::OUTCOME_KIND_INFRASTRUCTURE);
  const v1::Outcome wrong = (*evaluator)->Evaluate(Code("wrong"));
  EXPECT_EQ(wrong.kind(), v1::OUTCOME_KIND_WRONG_RESULT);
  EXPECT_THAT(
      wrong.diagnostics(),
      HasSubstr("argument 0[3]: got 1, expected 2; 1 of 8 elements differ"));
  v1::Variant large;
  large.mutable_launch()->mutable_block()->set_x(2048);
  EXPECT_EQ((*evaluator)->Evaluate(large).kind(),
            v1::OUTCOME_KIND_INVALID_LAUNCH);
  // And a good one still works afterwards.
  EXPECT_EQ((*evaluator)->Evaluate(Code("time=50")).kind(),
            v1::OUTCOME_KIND_OK);
}

TEST_F(EvaluatorTest, VariantThatTurnsWrongWhileTimedIsWrong) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok());
  EXPECT_EQ((*evaluator)->Evaluate(Code("time=10 late wrong")).kind(),
            v1::OUTCOME_KIND_WRONG_RESULT);
}

TEST_F(EvaluatorTest, EqualMachineCodeIsNoSpeedup) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok());
  const v1::Outcome outcome = (*evaluator)->Evaluate(Code("time=100"));
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_KIND_OK);
  EXPECT_EQ(outcome.speedup().ratio(), 1);
  EXPECT_EQ(outcome.baseline_ns_size(), 0);
}

TEST_F(EvaluatorTest, ClearLoserIsDroppedEarly) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok());
  const v1::Outcome outcome = (*evaluator)->Evaluate(Code("time=400"));
  EXPECT_EQ(outcome.speedup().stopped_by(), "clear loser");
  EXPECT_EQ(outcome.baseline_ns_size(), 3);
}

TEST_F(EvaluatorTest, ToleranceIsLearnedFromReplaysThatVary) {
  pool_.baseline =
      "wrong";  // differs by 1 from the epilogue, and from replay to replay
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EXPECT_FALSE((*evaluator)->baseline().deterministic);
  EXPECT_EQ((*evaluator)->unit().manifest().memory(0).tolerance().absolute(),
            4);
}

TEST_F(EvaluatorTest, DeterministicBaselineThatMissesTheEpilogueIsRefused) {
  pool_.baseline = "first wrong";
  EXPECT_THAT(std::string(Create().status().message()),
              HasSubstr("varies only by 0 from replay to replay"));
}

TEST_F(EvaluatorTest, BaselineThatDoesNotRunIsRefusedWithTheReason) {
  pool_.baseline = "fault";
  EXPECT_THAT(std::string(Create().status().message()),
              HasSubstr("does not replay: OUTCOME_KIND_DEVICE_FAULT"));
  pool_.baseline = "syntax";
  EXPECT_THAT(std::string(Create().status().message()),
              HasSubstr("a.cu:3: expected ';'"));
}

TEST_F(EvaluatorTest, OtherDevicesOwnResultBecomesTheReference) {
  manifest_.mutable_provenance()->set_device("cuda:0");
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EXPECT_EQ(std::count(device_.log.begin(), device_.log.end(), "adopt"), 1);
}

TEST_F(EvaluatorTest, ApplicationsOwnCodeIsTheBaseline) {
  device_.application = "time=200";
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EXPECT_EQ((*evaluator)->baseline().kind, v1::BASELINE_KIND_APPLICATION_CODE);
  // The rebuilt IR is a variant like any other.
  const v1::Outcome outcome = (*evaluator)->Evaluate(Code("time=100"));
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_KIND_OK) << outcome.diagnostics();
  EXPECT_EQ(outcome.baseline(), v1::BASELINE_KIND_APPLICATION_CODE);
  EXPECT_NEAR(outcome.speedup().ratio(), 2.0, 0.05);
}

TEST_F(EvaluatorTest, IrThatMissesWhatTheApplicationComputesIsNotRemixed) {
  device_.application = "time=200";
  pool_.baseline = "wrong";
  EXPECT_TRUE(absl::IsFailedPrecondition(Create().status()));
  EXPECT_THAT(std::string(Create().status().message()),
              HasSubstr("cannot be remixed"));
  // It replays all the same.
  options_.remix = false;
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EXPECT_EQ((*evaluator)->Evaluate(Code("time=50")).kind(),
            v1::OUTCOME_KIND_COMPILE_ERROR);
}

// A sample like any other at an SM clock of `mhz`.
v1::ClockSample Clocks(uint32_t mhz, uint64_t reasons = 0) {
  v1::ClockSample sample;
  sample.set_sm_mhz(mhz);
  sample.set_memory_mhz(2619);
  sample.set_event_reasons(reasons);
  return sample;
}
constexpr uint64_t kThermalSlowdown = 0x20;
// Launches of Create with the options as they are.
constexpr int kLaunchesBefore = 4;

TEST_F(EvaluatorTest, OutcomeSaysUnderWhatItWasMeasured) {
  device_.mutable_facts().l2 = v1::L2_POLICY_WARM;
  device_.behaviour.clocks = [](int launch) {
    return Clocks(launch % 2 == 0 ? 1980 : 1965);
  };
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EXPECT_EQ((*evaluator)->baseline().clocks.samples(), 4u);
  const v1::Outcome outcome = (*evaluator)->Evaluate(Code("time=50"));
  const v1::Timing& timing = outcome.timing();
  EXPECT_EQ(timing.l2(), v1::L2_POLICY_WARM);
  EXPECT_EQ(timing.clocks().sm_mhz_low(), 1965u);
  EXPECT_EQ(timing.clocks().sm_mhz_high(), 1980u);
  EXPECT_EQ(timing.discarded_pairs_size(), 0);
  EXPECT_EQ(timing.variant_wall_ns_size(), outcome.variant_ns_size());
  EXPECT_GT(timing.variant_wall_ns(0), outcome.variant_ns(0));
}

TEST_F(EvaluatorTest, DeviceThatTellsNoClocksSaysWhy) {
  device_.mutable_facts().clocks_unknown = "it has none";
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  const v1::Outcome outcome = (*evaluator)->Evaluate(Code("time=50"));
  EXPECT_EQ(outcome.timing().clocks().unknown(), "it has none");
  EXPECT_EQ((*evaluator)->baseline().clocks.unknown(), "it has none");
}

TEST_F(EvaluatorTest, PairUnderASlowdownIsMeasuredAgain) {
  // The variant's launch of the second pair.
  device_.behaviour.clocks = [](int launch) {
    return Clocks(1980, launch == kLaunchesBefore + 4 ? kThermalSlowdown : 0);
  };
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  device_.log.clear();
  const v1::Outcome outcome = (*evaluator)->Evaluate(Code("time=50"));
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_KIND_OK) << outcome.diagnostics();
  ASSERT_EQ(outcome.timing().discarded_pairs_size(), 1);
  EXPECT_EQ(outcome.timing().discarded_pairs(0).reason(), "thermal slowdown");
  EXPECT_GT(outcome.timing().discarded_pairs(0).variant_ns(), 49e3);
  EXPECT_EQ(outcome.timing().doubtful_pairs(), 0u);
  // A launch to verify, the pairs that count, and the one that does not.
  EXPECT_EQ(device_.log.size() / 4,
            static_cast<size_t>(1 + 2 * outcome.baseline_ns_size() + 2));
  // In the order that the discarded pair had.
  EXPECT_EQ(device_.log[4 * 3 + 2], "launch time=50");
  EXPECT_EQ(device_.log[4 * 5 + 2], "launch time=50");
}

TEST_F(EvaluatorTest, PairAcrossAChangeOfTheClockIsMeasuredAgain) {
  device_.behaviour.clocks = [](int launch) {
    return Clocks(launch < kLaunchesBefore + 5 ? 1980 : 1410);
  };
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  const v1::Outcome outcome = (*evaluator)->Evaluate(Code("time=50"));
  ASSERT_EQ(outcome.timing().discarded_pairs_size(), 1);
  EXPECT_EQ(outcome.timing().discarded_pairs(0).reason(),
            "the SM clock moved between 1410 and 1980 MHz");
}

TEST_F(EvaluatorTest, DeviceThatStaysSlowedDownIsMeasuredAndItIsSaid) {
  options_.most_discarded_pairs = 4;
  device_.behaviour.clocks = [](int) { return Clocks(900, kThermalSlowdown); };
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  const v1::Outcome outcome = (*evaluator)->Evaluate(Code("time=50"));
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_KIND_OK) << outcome.diagnostics();
  EXPECT_EQ(outcome.timing().discarded_pairs_size(), 4);
  EXPECT_EQ(outcome.timing().doubtful_pairs(),
            static_cast<uint32_t>(outcome.baseline_ns_size()));
  EXPECT_EQ(outcome.timing().doubt(), "thermal slowdown");
}

TEST_F(EvaluatorTest, PairsAreNotMeasuredAgainWhenTheTimeIsOver) {
  // From the pair behind the fewest on.
  const int from = kLaunchesBefore + 1 + 2 * StoppingRule().minimum_pairs;
  device_.behaviour.clocks = [](int launch) {
    return Clocks(1980, launch > from ? kThermalSlowdown : 0);
  };
  device_.behaviour.noise = [n = 0]() mutable { return ++n % 2 ? 1.5 : 1.0; };
  options_.time_per_variant = absl::Milliseconds(200);
  device_.behaviour.pause = [](int launch) {
    return absl::Milliseconds(launch > from ? 101 : 0);
  };
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  const v1::Outcome outcome = (*evaluator)->Evaluate(Code("time=70"));
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_KIND_OK) << outcome.diagnostics();
  EXPECT_EQ(outcome.timing().discarded_pairs_size(), 1);
  EXPECT_EQ(outcome.baseline_ns_size(), StoppingRule().minimum_pairs);
}

TEST_F(EvaluatorTest, TimeThatDeviceTimeLeavesOutIsNoSpeedup) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok());
  const v1::Outcome outcome =
      (*evaluator)->Evaluate(Code("time=50 escapes=60"));
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_KIND_REJECTED);
  EXPECT_THAT(outcome.diagnostics(), HasSubstr("leaves out work"));
  EXPECT_EQ(outcome.baseline_ns_size(), 8);
  EXPECT_NEAR(outcome.timing().wall_excess_ns(), 60e3, 5e3);
  // What the host does to both is no work of the variant.
  EXPECT_EQ((*evaluator)->Evaluate(Code("time=50 escapes=4")).kind(),
            v1::OUTCOME_KIND_OK);
}

TEST_F(EvaluatorTest, WallClockThatWasNotReadAccusesNobody) {
  device_.behaviour.reads_wall_clock = false;
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok());
  const v1::Outcome outcome =
      (*evaluator)->Evaluate(Code("time=50 escapes=60"));
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_KIND_OK);
  EXPECT_EQ(outcome.timing().variant_wall_ns_size(), 0);
}

TEST_F(EvaluatorTest, FinalMeasurementLoadsBothCodesAnewForEachRound) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok());
  const int loads = device_.last->loads;
  FinalMeasurement measurement;
  const v1::Outcome outcome =
      (*evaluator)->Remeasure(Code("time=50"), measurement);
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_KIND_OK) << outcome.diagnostics();
  EXPECT_EQ(device_.last->loads - loads, 2 * measurement.rounds);
  // However sure the first pairs are.
  EXPECT_EQ(outcome.baseline_ns_size(), 60);
  EXPECT_EQ(outcome.speedup().pairs(), 60u);
  EXPECT_EQ(outcome.timing().baseline_wall_ns_size(), 60);
  EXPECT_EQ(outcome.speedup().stopped_by(), "fixed sample");
  EXPECT_NEAR(outcome.speedup().ratio(), 2, 0.05);
  EXPECT_LE(outcome.speedup().anew_low(), outcome.speedup().ratio());
  EXPECT_GE(outcome.speedup().anew_high(), outcome.speedup().ratio());
  EXPECT_LT(outcome.speedup().anew_high() - outcome.speedup().anew_low(), 0.2);
}

TEST_F(EvaluatorTest, FinalMeasurementMayHaveAnotherL2Policy) {
  device_.mutable_facts().l2 = v1::L2_POLICY_COLD;
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok());
  FinalMeasurement measurement;
  measurement.l2 = v1::L2_POLICY_WARM;
  const v1::Variant variant = Code("time=50 warm=25");
  const v1::Outcome warm = (*evaluator)->Remeasure(variant, measurement);
  EXPECT_EQ(warm.timing().l2(), v1::L2_POLICY_WARM);
  EXPECT_NEAR(warm.speedup().ratio(), 4, 0.1);
  // It holds for that measurement only.
  const v1::Outcome cold = (*evaluator)->Remeasure(variant, {});
  EXPECT_EQ(cold.timing().l2(), v1::L2_POLICY_COLD);
  EXPECT_NEAR(cold.speedup().ratio(), 2, 0.05);
}

TEST_F(EvaluatorTest, FinalMeasurementFindsWhatTurnsWrong) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok());
  EXPECT_EQ((*evaluator)->Remeasure(Code("time=10 late wrong"), {}).kind(),
            v1::OUTCOME_KIND_WRONG_RESULT);
}

TEST_F(EvaluatorTest, NewerGpuIsBuiltForItself) {
  const struct {
    const char *recorded, *device, *built;
  } cases[] = {{"sm_80", "sm_90", "sm_90"},
               {"sm_90a", "sm_90", "sm_90a"},
               {"sm_86", "sm_89", "sm_86"},
               {"sm_90", "x86-64", "sm_90"}};
  for (const auto& example : cases) {
    manifest_.set_architecture(example.recorded);
    device_.SetArchitecture(example.device);
    ASSERT_TRUE(Create().ok());
    EXPECT_EQ(pool_.architecture, example.built);
  }
}

TEST_F(EvaluatorTest, MachineCodeOnlyUnitReplays) {
  device_.application = "time=200";
  options_.remix = false;
  manifest_.clear_translation_units();
  EXPECT_TRUE(Create().ok());
}

TEST_F(EvaluatorTest, MachineCodeOnlyUnitCannotBeRemixed) {
  manifest_.clear_translation_units();
  EXPECT_THAT(std::string(Create().status().message()),
              HasSubstr("machine code only"));
}

// A unit whose kernel writes 8 MB; at 100 GB/s they take 80 us.
class WriteFloorTest : public EvaluatorTest {
 protected:
  void SetUp() override {
    EvaluatorTest::SetUp();
    constexpr uint64_t kBytes = 8000000;
    const auto store =
        *ChunkStore::Open({.directory = directory_.path(), .create = true});
    v1::MemoryRange* range = manifest_.mutable_memory(0);
    range->set_bytes(kBytes);
    IntervalSet writes;
    writes.Add(0, kBytes);
    *range->mutable_write_set() = *StoreIntervals(*store, writes);
    *range->mutable_read_before_write_set() =
        *StoreIntervals(*store, IntervalSet());
    device_.ceilings.emplace();
    device_.ceilings->set_l2_write_gb_s(100);
    device_.ceilings->set_dram_write_gb_s(50);
    device_.ceilings->set_l2_bytes(1 << 30);
  }
};

TEST_F(WriteFloorTest, ResultFasterThanMemoryCanBeWrittenIsRejected) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  const v1::Outcome outcome = (*evaluator)->Evaluate(Code("time=20"));
  EXPECT_EQ(outcome.kind(), v1::OUTCOME_KIND_REJECTED);
  EXPECT_THAT(outcome.diagnostics(), HasSubstr("faster than the device"));
  EXPECT_THAT(outcome.diagnostics(), HasSubstr("8000000 bytes"));
  EXPECT_THAT(outcome.diagnostics(), HasSubstr("expected at least 0.08 ms"));
  // The evidence stays.
  EXPECT_GT(outcome.variant_ns_size(), 0);
}

TEST_F(WriteFloorTest, ResultWithinTheCeilingsErrorIsBelieved) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  for (const char* code : {"time=95", "time=70"}) {
    EXPECT_EQ((*evaluator)->Evaluate(Code(code)).kind(), v1::OUTCOME_KIND_OK)
        << code;
  }
  EXPECT_EQ(device_.ceilings_measured, 1);
}

TEST_F(WriteFloorTest, BytesThatMayStayAreNoReason) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  v1::MemoryRange* range = manifest_.mutable_memory(0);
  *range->mutable_read_before_write_set() = range->write_set();
  auto reading = Create();
  ASSERT_TRUE(reading.ok()) << reading.status();
  EXPECT_EQ((*evaluator)->Evaluate(Code("time=20")).kind(),
            v1::OUTCOME_KIND_REJECTED);
  EXPECT_EQ((*reading)->Evaluate(Code("time=20")).kind(), v1::OUTCOME_KIND_OK);
}

TEST_F(WriteFloorTest, CeilingsThatTheBaselineBreaksJudgeNobody) {
  device_.ceilings->set_l2_write_gb_s(10);
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EXPECT_EQ((*evaluator)->Evaluate(Code("time=20")).kind(),
            v1::OUTCOME_KIND_OK);
}

TEST_F(WriteFloorTest, DeviceWithoutCeilingsJudgesNobody) {
  device_.ceilings.reset();
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EXPECT_EQ((*evaluator)->Evaluate(Code("time=20")).kind(),
            v1::OUTCOME_KIND_OK);
  EXPECT_TRUE(absl::IsUnimplemented((*evaluator)->Ceilings().status()));
}

TEST_F(EvaluatorTest, CountsBaselineAndVariantOnADeviceOfTheirOwn) {
  device_.counts = true;
  device_.application = "time=100 application";
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  device_.log.clear();
  const v1::Counters of_baseline = (*evaluator)->CountBaseline();
  ASSERT_EQ(of_baseline.values_size(), 1) << of_baseline.absent();
  EXPECT_EQ(of_baseline.values(0).value(), 20);
  const v1::Counters of_variant = (*evaluator)->Count(Code("time=50"));
  ASSERT_EQ(of_variant.values_size(), 1) << of_variant.absent();
  EXPECT_EQ(of_variant.values(0).value(), 7);
  EXPECT_THAT(device_.log, testing::IsEmpty());
}

TEST_F(EvaluatorTest, LaunchThatDoesNotRunIsNotCounted) {
  device_.counts = true;
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  const v1::Counters counters = (*evaluator)->Count(Code("fault"));
  EXPECT_EQ(counters.values_size(), 0);
  EXPECT_THAT(counters.absent(), HasSubstr("DEVICE_FAULT"));
}

TEST_F(EvaluatorTest, CountersThatAreAbsentSayWhy) {
  auto evaluator = Create();
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EXPECT_EQ((*evaluator)->CountBaseline().absent(),
            "the cpu device has no counters");
  EXPECT_THAT((*evaluator)->Count(Code("syntax")).absent(),
              HasSubstr("expected ';'"));
}

}  // namespace
}  // namespace reprise
