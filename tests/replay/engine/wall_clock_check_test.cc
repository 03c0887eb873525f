#include "replay/engine/wall_clock_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace reprise {
namespace {

// A host: each launch costs 40 us, a little that varies, and now and then what
// some other process takes.
class Host {
 public:
  explicit Host(double jitter_us, uint64_t seed = 1)
      : random_(seed), jitter_(jitter_us) {}

  double ExcessNs() {
    const bool preempted = random_() % 10 == 0;
    return 1e3 * (40 + jitter_(random_) + (preempted ? 800 : 0));
  }

  // `pairs` of a variant that hides `hidden_us` of its work.
  v1::Outcome Measure(int pairs, double baseline_us, double variant_us,
                      double hidden_us) {
    v1::Outcome outcome;
    for (int i = 0; i < pairs; ++i) {
      outcome.add_baseline_ns(1e3 * baseline_us);
      outcome.add_variant_ns(1e3 * variant_us);
      v1::Timing* timing = outcome.mutable_timing();
      timing->add_baseline_wall_ns(1e3 * baseline_us + ExcessNs());
      timing->add_variant_wall_ns(1e3 * (variant_us + hidden_us) + ExcessNs());
    }
    return outcome;
  }

 private:
  std::mt19937_64 random_;
  struct Jitter {
    explicit Jitter(double us) : us(us) {}
    double operator()(std::mt19937_64& random) {
      return us * std::exponential_distribution<double>(1)(random);
    }
    double us;
  } jitter_;
};

TEST(WallClockCheckTest, HonestCodeNeverTripsHoweverNoisyTheHost) {
  for (const double jitter_us : {0.5, 5.0, 50.0, 1000.0}) {
    Host host(jitter_us);
    for (int outcome = 0; outcome < 5000; ++outcome) {
      const int pairs = 3 + outcome % 40;
      const double variant_us = outcome % 3 == 0 ? 10 : 100;
      ASSERT_FALSE(
          CheckWallClock(host.Measure(pairs, 100, variant_us, 0)).escapes)
          << jitter_us << " us, " << pairs << " pairs";
    }
  }
}

TEST(WallClockCheckTest, HiddenWorkIsFoundThroughPreemptedLaunches) {
  Host host(1);
  for (int outcome = 0; outcome < 200; ++outcome) {
    const WallClockCheck check =
        CheckWallClock(host.Measure(40, 100, 20, 1000));
    ASSERT_TRUE(check.escapes);
    EXPECT_NEAR(check.excess_ns, 1000e3, 20e3);
  }
}

TEST(WallClockCheckTest, AFewPairsSuspectAndDoNotJudge) {
  Host host(0);
  const v1::Outcome outcome = Host(0, 3).Measure(3, 100, 20, 5000);
  EXPECT_TRUE(CheckWallClock(outcome).undecided);
  EXPECT_FALSE(CheckWallClock(outcome).escapes);
  EXPECT_FALSE(CheckWallClock(host.Measure(3, 100, 100, 0)).undecided);
}

TEST(WallClockCheckTest, AllowanceGrowsWithTheBaseline) {
  Host host(0.5);
  // 50 us of 10 ms.
  EXPECT_FALSE(CheckWallClock(host.Measure(20, 10e3, 9e3, 50)).escapes);
  EXPECT_GE(CheckWallClock(host.Measure(20, 10e3, 9e3, 50)).allowed_ns, 500e3);
}

TEST(WallClockCheckTest, WithoutWallTimesNothingIsFound) {
  v1::Outcome outcome = Host(0).Measure(20, 100, 20, 5000);
  outcome.mutable_timing()->clear_baseline_wall_ns();
  EXPECT_FALSE(CheckWallClock(outcome).escapes);
  EXPECT_EQ(CheckWallClock(v1::Outcome()).allowed_ns, 0);
}

}  // namespace
}  // namespace reprise
