// Bounds of a launch: which bytes count, which ceiling decides, what is said
// where something is not known.
#include "replay/engine/roofline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "replay/base/file_util.h"
#include "replay/unit/blob.h"
#include "replay/unit/interval_set.h"
#include "replay/unit/unit_store.h"
#include "tests/replay/engine/ceilings.h"

namespace reprise {
namespace {

using testing::HasSubstr;

LaunchWork Work(uint64_t read, uint64_t written, uint64_t flops) {
  LaunchWork work;
  work.observed = true;
  work.bytes_read = read;
  work.bytes_written = written;
  work.bytes_to_write = written;
  work.flops = flops;
  return work;
}

void Add(v1::Counters* counters, const std::string& name, double value) {
  v1::Counter* counter = counters->add_values();
  counter->set_name(name);
  counter->set_value(value);
}

class WorkTest : public testing::Test {
 protected:
  v1::Blob Set(const std::vector<Interval>& intervals) {
    IntervalSet set;
    for (const Interval& interval : intervals)
      set.Add(interval.begin, interval.end);
    return *StoreIntervals(*store_, set);
  }
  LaunchWork Work() {
    const auto work = WorkOf(UnitReader("u-1", unit_, store_));
    EXPECT_TRUE(work.ok()) << work.status();
    return *work;
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("roofline-test");
  std::shared_ptr<ChunkStore> store_ =
      *ChunkStore::Open({.directory = directory_.path()});
  v1::Unit unit_;
};

TEST_F(WorkTest, ObservedLaunchCountsEachByteOnce) {
  unit_.mutable_work()->set_flops(7);
  v1::MemoryRange* range = unit_.add_memory();
  range->set_bytes(1000);
  *range->mutable_read_set() = Set({{0, 300}, {500, 600}});
  *range->mutable_write_set() = Set({{200, 600}});
  // Read what was there: 0 to 250. Read back what it wrote itself: the rest.
  *range->mutable_read_before_write_set() = Set({{200, 250}});
  const LaunchWork work = Work();
  EXPECT_TRUE(work.observed);
  EXPECT_EQ(work.flops, 7u);
  EXPECT_EQ(work.bytes_read, 250u);
  EXPECT_EQ(work.bytes_written, 400u);
  // What it read first may be right already.
  EXPECT_EQ(work.bytes_to_write, 350u);
}

TEST_F(WorkTest, WithoutAnInstrumentedRunWhatDifferedHasToBeWritten) {
  v1::MemoryRange* range = unit_.add_memory();
  range->set_bytes(1000);
  *range->mutable_write_set() = Set({{10, 20}});
  const LaunchWork work = Work();
  EXPECT_FALSE(work.observed);
  EXPECT_EQ(work.bytes_read, 0u);
  EXPECT_EQ(work.bytes_to_write, 10u);
}

TEST(WriteFloorOfTest, SmallOutputsMayStayInTheCache) {
  const auto floor = WriteFloorOf(Work(0, 400000, 0), Ceilings());
  ASSERT_TRUE(floor.has_value());
  EXPECT_DOUBLE_EQ(floor->ns, 100);
  EXPECT_EQ(floor->ceiling, "the L2 cache");
}

TEST(WriteFloorOfTest, LargeOutputsHaveToReachMemoryButForTheCache) {
  const auto floor = WriteFloorOf(Work(0, 9000000, 0), Ceilings());
  ASSERT_TRUE(floor.has_value());
  EXPECT_DOUBLE_EQ(floor->ns, 10000);
  EXPECT_EQ(floor->ceiling, "memory");
}

TEST(WriteFloorOfTest, NothingToWriteOrNothingMeasuredIsNoFloor) {
  EXPECT_FALSE(WriteFloorOf(Work(100, 0, 100), Ceilings()).has_value());
  v1::DeviceCeilings no_l2 = Ceilings();
  no_l2.set_l2_write_gb_s(0);
  EXPECT_FALSE(WriteFloorOf(Work(0, 400000, 0), no_l2).has_value());
}

TEST(WriteFloorOfTest, OnlyWhatIsFasterByMoreThanTheErrorIsImpossible) {
  const WriteFloor floor = *WriteFloorOf(Work(0, 400000, 0), Ceilings());
  EXPECT_TRUE(IsFasterThanPossible(74, floor));
  EXPECT_FALSE(IsFasterThanPossible(76, floor));
  EXPECT_THAT(DescribeTooFast(50, floor),
              HasSubstr("400000 bytes have to reach the L2 cache"));
}

TEST(RooflineOfTest, WhateverTakesLongerBounds) {
  const Roofline memory =
      RooflineOf(Work(2000000, 1500000, 1000), v1::Counters(), Ceilings());
  EXPECT_TRUE(memory.by_memory());
  EXPECT_DOUBLE_EQ(memory.ns(), 2500);  // half a megabyte leaves the cache
  EXPECT_EQ(memory.memory_bytes, 2500000u);
  EXPECT_EQ(memory.memory_gb_s, 1000);
  const Roofline compute =
      RooflineOf(Work(2000000, 0, 50000000), v1::Counters(), Ceilings());
  EXPECT_FALSE(compute.by_memory());
  EXPECT_DOUBLE_EQ(compute.ns(), 5000);
  EXPECT_THAT(compute.flops_from, HasSubstr("instrumented run"));
}

TEST(RooflineOfTest, CountedOperationsKnowTheirPrecision) {
  v1::Counters counters;
  Add(&counters, "f32_flops", 1000);
  Add(&counters, "f64_flops", 50000000);
  const Roofline roofline =
      RooflineOf(Work(1000, 0, 999), counters, Ceilings());
  EXPECT_DOUBLE_EQ(roofline.compute_ns, 10000);
  EXPECT_EQ(roofline.gflops, 5000);
  EXPECT_EQ(roofline.flops, 50000000);
  EXPECT_EQ(roofline.flops_from, "counted by the device");
}

TEST(RooflineOfTest, CountedBytesStandInForTheInstrumentedRun) {
  LaunchWork unseen;
  unseen.bytes_to_write = 10;
  v1::Counters counters;
  Add(&counters, "dram_bytes_read", 3000);
  Add(&counters, "dram_bytes_written", 1000);
  const Roofline roofline = RooflineOf(unseen, counters, Ceilings());
  EXPECT_DOUBLE_EQ(roofline.memory_ns, 4);
  EXPECT_EQ(roofline.bytes_from, "counted by the device");
  EXPECT_THAT(roofline.no_compute, HasSubstr("no instrumented run"));
}

TEST(RooflineOfTest, NothingKnownSaysWhy) {
  const Roofline roofline =
      RooflineOf(LaunchWork(), v1::Counters(), Ceilings());
  EXPECT_FALSE(roofline.known());
  EXPECT_THAT(roofline.no_memory, HasSubstr("the device counted no bytes"));
  EXPECT_THAT(roofline.no_compute,
              HasSubstr("the device counted no operations"));
  const Roofline unmeasured =
      RooflineOf(Work(1, 1, 1), v1::Counters(), v1::DeviceCeilings());
  EXPECT_FALSE(unmeasured.known());
  EXPECT_THAT(unmeasured.no_memory, HasSubstr("not measured"));
}

TEST(CounterValueTest, AbsentCounterHasNoValue) {
  v1::Counters counters;
  Add(&counters, "dram_bytes_read", 3);
  counters.mutable_values(0)->set_absent("no such metric");
  EXPECT_FALSE(CounterValue(counters, "dram_bytes_read").has_value());
  EXPECT_FALSE(CounterValue(counters, "nothing").has_value());
}

}  // namespace
}  // namespace reprise
