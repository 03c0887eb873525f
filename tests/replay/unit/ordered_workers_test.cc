#include "replay/unit/ordered_workers.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise {
namespace {

TEST(OrderedWorkersTest, ConsumesInOrder) {
  constexpr size_t kItems = 5000;
  std::vector<size_t> squares(8);
  std::vector<size_t> seen;
  OrderedWork work;
  work.produce = [](size_t index, size_t) { return index < kItems; };
  work.work = [&](size_t index, size_t slot) {
    squares[slot] = index * index;
    return absl::OkStatus();
  };
  work.consume = [&](size_t, size_t slot) {
    seen.push_back(squares[slot]);
    return absl::OkStatus();
  };
  ASSERT_TRUE(RunOrdered(4, squares.size(), work).ok());
  ASSERT_EQ(seen.size(), kItems);
  for (size_t i = 0; i < kItems; ++i) ASSERT_EQ(seen[i], i * i);
}

TEST(OrderedWorkersTest, NeverHasMoreThanTheWindowInFlight) {
  std::atomic<int> in_flight{0};
  int most = 0;
  OrderedWork work;
  work.produce = [&](size_t index, size_t) {
    if (index == 1000) return false;
    most = std::max(most, ++in_flight);
    return true;
  };
  work.work = [](size_t, size_t) { return absl::OkStatus(); };
  work.consume = [&](size_t, size_t) {
    --in_flight;
    return absl::OkStatus();
  };
  ASSERT_TRUE(RunOrdered(3, 5, work).ok());
  EXPECT_EQ(most, 5);
  EXPECT_EQ(in_flight, 0);
}

// Two items wait for each other: this ends only if both are worked on at once.
TEST(OrderedWorkersTest, WorksOnSeveralItemsAtOnce) {
  std::mutex mutex;
  std::condition_variable arrived;
  int present = 0;
  OrderedWork work;
  work.produce = [](size_t index, size_t) { return index < 2; };
  work.work = [&](size_t, size_t) {
    std::unique_lock<std::mutex> lock(mutex);
    ++present;
    arrived.notify_all();
    arrived.wait(lock, [&] { return present == 2; });
    return absl::OkStatus();
  };
  EXPECT_TRUE(RunOrdered(2, 4, work).ok());
}

TEST(OrderedWorkersTest, OneItemStaysOnTheCallersThread) {
  std::thread::id worker;
  OrderedWork work;
  work.produce = [](size_t index, size_t) { return index < 1; };
  work.work = [&](size_t, size_t) {
    worker = std::this_thread::get_id();
    return absl::OkStatus();
  };
  ASSERT_TRUE(RunOrdered(8, 16, work).ok());
  EXPECT_EQ(worker, std::this_thread::get_id());
}

TEST(OrderedWorkersTest, NoItemsIsNoWork) {
  OrderedWork work;
  work.produce = [](size_t, size_t) { return false; };
  work.work = [](size_t, size_t) { return absl::InternalError("worked"); };
  EXPECT_TRUE(RunOrdered(2, 2, work).ok());
}

TEST(OrderedWorkersTest, ReturnsTheFirstErrorInItemOrder) {
  for (int round = 0; round < 200; ++round) {
    size_t consumed = 0;
    OrderedWork work;
    work.produce = [](size_t index, size_t) { return index < 100; };
    work.work = [](size_t index, size_t) {
      return index % 10 == 7 ? absl::InternalError(absl::StrCat("item ", index))
                             : absl::OkStatus();
    };
    work.consume = [&](size_t, size_t) {
      ++consumed;
      return absl::OkStatus();
    };
    ASSERT_EQ(RunOrdered(4, 8, work).message(), "item 7");
    ASSERT_EQ(consumed, 7u);
  }
}

TEST(OrderedWorkersTest, ProducerAndConsumerErrorsEndIt) {
  OrderedWork work;
  work.produce = [](size_t index, size_t) -> absl::StatusOr<bool> {
    if (index == 50) return absl::UnavailableError("source broke");
    return true;
  };
  work.work = [](size_t, size_t) { return absl::OkStatus(); };
  EXPECT_EQ(RunOrdered(2, 4, work).message(), "source broke");
  work.consume = [](size_t index, size_t) {
    return index == 20 ? absl::UnavailableError("sink broke")
                       : absl::OkStatus();
  };
  EXPECT_EQ(RunOrdered(2, 4, work).message(), "sink broke");
}

}  // namespace
}  // namespace reprise
