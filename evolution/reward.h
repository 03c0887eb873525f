// What an evaluation is worth to whoever learns what to try next. Pure
// functions; thread-safe.
//
// FSR rewards a kernel by R = (T_base / T_current) * (1 - 0.1 * compile_fail -
// 0.3 * func_fail), which says nothing of what never ran. Here a variant that
// computes the same gets that, where it took a repair to get there with
// compile_fail = 1, and every failure a fixed score below the least of those,
// the higher the further it came (the order of stages is that of KernelBench:
// compiles, is right, is fast):
//
//   computes the same      max(0.4, speed-up; 0.9 of it after a repair)
//   computes other things  0.3
//   fault, no end in time, cannot be launched   0.2
//   does not compile       0.1
//   rejected by a guard, no usable answer, nothing new   0
//   infrastructure         nothing: it teaches nothing
#ifndef REPRISE_EVOLUTION_REWARD_H_
#define REPRISE_EVOLUTION_REWARD_H_

#include <optional>

#include "reprise/v1/types.pb.h"

namespace reprise::evolution {

// `speedup` over the baseline counts where kind is OK.
std::optional<double> RewardOf(v1::OutcomeKind kind, double speedup,
                               bool repaired);

// A reward as bandits take it, 0 to 1: failures as they are; of what computes
// the same 0.4, and up to 1 for a gain over the parent's speed-up of 0.2 or
// more in its logarithm.
double BanditReward(double reward, double parent_speedup);

}  // namespace reprise::evolution

#endif  // REPRISE_EVOLUTION_REWARD_H_
