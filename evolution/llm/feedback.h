// What an evaluation tells a model: names and values, in a fixed order,
// rounded. Pure functions; thread-safe.
#ifndef REPRISE_EVOLUTION_LLM_FEEDBACK_H_
#define REPRISE_EVOLUTION_LLM_FEEDBACK_H_

#include <string>
#include <vector>

#include "reprise/v1/types.pb.h"

namespace reprise::evolution {

struct Fact {
  std::string name;
  std::string value;
};

// What the recorded launch moves and computes, and what the device can do: the
// two sides of its roofline. 0: not known.
struct KernelWork {
  double bytes = 0;  // distinct ones, read or written
  double flops = 0;
  v1::DeviceCeilings ceilings;
};

// Duration, achieved bandwidth and FLOP rate with their share of what the
// device can do, the time that the roofline allows, registers, spills, shared
// memory, occupancy, and of a wrong result how many elements differ and the
// first of them. Only what `outcome` knows; a variant may move other bytes than
// the recorded launch, so that rates are those of the work that had to be done.
std::vector<Fact> FactsOf(const v1::Outcome& outcome, const KernelWork& work);

// "compiled and right", "does not compile", ...
std::string DescribeOutcome(v1::OutcomeKind kind);

// Three significant digits; whole from 1,000 on.
std::string Rounded(double value);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_LLM_FEEDBACK_H_
