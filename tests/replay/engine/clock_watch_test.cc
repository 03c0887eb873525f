#include "replay/engine/clock_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using testing::HasSubstr;

v1::ClockSample At(uint32_t sm_mhz, uint64_t reasons = 0) {
  v1::ClockSample sample;
  sample.set_sm_mhz(sm_mhz);
  sample.set_event_reasons(reasons);
  return sample;
}

TEST(ClockWatchTest, SteadyClocksSpeakAgainstNothing) {
  ClockWatch watch;
  watch.Note(At(1980));
  watch.Note(std::nullopt);
  watch.Note(At(1935));
  EXPECT_EQ(watch.TakeObjection(), "");
}

TEST(ClockWatchTest, IdleOrChosenClocksAreNoSlowdown) {
  ClockWatch watch;
  watch.Note(At(1200, 0x1 | 0x2 | 0x10 | 0x100));
  EXPECT_EQ(watch.TakeObjection(), "");
}

TEST(ClockWatchTest, EverySlowdownIsNamedOnce) {
  ClockWatch watch;
  watch.Note(At(1200, 0x4));
  watch.Note(At(1200, 0x48));
  EXPECT_EQ(watch.TakeObjection(),
            "power cap, hardware slowdown, hardware thermal slowdown");
  EXPECT_EQ(watch.TakeObjection(), "");
  EXPECT_EQ(watch.report().event_reasons(), 0x4cu);
}

TEST(ClockWatchTest, AClockMovesAlsoSinceTheSampleBefore) {
  ClockWatch watch;
  watch.Note(At(345));
  EXPECT_EQ(watch.TakeObjection(), "");
  watch.Note(At(1980));
  EXPECT_EQ(watch.TakeObjection(),
            "the SM clock moved between 345 and 1980 MHz");
  watch.Note(At(1980));
  EXPECT_EQ(watch.TakeObjection(), "");
}

TEST(ClockWatchTest, ReportSpansAllSamples) {
  ClockWatch watch;
  v1::ClockSample warm = At(1980);
  warm.set_memory_mhz(2619);
  warm.set_temperature_c(70);
  warm.set_power_w(650.4);
  watch.Note(At(1965));
  watch.Note(warm);
  EXPECT_EQ(watch.report().samples(), 2u);
  EXPECT_EQ(ClocksText(watch.report()),
            "SM clock 1965 to 1980 MHz, memory 0 to 2619 MHz, 70 C, 650 W, not "
            "held down");
  watch.Note(At(1410, 0x20));
  EXPECT_THAT(ClocksText(watch.report()),
              HasSubstr("held down at times by thermal slowdown"));
}

TEST(ClockWatchTest, UnknownClocksAreSaidToBe) {
  EXPECT_EQ(ClocksText(ClockWatch("nobody looks").report()),
            "clocks unknown: nobody looks");
  ClockWatch watch;
  EXPECT_EQ(ClocksText(watch.report()),
            "clocks unknown: no launch came with them");
  v1::ClockSample unknown;
  unknown.set_unknown("no library");
  watch.Note(unknown);
  EXPECT_EQ(watch.TakeObjection(), "");
  EXPECT_EQ(ClocksText(watch.report()), "clocks unknown: no library");
}

}  // namespace
}  // namespace reprise
