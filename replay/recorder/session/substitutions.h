// Which launches run tuned code, and how many did. Thread-safe.
#ifndef REPRISE_REPLAY_RECORDER_SESSION_SUBSTITUTIONS_H_
#define REPRISE_REPLAY_RECORDER_SESSION_SUBSTITUTIONS_H_

#include <mutex>
#include <string>
#include <vector>

#include "replay/recorder/session/session.h"

namespace reprise {

class Substitutions {
 public:
  explicit Substitutions(std::vector<Substitution> substitutions);

  // Of a launch that no guard is like.
  static constexpr char kOtherLaunch[] =
      "launched with another grid, block, shared memory or cluster than was "
      "tuned";

  // The substitution for a launch, or null. Counts a launch of a kernel that
  // has one as applied or declined.
  const Substitution* Choose(const std::string& symbol,
                             const v1::LaunchConfig& launch);

  // --- Where applications choose and count themselves (on a GPU).

  // Those of a kernel, in the order in which their guards are asked.
  std::vector<const Substitution*> Of(const std::string& symbol) const;
  void AddApplied(const std::string& symbol, uint64_t launches);
  void AddDeclined(const std::string& symbol, const std::string& why,
                   uint64_t launches);

  std::vector<SubstitutionCount> Counts() const;

 private:
  // Requires the mutex. Null: no substitution is for the kernel.
  SubstitutionCount* CountOf(const std::string& symbol);

  const std::vector<Substitution> substitutions_;
  mutable std::mutex mutex_;
  std::vector<SubstitutionCount> counts_;  // one per kernel
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_SUBSTITUTIONS_H_
