// Does a variant do work that its device time leaves out?
//
// Device time comes from two events around the launch. The host's clock runs
// around the same launch until the whole device has nothing left to do, so it
// is longer, by what submitting and waiting cost: the excess. Whatever the
// kernel does within its events, the excess of a variant is that of the
// baseline beside it; work that escapes the events adds to it, every time.
//
// A variant escapes when its excess is above the baseline's of the same pair by
// more than the allowance in at least seven of eight pairs, of eight or more.
// The allowance is the largest of 10 us, a twentieth of the baseline's device
// time (the two clocks need not run equally fast), and six times the median
// deviation of the baseline's own excess from its median (what this host does
// to both). For code that hides nothing the difference is as often below zero
// as above, so even noise far above the allowance passes seven of eight only
// by an accident that six deviations leave no room for. What escapes for less
// than the allowance is not found.
//
// Pure functions; thread-safe. Durations in nanoseconds.
#ifndef REPRISE_REPLAY_ENGINE_WALL_CLOCK_CHECK_H_
#define REPRISE_REPLAY_ENGINE_WALL_CLOCK_CHECK_H_

#include <string>

#include "reprise/v1/types.pb.h"

namespace reprise {

struct WallClockCheck {
  double excess_ns = 0;   // median of the pairs' differences
  double allowed_ns = 0;  // the allowance
  // Every pair so far is above it, but they are too few to judge by.
  bool undecided = false;
  bool escapes = false;
};

// Of the outcome's pairs. Without wall times nothing is found.
WallClockCheck CheckWallClock(const v1::Outcome& outcome);

// What `check` found, for a person.
std::string DescribeEscape(const WallClockCheck& check);

}  // namespace reprise

#endif  // REPRISE_REPLAY_ENGINE_WALL_CLOCK_CHECK_H_
