// The small parts of the replay server: queue, residency, histogram, cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/replay_server/histogram.h"
#include "services/replay_server/job_queue.h"
#include "services/replay_server/outcome_cache.h"
#include "services/replay_server/residency.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct TestJob {
  std::string unit;
  int priority;
  uint64_t sequence;
};

std::shared_ptr<TestJob> NewJob(const std::string& unit, int priority) {
  static uint64_t sequence = 0;
  return std::make_shared<TestJob>(TestJob{unit, priority, ++sequence});
}

TEST(JobQueueTest, PrefersAUnitWithinAPriorityOnly) {
  JobQueue<TestJob> queue;
  const auto a = NewJob("a", 0), b = NewJob("b", 0), c = NewJob("a", 1);
  for (const auto& job : {a, b, c}) queue.Push(job);
  EXPECT_EQ(queue.CountOf("a"), 2u);
  EXPECT_EQ(queue.PopPreferring("b"), c);
  EXPECT_EQ(queue.PopPreferring("b"), b);
  EXPECT_EQ(queue.PopPreferring("b"), a);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.CountOf("a"), 0u);
}

TEST(JobQueueTest, RemovesByUnit) {
  JobQueue<TestJob> queue;
  const auto a = NewJob("a", 0), b = NewJob("b", 0);
  queue.Push(a);
  queue.Push(b);
  EXPECT_THAT(queue.RemoveUnit("a"), ElementsAre(a));
  EXPECT_FALSE(queue.Remove(*a));
  EXPECT_EQ(queue.Pop(), b);
}

TEST(ResidencyTest, EvictsAsFewAsPossibleOfTheOldest) {
  const std::vector<Residency> loaded = {
      {"new", 10, 9, false}, {"old", 10, 1, false}, {"held", 10, 0, true}};
  EXPECT_THAT(*ChooseToEvict(loaded, 5, 0), IsEmpty());
  EXPECT_THAT(*ChooseToEvict(loaded, 5, 35), IsEmpty());
  EXPECT_THAT(*ChooseToEvict(loaded, 5, 34), ElementsAre("old"));
  EXPECT_THAT(*ChooseToEvict(loaded, 20, 30), ElementsAre("old", "new"));
  EXPECT_EQ(ChooseToEvict(loaded, 21, 30).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ChooseToEvict({}, 31, 30).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(HistogramTest, QuantilesAreWithinAFifth) {
  Histogram histogram;
  EXPECT_EQ(QuantileMs(histogram.ToProto(), 0.5), 0);
  for (int i = 1; i <= 1000; ++i) histogram.Add(i);
  const v1::Histogram proto = histogram.ToProto();
  EXPECT_EQ(proto.count(), 1000u);
  EXPECT_EQ(proto.sum_ms(), 500500);
  EXPECT_NEAR(QuantileMs(proto, 0.5), 500, 125);
  EXPECT_NEAR(QuantileMs(proto, 0.99), 990, 240);
  histogram.Add(1e9);
  EXPECT_GT(QuantileMs(histogram.ToProto(), 1), 9e4);
}

TEST(OutcomeCacheTest, KeepsTheMostRecentlyUsed) {
  OutcomeCache cache(2);
  v1::Outcome outcome;
  for (const char* key : {"a", "b"}) {
    outcome.set_diagnostics(key);
    cache.Insert(key, outcome);
  }
  EXPECT_EQ(cache.Find("a")->diagnostics(), "a");
  cache.Insert("c", outcome);
  EXPECT_FALSE(cache.Find("b").has_value());
  EXPECT_TRUE(cache.Find("a").has_value());
  outcome.set_diagnostics("again");
  cache.Insert("a", outcome);
  EXPECT_EQ(cache.Find("a")->diagnostics(), "again");
  EXPECT_EQ(cache.size(), 2u);
}

TEST(OutcomeCacheTest, KeyHoldsAllThatTheOutcomeDependsOn) {
  v1::LoadUnitRequest load;
  v1::Variant variant;
  v1::Sampling sampling;
  DeviceFacts device;
  device.kind = "cuda:0";
  const auto key = [&] {
    return OutcomeKey("unit", load, variant, sampling, device);
  };
  std::set<std::string> keys = {key()};
  EXPECT_EQ(key(), *keys.begin());
  const auto differs = [&] { return keys.insert(key()).second; };
  variant.set_pipeline("default<O1>");
  EXPECT_TRUE(differs());
  sampling.set_minimum_pairs(3);
  EXPECT_TRUE(differs());
  load.mutable_tolerance()->set_absolute(0);
  EXPECT_TRUE(differs());
  load.add_frontends("nvrtc");
  EXPECT_TRUE(differs());
  device.uuid = "GPU-1";
  EXPECT_TRUE(differs());
  device.driver = "13.0";
  EXPECT_TRUE(differs());
  device.l2 = v1::L2_POLICY_WARM;
  EXPECT_TRUE(differs());
}

}  // namespace
}  // namespace reprise
