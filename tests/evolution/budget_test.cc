// Budgets: counted exactly, never passed.
#include "evolution/llm/budget.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::evolution {
namespace {

using ::testing::HasSubstr;

constexpr ModelPrice kPrice = {2.5, 10, 0.25, 3.125};

TEST(CostOfTest, IsExactToTheLastDigit) {
  // 10 plain, 20 cached and 30 written tokens of the prompt, 7 of output.
  const ChatUsage usage = {60, 20, 7, 5, 30};
  EXPECT_EQ(CostOf(kPrice, usage),
            10 * 2'500'000 + 20 * 250'000 + 30 * 3'125'000 + 7 * 10'000'000);
  EXPECT_EQ(CostOf({2.5, 10, {}, {}}, usage), 60 * 2'500'000 + 7 * 10'000'000);
  EXPECT_EQ(CostOf({0.000001, 0, {}, {}}, {1'000'000, 0, 0}), 1'000'000);
}

TEST(CostOfTest, DoesNotOverflow) {
  const uint64_t most = 1'000'000'000'000;
  EXPECT_GT(CostOf({10'000, 10'000, {}, {}}, {most, 0, most}), 0);
}

TEST(CheckPriceTest, RefusesWhatCannotBeCounted) {
  EXPECT_TRUE(CheckPrice(kPrice).ok());
  EXPECT_TRUE(CheckPrice({0.0375, 0.15, {}, {}}).ok());
  EXPECT_FALSE(CheckPrice({-1, 0, {}, {}}).ok());
  EXPECT_FALSE(CheckPrice({0, 1e5, {}, {}}).ok());
  EXPECT_FALSE(CheckPrice({0.0000001, 0, {}, {}}).ok());
  EXPECT_FALSE(
      CheckPrice({std::numeric_limits<double>::quiet_NaN(), 0, {}, {}}).ok());
}

TEST(BudgetTest, StopsBeforeTheRequestThatCouldPassTheTokens) {
  auto budget = Budget::Create({100, std::nullopt}).value();
  auto first = budget->Reserve("m", kPrice, {30, 0, 30}, {});
  ASSERT_TRUE(first.ok());
  first->Settle({20, 0, 20});
  const auto second = budget->Reserve("m", kPrice, {31, 0, 30}, {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(second.status().message(),
            "the budget of 100 tokens has room for 60 more, and the next "
            "request may take 61");
  EXPECT_TRUE(budget->Reserve("m", kPrice, {30, 0, 30}, {}).ok());
}

TEST(BudgetTest, StopsBeforeTheRequestThatCouldPassTheMoney) {
  auto budget = Budget::Create({std::nullopt, 0.001}).value();
  // The dearest way: all of the prompt written to the cache.
  EXPECT_TRUE(budget->Reserve("m", kPrice, {320, 0, 0}, {}).ok());
  budget = Budget::Create({std::nullopt, 0.001}).value();
  EXPECT_THAT(budget->Reserve("m", kPrice, {321, 0, 0}, {}).status().message(),
              HasSubstr("the budget of 0.001000 has 0.001000 left"));
}

TEST(BudgetTest, CountsByModelAndGoesOnFromWhatWasSpent) {
  auto budget = Budget::Create({}).value();
  budget->Reserve("a", kPrice, {100, 0, 50}, {})->Settle({60, 20, 7, 5, 30});
  budget->Reserve("b", {}, {100, 0, 50}, {})->Release();
  {
    const auto lost = budget->Reserve("b", kPrice, {100, 0, 50}, {});
  }
  auto spent = budget->SpentByModel();
  EXPECT_EQ(spent["a"].tokens(), 67u);
  EXPECT_EQ(spent["a"].usage.cached_tokens, 20u);
  EXPECT_EQ(spent["a"].uncertain, 0u);
  EXPECT_EQ(spent["b"].requests, 2u);
  EXPECT_EQ(spent["b"].uncertain, 1u);
  EXPECT_EQ(spent["b"].tokens(), 150u);
  EXPECT_EQ(budget->Spent().money, spent["a"].money + spent["b"].money);
  const auto next = Budget::Create({217, std::nullopt}, spent).value();
  EXPECT_EQ(next->Spent().tokens(), 217u);
  EXPECT_FALSE(next->Reserve("a", {}, {1, 0, 0}, {}).ok());
}

TEST(BudgetTest, AMovedReservationCountsOnce) {
  auto budget = Budget::Create({}).value();
  auto first = budget->Reserve("m", {}, {10, 0, 0}, {});
  {
    Budget::Reservation second = *std::move(first);
    second.Settle({4, 0, 0});
    second.Settle({4, 0, 0});
  }
  EXPECT_EQ(budget->Spent().requests, 1u);
  EXPECT_EQ(budget->Spent().tokens(), 4u);
}

TEST(BudgetTest, UsageBeyondWhatWasReservedCountsAndStopsTheNext) {
  auto budget = Budget::Create({100, std::nullopt}).value();
  budget->Reserve("m", {}, {10, 0, 10}, {})->Settle({500, 0, 10});
  EXPECT_EQ(budget->Spent().tokens(), 510u);
  EXPECT_THAT(budget->Reserve("m", {}, {1, 0, 0}, {}).status().message(),
              HasSubstr("room for 0 more"));
}

TEST(BudgetTest, WaitsForRoomThatOthersMayGiveBack) {
  auto budget = Budget::Create({100, std::nullopt}).value();
  auto first = budget->Reserve("m", {}, {80, 0, 0}, {});
  std::atomic<bool> cancelled = true;
  EXPECT_EQ(
      budget->Reserve("m", {}, {80, 0, 0}, {absl::InfiniteFuture(), &cancelled})
          .status()
          .code(),
      absl::StatusCode::kCancelled);
  EXPECT_EQ(budget->Reserve("m", {}, {80, 0, 0}, {absl::Now(), nullptr})
                .status()
                .code(),
            absl::StatusCode::kDeadlineExceeded);
  std::thread other(
      [&] { EXPECT_TRUE(budget->Reserve("m", {}, {80, 0, 0}, {}).ok()); });
  first->Settle({10, 0, 0});
  other.join();
  EXPECT_EQ(budget->Spent().tokens(), 90u);
}

TEST(BudgetTest, ManyThreadsSpendExactlyAndNeverTooMuch) {
  constexpr uint64_t kLimit = 20'000;
  auto budget = Budget::Create({kLimit, std::nullopt}).value();
  std::atomic<uint64_t> settled = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 100'000; ++i) {
        auto room = budget->Reserve("m", kPrice, {40, 0, 10}, {});
        if (!room.ok()) {
          EXPECT_TRUE(absl::IsResourceExhausted(room.status()));
          return;
        }
        const ChatUsage usage = {(i * 7 + t) % 41, 0, i % 11};
        room->Settle(usage);
        settled += usage.prompt_tokens + usage.output_tokens;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget->Spent().tokens(), settled);
  EXPECT_LE(settled, kLimit);
  EXPECT_GT(settled + 50, kLimit);
}

}  // namespace
}  // namespace reprise::evolution
