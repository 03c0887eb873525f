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

  // The substitution for a launch, or null. Counts a launch of a kernel that
  // has one as applied or declined.
  const Substitution* Choose(const std::string& symbol,
                             const v1::LaunchConfig& launch);

  std::vector<SubstitutionCount> Counts() const;

 private:
  const std::vector<Substitution> substitutions_;
  mutable std::mutex mutex_;
  std::vector<SubstitutionCount> counts_;  // one per kernel
};

}  // namespace reprise

#endif  // REPRISE_REPLAY_RECORDER_SESSION_SUBSTITUTIONS_H_
