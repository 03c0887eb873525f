// The replay core's rules, on a device that does what its code says.
#include "services/replay_server/replay_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/time/clock.h"
#include "tests/services/replay_server/fake_node.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Waits for what was asked for, in the order of the asking.
class Collector {
 public:
  EvaluationCallback Next() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const size_t index = asked_++;
    return [this, index](const Evaluated& evaluated) {
      const std::lock_guard<std::mutex> inner(mutex_);
      EXPECT_EQ(results_.count(index), 0u) << "called twice";
      results_[index] = evaluated;
      order_.push_back(index);
      changed_.notify_all();
    };
  }
  std::vector<Evaluated> Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return results_.size() == asked_; });
    std::vector<Evaluated> all;
    for (const auto& [index, evaluated] : results_) all.push_back(evaluated);
    return all;
  }
  std::vector<size_t> order() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return order_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t asked_ = 0;
  std::map<size_t, Evaluated> results_;
  std::vector<size_t> order_;
};

class ReplayCoreTest : public testing::Test {
 protected:
  void SetUp() override { unit_ = node_.AddUnit("a"); }
  // Open gates, so that the core can end.
  void TearDown() override {
    node_.gate.Open();
    node_.pool.gate.Open();
    node_.EndCore();
  }
  std::shared_ptr<ReplayCore::Participant> Ask(const std::string& unit,
                                               const std::string& code,
                                               int priority = 0) {
    EvaluationRequest request;
    request.unit_id = unit;
    request.variant = Code(code);
    request.priority = priority;
    auto asked = node_.core().Submit(request, results_.Next());
    EXPECT_TRUE(asked.ok()) << asked.status();
    return asked.ok() ? *asked : nullptr;
  }
  // The device is at a variant of this unit and stays there.
  void Occupy(const std::string& unit) {
    node_.gate.Shut();
    Ask(unit, "time=99");
    node_.gate.WaitForSomebody();
  }
  static v1::OutcomeKind KindOf(const Evaluated& evaluated) {
    return evaluated.outcome.kind();
  }

  FakeNode node_;
  Collector results_;
  std::string unit_;
};

TEST_F(ReplayCoreTest, JudgesVariantsOfALoadedUnit) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  for (const char* code : {"time=50", "wrong", "syntax", "hang"})
    Ask(unit_, code);
  const std::vector<Evaluated> results = results_.Wait();
  EXPECT_EQ(KindOf(results[0]), v1::OUTCOME_KIND_OK);
  EXPECT_NEAR(results[0].outcome.speedup().ratio(), 2, 0.1);
  EXPECT_EQ(KindOf(results[1]), v1::OUTCOME_KIND_WRONG_RESULT);
  EXPECT_EQ(KindOf(results[2]), v1::OUTCOME_KIND_COMPILE_ERROR);
  EXPECT_EQ(KindOf(results[3]), v1::OUTCOME_KIND_TIMEOUT);
  const v1::DeviceStatistics statistics = node_.core().Statistics();
  EXPECT_EQ(statistics.outcomes().at("OK"), 1u);
  EXPECT_EQ(statistics.outcomes().at("TIMEOUT"), 1u);
  for (const char* kind : {"OK", "WRONG_RESULT", "COMPILE_ERROR", "TIMEOUT"})
    EXPECT_EQ(statistics.stages().at(kind).outcome().count(), 1u) << kind;
  EXPECT_EQ(statistics.stages().at("COMPILE_ERROR").load().count(), 0u);
  EXPECT_GT(statistics.busy_s(), 0);
}

