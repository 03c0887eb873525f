// Configurations that were not asked for yet, for samplers. Thread-safe.
#ifndef REPRISE_BAYESOPT_UNSEEN_H_
#define REPRISE_BAYESOPT_UNSEEN_H_

#include <optional>

#include "bayesopt/random.h"
#include "bayesopt/sampler.h"
#include "bayesopt/space.h"

namespace reprise::bayesopt {

// Tries before these give up.
inline constexpr int kUnseenTries = 128;

// Drawn as by Space::Sample. nullopt: none was found.
std::optional<Configuration> UnseenSample(const History& history,
                                          Random& random);

// As UnseenSample, as what a sampler gives.
std::optional<Suggestion> SuggestUnseenSample(const History& history,
                                              Random& random);

// Another value of a parameter, all alike: what it holds now does not matter.
// A pipeline is one edit away. nullopt: it has no other.
std::optional<Value> OtherValue(const Parameter& parameter, const Value& now,
                                Random& random);

// `from` with each parameter active there at another value with this chance,
// at least one of them, seen or not. nullopt: none was found.
std::optional<Configuration> Mutate(const Space& space,
                                    const Configuration& from, double chance,
                                    Random& random);

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_UNSEEN_H_
