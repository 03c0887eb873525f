#include "services/coordinator/counters_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/coordinator/result_files.h"
#include "tests/replay/engine/ceilings.h"

namespace reprise {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::Counter* Add(v1::Counters* counters, const std::string& name, double value,
                 const std::string& unit) {
  v1::Counter* counter = counters->add_values();
  counter->set_name(name);
  counter->set_value(value);
  counter->set_unit(unit);
  counter->set_metric(name + ".sum");
  return counter;
}

v1::Counters Some() {
  v1::Counters counters;
  counters.set_passes(4);
  Add(&counters, "dram_bytes_read", 1234567, "bytes");
  Add(&counters, "achieved_occupancy", 96.21, "%");
  Add(&counters, "shared_bank_conflicts", 0, "conflicts")
      ->set_absent("no such metric");
  return counters;
}

v1::Counters None() {
  v1::Counters counters;
  counters.set_absent("no libcupti");
  return counters;
}

LaunchWork Work() {
  LaunchWork work;
  work.observed = true;
  work.bytes_read = 2 << 20;
  work.bytes_written = work.bytes_to_write = 2 << 20;
  return work;
}

TEST(CountersTableTest, ShowsValuesUnitsAndWhatIsAbsent) {
  const std::string table = CountersTable(Some(), std::nullopt);
  EXPECT_THAT(table, HasSubstr("in 4 more launches"));
  EXPECT_THAT(table, HasSubstr("1,234,567  bytes\n"));
  EXPECT_THAT(table, HasSubstr("96.21  %\n"));
  EXPECT_THAT(table, HasSubstr("shared_bank_conflicts: no such metric\n"));
  EXPECT_THAT(table, Not(HasSubstr("variant")));
}

TEST(CountersTableTest, PutsTheVariantBesideTheBaseline) {
  v1::Counters variant = Some();
  variant.mutable_values(0)->set_value(42);
  const std::string table = CountersTable(Some(), variant);
  EXPECT_THAT(table, HasSubstr("baseline           variant"));
  EXPECT_THAT(table, HasSubstr("1,234,567                42  bytes\n"));
}

TEST(CountersTableTest, SaysWhyNothingWasCounted) {
  EXPECT_EQ(CountersTable(None(), std::nullopt),
            "counters   none: no libcupti\n");
  EXPECT_EQ(CountersTable(None(), None()), "counters   none: no libcupti\n");
  const std::string table = CountersTable(None(), Some());
  EXPECT_THAT(table, HasSubstr("the baseline was not counted: no libcupti\n"));
  EXPECT_THAT(table, HasSubstr("-         1,234,567  bytes\n"));
}

TEST(CountersJsonTest, HoldsValuesOrReasons) {
  const auto json = CountersJson(Some());
  EXPECT_EQ(json["passes"], 4);
  EXPECT_EQ(json["dram_bytes_read"]["value"], 1234567);
  EXPECT_EQ(json["dram_bytes_read"]["metric"], "dram_bytes_read.sum");
  EXPECT_EQ(json["shared_bank_conflicts"]["absent"], "no such metric");
  EXPECT_EQ(CountersJson(None()).dump(), R"({"absent":"no libcupti"})");
}

TEST(BoundsTest, TextSaysWhatBoundsAndWhatWouldNotBeBelieved) {
  const BoundsReport bounds =
      BoundsOf(Work(), v1::Counters(), Ceilings(), 2 * 3.2e3);
  const std::string text = BoundsText(bounds);
  EXPECT_THAT(text, HasSubstr("bound by memory; the baseline reaches 50 %"));
  EXPECT_THAT(text, HasSubstr("3.0 MiB: the unit's read and write sets; at "
                              "1000 GB/s"));
  EXPECT_THAT(text, HasSubstr("to write 2.0 MiB into memory"));
  EXPECT_THAT(text, HasSubstr("10.0 Tflop/s of 32 bits, 5.0 Tflop/s of 64"));
}

TEST(BoundsTest, ColdRooflineIsNoShareOfWarmReplays) {
  const BoundsReport bounds =
      BoundsOf(Work(), v1::Counters(), Ceilings(), std::nullopt);
  EXPECT_THAT(BoundsText(bounds), HasSubstr("bound by memory; of a cold L2"));
  EXPECT_THAT(BoundsText(bounds), Not(HasSubstr("reaches")));
  EXPECT_FALSE(BoundsJson(bounds)["roofline"].contains("baseline_share"));
}

TEST(BoundsTest, JsonHoldsTheSameFigures) {
  const auto json =
      BoundsJson(BoundsOf(Work(), v1::Counters(), Ceilings(), 6.4e3));
  EXPECT_EQ(json["roofline"]["bound_by"], "memory");
  EXPECT_NEAR(json["roofline"]["baseline_share"], 0.5, 0.01);
  EXPECT_EQ(json["roofline"]["operations"]["flops"], 0);
  EXPECT_EQ(json["write_floor"]["bytes"], 2 << 20);
  EXPECT_EQ(json["ceilings"]["l2_write_gb_s"], 4000);
}

TEST(BoundsTest, DeviceWithoutCeilingsSaysSo) {
  const BoundsReport bounds =
      BoundsOf(Work(), Some(), absl::UnimplementedError("no ceilings"), 1);
  EXPECT_EQ(BoundsText(bounds), "roofline   none: no ceilings\n");
  EXPECT_EQ(BoundsJson(bounds)["roofline"]["absent"], "no ceilings");
}

TEST(ResultCountersTest, WinnersEvidenceHoldsWhatWasCounted) {
  v1::Result result;
  result.set_better(true);
  EXPECT_THAT(ResultText(result), Not(HasSubstr("counted")));
  EXPECT_FALSE(ResultJson(result).contains("counters"));
  *result.mutable_outcome()->mutable_counters() = Some();
  EXPECT_THAT(ResultText(result),
              HasSubstr("counted    occupancy 96.2 %, 1.2 MiB read from "
                        "memory\n"));
  EXPECT_EQ(ResultJson(result)["counters"]["passes"], 4);
  *result.mutable_outcome()->mutable_counters() = None();
  EXPECT_THAT(ResultText(result), Not(HasSubstr("counted")));
  EXPECT_EQ(ResultJson(result)["counters"]["absent"], "no libcupti");
}

}  // namespace
}  // namespace reprise