TEST_F(ReplayCoreTest, UnitsAreLoadedBeforeTheyAreEvaluated) {
  EvaluationRequest request;
  request.unit_id = unit_;
  EXPECT_EQ(node_.core().Submit(request, results_.Next()).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(node_.Load("nothing").code(), absl::StatusCode::kNotFound);
}

TEST_F(ReplayCoreTest, UnitThatDoesNotReplaySaysSoUntilItIsLoadedAgain) {
  node_.device->refused[unit_] = true;
  const absl::Status status = node_.Load(unit_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(node_.core().Units().size(), 1u);
  EXPECT_EQ(node_.core().Units()[0].state(), v1::UNIT_STATE_UNAVAILABLE);
  EXPECT_EQ(node_.core().Units()[0].reason(), "it does not replay here");
  EvaluationRequest request;
  request.unit_id = unit_;
  EXPECT_EQ(node_.core().Submit(request, results_.Next()).status(), status);
  node_.loaded_device().refused.clear();
  EXPECT_EQ(node_.Load(unit_), absl::OkStatus());
}

TEST_F(ReplayCoreTest, EqualEvaluationsAreMadeOnce) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  Occupy(unit_);
  Ask(unit_, "time=50");
  Ask(unit_, "time=50");
  node_.gate.Open();
  std::vector<Evaluated> results = results_.Wait();
  EXPECT_FALSE(results[1].known);
  EXPECT_EQ(results[1].outcome.variant_ns(0), results[2].outcome.variant_ns(0));
  Ask(unit_, "time=50");
  results = results_.Wait();
  EXPECT_TRUE(results[3].known);
  EXPECT_EQ(results[3].outcome.variant_ns(0), results[1].outcome.variant_ns(0));
  EvaluationRequest fresh;
  fresh.unit_id = unit_;
  fresh.variant = Code("time=50");
  fresh.fresh = true;
  ASSERT_TRUE(node_.core().Submit(fresh, results_.Next()).ok());
  EXPECT_FALSE(results_.Wait()[4].known);
  const v1::DeviceStatistics statistics = node_.core().Statistics();
  EXPECT_EQ(statistics.joined(), 1u);
  EXPECT_EQ(statistics.known(), 1u);
  EXPECT_EQ(statistics.outcomes().at("OK"), 3u);
}

TEST_F(ReplayCoreTest, OtherSamplingIsAnotherEvaluation) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  EvaluationRequest request;
  request.unit_id = unit_;
  request.variant = Code("time=50");
  request.sampling.set_verify_only(true);
  ASSERT_TRUE(node_.core().Submit(request, results_.Next()).ok());
  request.sampling.Clear();
  request.sampling.set_minimum_pairs(7);
  request.sampling.set_maximum_pairs(7);
  ASSERT_TRUE(node_.core().Submit(request, results_.Next()).ok());
  const std::vector<Evaluated> results = results_.Wait();
  EXPECT_EQ(results[0].outcome.variant_ns_size(), 0);
  EXPECT_EQ(results[1].outcome.variant_ns_size(), 7);
  request.sampling.set_maximum_pairs(4'000'000'000);
  EXPECT_EQ(node_.core().Submit(request, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
  request.sampling.set_maximum_pairs(7);
  request.sampling.set_minimum_pairs(8);
  EXPECT_EQ(node_.core().Submit(request, nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ReplayCoreTest, DeviceDoesNotWaitForASlowCompile) {
  node_.options.compile_threads = 2;
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  node_.pool.gate.Shut();
  Ask(unit_, "slow compile");
  node_.pool.gate.WaitForSomebody();
  const auto asked = node_.core().Submit(
      {.unit_id = unit_, .variant = Code("time=50")}, results_.Next());
  ASSERT_TRUE(asked.ok());
  while (results_.order().empty()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_THAT(results_.order(), ElementsAre(1));
  node_.pool.gate.Open();
  results_.Wait();
}

TEST_F(ReplayCoreTest, CompilersRunAheadOfTheDeviceByABoundedNumber) {
  node_.options.compile_threads = 2;
  node_.options.most_compiled = 3;
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  Occupy(unit_);
  const int before = node_.pool.compiles;
  for (int i = 1; i <= 20; ++i) Ask(unit_, absl::StrCat("time=", i));
  while (node_.core().Statistics().compiled() < 3)
    absl::SleepFor(absl::Milliseconds(1));
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(node_.pool.compiles - before, 3);
  node_.gate.Open();
  EXPECT_EQ(results_.Wait().size(), 21u);
}

TEST_F(ReplayCoreTest, LargerPrioritiesGoFirst) {
  node_.options.compile_threads = 1;
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  Occupy(unit_);
  Ask(unit_, "time=1");
  Ask(unit_, "time=2", 5);
  Ask(unit_, "time=3");
  Ask(unit_, "time=3", 9);  // takes part in the one before it
  while (node_.core().Statistics().compiled() < 3)
    absl::SleepFor(absl::Milliseconds(1));
  node_.gate.Open();
  results_.Wait();
  EXPECT_THAT(results_.order(), ElementsAre(0, 3, 4, 2, 1));
}

TEST_F(ReplayCoreTest, CancelledEvaluationsDoNotRun) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  Occupy(unit_);
  const auto first = Ask(unit_, "time=1");
  const auto second = Ask(unit_, "time=1");
  const auto third = Ask(unit_, "time=2");
  node_.core().Cancel(first);
  node_.core().Cancel(third);
  node_.core().Cancel(third);
  node_.gate.Open();
  const std::vector<Evaluated> results = results_.Wait();
  EXPECT_EQ(results[1].status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(KindOf(results[2]), v1::OUTCOME_KIND_OK);
  EXPECT_EQ(results[3].status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(node_.core().Statistics().outcomes().at("OK"), 2u);
  EXPECT_EQ(node_.core().Statistics().cancelled(), 2u);
}

// Compilers that waited for room hear that there is some.
TEST_F(ReplayCoreTest, RoomOfCancelledEvaluationsServesOthers) {
  node_.options.compile_threads = 2;
  node_.options.most_compiled = 2;
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  Occupy(unit_);
  const auto first = Ask(unit_, "time=1"), second = Ask(unit_, "time=2");
  while (node_.core().Statistics().compiled() < 2)
    absl::SleepFor(absl::Milliseconds(1));
  Ask(unit_, "time=3");
  absl::SleepFor(absl::Milliseconds(10));
  node_.core().Cancel(first);
  node_.core().Cancel(second);
  while (node_.core().Statistics().compiled() < 1)
    absl::SleepFor(absl::Milliseconds(1));
  node_.gate.Open();
  EXPECT_EQ(KindOf(results_.Wait()[3]), v1::OUTCOME_KIND_OK);
}

TEST_F(ReplayCoreTest, WhatIsCompiledForTooLongIsAnsweredInTime) {
  node_.UseClock();
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  node_.pool.gate.Shut();
  EvaluationRequest request;
  request.unit_id = unit_;
  request.variant = Code("slow compile");
  request.queue_timeout = absl::Seconds(10);
  ASSERT_TRUE(node_.core().Submit(request, results_.Next()).ok());
  node_.pool.gate.WaitForSomebody();
  node_.seconds = 11;
  node_.core().ExpireWaiting();
  EXPECT_EQ(results_.Wait()[0].status.code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ReplayCoreTest, TheDeviceTakesTheCodeThatWasCompiled) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  const int before = node_.pool.compiles;
  Ask(unit_, "time=50");
  results_.Wait();
  EXPECT_EQ(node_.pool.compiles, before + 1);
}

TEST_F(ReplayCoreTest, ALongSampleEndsWhenTheCoreIsAbandoned) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  node_.gate.Shut();
  EvaluationRequest request;
  request.unit_id = unit_;
  request.variant = Code("time=50");
  request.sampling.set_minimum_pairs(10'000);
  request.sampling.set_maximum_pairs(10'000);
  ASSERT_TRUE(node_.core().Submit(request, results_.Next()).ok());
  node_.gate.WaitForSomebody();
  node_.core().Abandon();
  node_.gate.Open();
  const Evaluated result = results_.Wait()[0];
  EXPECT_EQ(KindOf(result), v1::OUTCOME_KIND_INFRASTRUCTURE);
  EXPECT_THAT(result.outcome.diagnostics(), HasSubstr("given up"));
  EXPECT_LT(result.outcome.variant_ns_size(), 10);
}

TEST_F(ReplayCoreTest, LoadsThatDriveEachOtherOutBothSucceed) {
  node_.options.budget_bytes = 4096;
  const std::string b = node_.AddUnit("b");
  node_.core();  // made by one thread
  for (int turn = 0; turn < 20; ++turn) {
    std::thread other([&] { EXPECT_EQ(node_.Load(b), absl::OkStatus()); });
    EXPECT_EQ(node_.Load(unit_), absl::OkStatus());
    other.join();
  }
}

TEST_F(ReplayCoreTest, UnloadingEndsWhatWasToBeTriedOnceMore) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  node_.gate.Shut();
  Ask(unit_, "broken machine");
  node_.gate.WaitForSomebody();
  std::thread unloading(
      [&] { EXPECT_EQ(node_.core().UnloadUnit(unit_), absl::OkStatus()); });
  while (node_.core().Units()[0].state() != v1::UNIT_STATE_UNLOADING)
    absl::SleepFor(absl::Milliseconds(1));
  node_.gate.Open();
  unloading.join();
  results_.Wait();
  EXPECT_EQ(node_.Load(unit_), absl::OkStatus());
}

TEST_F(ReplayCoreTest, WaitingIsLimitedRunningIsNot) {
  node_.UseClock();
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  node_.gate.Shut();
  EvaluationRequest request;
  request.unit_id = unit_;
  request.queue_timeout = absl::Seconds(10);
  request.variant = Code("time=1");
  ASSERT_TRUE(node_.core().Submit(request, results_.Next()).ok());
  node_.gate.WaitForSomebody();
  request.variant = Code("time=2");
  ASSERT_TRUE(node_.core().Submit(request, results_.Next()).ok());
  node_.seconds = 11;
  node_.core().ExpireWaiting();
  EXPECT_THAT(results_.order(), ElementsAre(1));
  node_.gate.Open();
  const std::vector<Evaluated> results = results_.Wait();
  EXPECT_EQ(KindOf(results[0]), v1::OUTCOME_KIND_OK);
  EXPECT_EQ(results[1].status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(node_.core().Statistics().expired(), 1u);
}

TEST_F(ReplayCoreTest, UnitsMakeRoomAndComeBackWhenTheyAreWanted) {
  node_.options.budget_bytes = 8192;
  const std::string b = node_.AddUnit("b"), c = node_.AddUnit("c");
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  ASSERT_EQ(node_.Load(b), absl::OkStatus());
  Ask(unit_, "time=1");
  results_.Wait();
  ASSERT_EQ(node_.Load(c), absl::OkStatus());
  std::map<std::string, v1::UnitState> states;
  for (const v1::ServedUnit& unit : node_.core().Units())
    states[unit.unit_id()] = unit.state();
  EXPECT_EQ(states[unit_], v1::UNIT_STATE_READY);
  EXPECT_EQ(states[b], v1::UNIT_STATE_EVICTED);
  EXPECT_EQ(states[c], v1::UNIT_STATE_READY);
  EXPECT_EQ(node_.core().Statistics().resident_bytes(), 8192u);
  Ask(b, "time=1");
  EXPECT_EQ(KindOf(results_.Wait()[1]), v1::OUTCOME_KIND_OK);
  EXPECT_EQ(node_.core().Statistics().evictions(), 2u);
}

TEST_F(ReplayCoreTest, LeasesHoldUnitsUntilTheyEnd) {
  node_.UseClock();
  node_.options.budget_bytes = 4096;
  const std::string b = node_.AddUnit("b");
  ASSERT_EQ(node_.Load(unit_, 60), absl::OkStatus());
  const absl::Status refused = node_.Load(b);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("leases hold 4096"));
  node_.seconds = 59;
  EXPECT_EQ(node_.core().RenewLease(unit_, absl::Seconds(60)),
            absl::OkStatus());
  node_.seconds = 100;
  EXPECT_FALSE(node_.Load(b).ok());
  node_.seconds = 120;
  EXPECT_EQ(node_.Load(b), absl::OkStatus());
  EXPECT_EQ(node_.core().RenewLease(unit_, absl::Seconds(60)).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(node_.Load(b, 1e9).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ReplayCoreTest, WorkOfLessPriorityKeepsNoPlace) {
  node_.options.budget_bytes = 2 * 4096;
  node_.options.most_compiled = 4;
  const std::string busy = node_.AddUnit("busy"), next = node_.AddUnit("next");
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  ASSERT_EQ(node_.Load(busy), absl::OkStatus());
  Occupy(busy);
  Ask(unit_, "time=1", /*priority=*/-1);
  constexpr int kJobs = 200;
  for (int i = 0; i < kJobs; ++i)
    Ask(busy, absl::StrCat("time=", 100 + i), /*priority=*/1);
  while (node_.core().Statistics().compiled() < 4)
    absl::SleepFor(absl::Milliseconds(1));
  const int compiles = node_.pool.compiles;
  std::thread loading([&] { EXPECT_EQ(node_.Load(next), absl::OkStatus()); });
  while (node_.pool.compiles == compiles) absl::SleepFor(absl::Milliseconds(1));
  absl::SleepFor(absl::Milliseconds(20));  // what it will ask for is built
  node_.gate.Open();
  loading.join();
  EXPECT_LT(node_.core().Statistics().outcomes().at("OK"), kJobs / 2u);
  EXPECT_EQ(results_.Wait().size(), kJobs + 2u);
}

TEST_F(ReplayCoreTest, UnitsThatDoNotFitTogetherTakeTurns) {
  node_.options.budget_bytes = 4096;
  const std::string b = node_.AddUnit("b");
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  ASSERT_EQ(node_.Load(b), absl::OkStatus());
  Occupy(b);
  for (int i = 1; i <= 100; ++i) {
    Ask(unit_, absl::StrCat("time=", i));
    Ask(b, absl::StrCat("time=", i));
  }
  node_.gate.Open();
  for (const Evaluated& evaluated : results_.Wait())
    EXPECT_EQ(KindOf(evaluated), v1::OUTCOME_KIND_OK) << evaluated.status;
  // Not one for each evaluation.
  EXPECT_LT(node_.core().Statistics().evictions(), 12u);
}

TEST_F(ReplayCoreTest, ServesAgainAfterAFault) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  Ask(unit_, "fault");
  Ask(unit_, "time=50");
  const std::vector<Evaluated> results = results_.Wait();
  EXPECT_EQ(KindOf(results[0]), v1::OUTCOME_KIND_DEVICE_FAULT);
  EXPECT_EQ(KindOf(results[1]), v1::OUTCOME_KIND_OK);
  while (node_.core().Statistics().recoveries() < 1)
    absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(node_.core().Describe().serving());
}

TEST_F(ReplayCoreTest, DoesNotServeUntilTheUnmodifiedKernelRuns) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  std::atomic<bool> told = false;
  node_.gate.Shut();
  EvaluationRequest request;
  request.unit_id = unit_;
  request.variant = Code("fault");
  ASSERT_TRUE(node_.core()
                  .Submit(request,
                          [&](const Evaluated&) {
                            // The next launch is the probe's.
                            node_.gate.Shut();
                            told = true;
                          })
                  .ok());
  node_.gate.Open();
  while (!told) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(node_.core().Describe().serving());
  EXPECT_THAT(node_.core().Describe().reason(), HasSubstr("recovers"));
  node_.gate.Open();
  while (!node_.core().Describe().serving())
    absl::SleepFor(absl::Milliseconds(1));
}

TEST_F(ReplayCoreTest, InfrastructureIsTriedOnceMoreAndNotKept) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  Ask(unit_, "broken machine");
  EXPECT_EQ(KindOf(results_.Wait()[0]), v1::OUTCOME_KIND_INFRASTRUCTURE);
  while (node_.core().Statistics().recoveries() < 2)
    absl::SleepFor(absl::Milliseconds(1));
  Ask(unit_, "broken machine");
  EXPECT_FALSE(results_.Wait()[1].known);
}

TEST_F(ReplayCoreTest, UnloadingEndsWhatWaits) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  Occupy(unit_);
  Ask(unit_, "time=1");
  std::thread unloading(
      [&] { EXPECT_EQ(node_.core().UnloadUnit(unit_), absl::OkStatus()); });
  while (results_.order().empty()) absl::SleepFor(absl::Milliseconds(1));
  node_.gate.Open();
  unloading.join();
  const std::vector<Evaluated> results = results_.Wait();
  EXPECT_EQ(KindOf(results[0]), v1::OUTCOME_KIND_OK);
  EXPECT_EQ(results[1].status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(node_.core().Units().empty());
  EXPECT_EQ(node_.core().Statistics().resident_bytes(), 0u);
  EXPECT_EQ(node_.core().UnloadUnit(unit_).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(node_.Load(unit_), absl::OkStatus());
}

TEST_F(ReplayCoreTest, DrainingHandsBackWhatHasNotBegun) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  Occupy(unit_);
  Ask(unit_, "time=1");
  Ask(unit_, "time=2");
  node_.core().Drain();
  EXPECT_EQ(node_.core()
                .Submit({.unit_id = unit_, .variant = Code("x")}, nullptr)
                .status()
                .code(),
            absl::StatusCode::kUnavailable);
  EXPECT_FALSE(node_.core().Describe().serving());
  node_.gate.Open();
  const std::vector<Evaluated> results = results_.Wait();
  EXPECT_EQ(KindOf(results[0]), v1::OUTCOME_KIND_OK);
  EXPECT_EQ(results[1].status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(results[2].status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(ReplayCoreTest, WhatIsNotWorthRunningIsCompiledOnly) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  EvaluationRequest request;
  request.unit_id = unit_;
  request.variant = Code("time=1");
  request.worth_running = [](const v1::CompileReply& code) {
    return code.code() != "time=1";
  };
  ASSERT_TRUE(node_.core().Submit(request, results_.Next()).ok());
  EXPECT_EQ(results_.Wait()[0].status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(node_.core().Statistics().outcomes_size(), 0);
}

TEST_F(ReplayCoreTest, OtherTermsNeedAnotherLoad) {
  ASSERT_EQ(node_.Load(unit_), absl::OkStatus());
  v1::LoadUnitRequest request;
  request.set_unit_id(unit_);
  request.mutable_tolerance()->set_absolute(1e-6);
  EXPECT_EQ(node_.core().LoadUnit(request).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(node_.core().UnloadUnit(unit_), absl::OkStatus());
  EXPECT_TRUE(node_.core().LoadUnit(request).ok());
}

// Whatever happens to them, everybody hears once.
TEST_F(ReplayCoreTest, EverybodyIsAnsweredOnceWhateverHappens) {
  node_.options.compile_threads = 3;
  node_.options.budget_bytes = 8192;
  const std::vector<std::string> units = {unit_, node_.AddUnit("b"),
                                          node_.AddUnit("c")};
  for (const std::string& unit : units)
    ASSERT_EQ(node_.Load(unit), absl::OkStatus());
  std::vector<std::thread> clients;
  std::atomic<int> asked = 0, answered = 0;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&, client] {
      std::minstd_rand random(static_cast<unsigned>(client + 1));
      for (int i = 0; i < 300; ++i) {
        static constexpr const char* kCodes[] = {"time=", "wrong", "fault",
                                                 "syntax", "time=1"};
        EvaluationRequest request;
        request.unit_id = units[random() % units.size()];
        request.variant =
            Code(absl::StrCat(kCodes[random() % 5], random() % 7));
        request.priority = static_cast<int>(random() % 3);
        request.fresh = random() % 4 == 0;
        if (random() % 10 == 0) request.queue_timeout = absl::Milliseconds(1);
        const auto participant = node_.core().Submit(
            request, [&answered](const Evaluated&) { ++answered; });
        if (!participant.ok()) continue;
        ++asked;
        if (random() % 5 == 0) node_.core().Cancel(*participant);
        if (random() % 100 == 0) {
          const std::string& unit = units[random() % units.size()];
          node_.core().UnloadUnit(unit).IgnoreError();
          node_.Load(unit).IgnoreError();
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  while (answered < asked) absl::SleepFor(absl::Milliseconds(1));
  node_.EndCore();
  EXPECT_EQ(answered, asked);
  EXPECT_GT(asked, 300);
}

}  // namespace
}  // namespace reprise
