// The engine's rules on a device whose behaviour the machine code spells out:
// "time=50 wrong" and so on.
#include "replay/engine/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "replay/base/file_util.h"
#include "replay/base/sha256.h"

namespace reprise {
namespace {

using testing::HasSubstr;

struct FakeKernel : LoadedKernel {
  std::string code;
};

// Counts what the engine does and answers as the code says.
class FakeResident : public ResidentUnit {
 public:
  FakeResident(std::vector<std::string>* log, std::string application)
      : log_(log), application_(std::move(application)) {}

  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(
      const v1::CompileReply& code, const std::string&) override {
    auto kernel = std::make_unique<FakeKernel>();
    kernel->code = code.code();
    return kernel;
  }
  absl::StatusOr<std::unique_ptr<LoadedKernel>> LoadApplicationKernel()
      override {
    if (application_.empty()) return ResidentUnit::LoadApplicationKernel();
    auto kernel = std::make_unique<FakeKernel>();
    kernel->code = application_;
    return kernel;
  }
  absl::Status Restore() override {
    log_->push_back("restore");
    return absl::OkStatus();
  }
  absl::Status Poison(uint64_t seed) override {
    log_->push_back("poison");
    seeds.push_back(seed);
    return absl::OkStatus();
  }
  absl::StatusOr<LaunchReport> Launch(LoadedKernel& kernel,
                                      const LaunchOptions&) override {
    const std::string& code = static_cast<FakeKernel&>(kernel).code;
    log_->push_back(absl::StrCat("launch ", code));
    last_ = code;
    LaunchReport report;
    report.kind = absl::StrContains(code, "hang") ? v1::OUTCOME_KIND_TIMEOUT
                  : absl::StrContains(code, "fault")
                      ? v1::OUTCOME_KIND_DEVICE_FAULT
                      : v1::OUTCOME_KIND_OK;
    int microseconds = 100;
    const size_t at = code.find("time=");
    if (at != std::string::npos)
      microseconds = std::atoi(code.c_str() + at + 5);
    ++launches_;
    report.device_time = absl::Microseconds(microseconds) +
                         absl::Nanoseconds(launches_ % 7 * 100);
    if (absl::StrContains(code, "broken machine"))
      return absl::UnavailableError("the executor is gone");
    return report;
  }
  absl::StatusOr<Verdict> Verify(const v1::Tolerance&) override {
    log_->push_back("verify");
    Verdict verdict;
    verdict.equal = true;
    v1::RangeErrors range;
    range.set_name("argument 0");
    range.set_address(0x200000000000);
    range.set_element_type(v1::ELEMENT_TYPE_F32);
    range.set_compared_elements(8);
    // "late wrong" computes the right thing the first time only.
    const bool late = absl::StrContains(last_, "late wrong") && ++late_ > 2;
    const bool first = absl::StrContains(last_, "first wrong") && late_++ == 0;
    const bool timed =
        absl::StrContains(last_, "late") || absl::StrContains(last_, "first");
    if (late || first || (absl::StrContains(last_, "wrong") && !timed)) {
      verdict.equal = false;
      range.set_wrong_elements(1);
      range.set_first_wrong_element(3);
      range.set_got("1");
      range.set_expected("2");
      range.set_max_absolute(1);
    }
    verdict.ranges.push_back(range);
    return verdict;
  }
  absl::Status AdoptReference() override {
    log_->push_back("adopt");
    return absl::OkStatus();
  }

  std::vector<uint64_t> seeds;

 private:
  std::vector<std::string>* log_;
  const std::string application_;
  std::string last_;
  int launches_ = 0;
  int late_ = 0;
};

class FakeDevice : public Device {
 public:
  FakeDevice() {
    facts_.kind = "cpu";
    facts_.name = "fake";
  }
  const DeviceFacts& facts() const override { return facts_; }
  void SetArchitecture(const std::string& name) { facts_.architecture = name; }
  v1::CompileTarget compile_target() const override {
    return v1::COMPILE_TARGET_CPU;
  }
  absl::StatusOr<std::unique_ptr<ResidentUnit>> Load(
      const UnitReader&, const LoadOptions&) override {
    auto resident = std::make_unique<FakeResident>(&log, application);
    last = resident.get();
    return resident;
  }
  std::vector<std::string> log;
  std::string application;  // machine code of its own; empty: not here
  FakeResident* last = nullptr;

 private:
  DeviceFacts facts_;
};

// The variant's pipeline text is its machine code.
class FakePool : public CompilePool {
 public:
  absl::StatusOr<v1::CompileReply> Compile(
      const std::shared_ptr<const v1::CompileInput>& input,
      const v1::Variant& variant, v1::CompileTarget) override {
    architecture = input->architecture();
    v1::CompileReply reply;
    const std::string text =
        variant.pipeline().empty() ? baseline : variant.pipeline();
    reply.set_kind(absl::StrContains(text, "syntax")
                       ? v1::OUTCOME_KIND_COMPILE_ERROR
                       : v1::OUTCOME_KIND_OK);
    reply.set_diagnostics(
        absl::StrContains(text, "syntax") ? "a.cu:3: expected ';'" : "");
    reply.set_code(text);
    reply.set_code_sha256(Sha256(text));
    reply.add_kernels()->set_symbol("k");
    return reply;
  }
  Statistics statistics() const override { return {}; }
  std::string baseline = "time=100";
  std::string architecture;  // last built for
};

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

}  // namespace
}  // namespace reprise
