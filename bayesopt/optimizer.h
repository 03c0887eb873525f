// The inner tuner: ask for trials, tell what they gave, in any order.
//
//   auto optimizer = Optimizer::Create(space, {.seed = 7});
//   for (const Trial& trial : (*optimizer)->Ask(8)) {
//     ... compile; the machine code and launch are known now ...
//     if (!(*optimizer)->ClaimKey(trial.id, key)->first) continue;  // known
//     code
//     ... run ...
//     (*optimizer)->Tell(trial.id, kind, samples);
//   }
//   (*optimizer)->BestTrial();
//
// Objective: positive numbers, lower is better; a trial's cost is the median of
// its samples. Paired ratios variant/baseline and plain times both serve, as
// long as all trials of one optimizer are alike.
//
// Nothing is proposed twice: neither a configuration that was asked for or
// injected, nor (through ClaimKey) work that a caller finds to be identical.
// Outcomes other than OK are failures of the configuration, but for
// INFRASTRUCTURE, which says nothing about it: the configuration is proposed
// again under a new id, Options::max_attempts times in all.
//
// Leases: a trial that is not told within Options::lease ticks of the caller's
// clock (AdvanceTo) is taken for lost and proposed again under a new id. Its
// own outcome still counts when it comes after all, unless the new one's came
// first.
//
// Save gives all of it as bytes; a restored optimizer asks for the same trials
// as the saved one would have, bit for bit.
//
// Deterministic: the same space, options and sequence of calls give the same
// trials. Trial k draws from its own random stream.
//
// Thread-safety: none; callers lock. No method blocks or does input or output.
#ifndef REPRISE_BAYESOPT_OPTIMIZER_H_
#define REPRISE_BAYESOPT_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bayesopt/sampler.h"
#include "bayesopt/space.h"
#include "bayesopt/trial_statistics.h"
#include "reprise/v1/types.pb.h"

namespace reprise::bayesopt {

struct Trial {
  uint64_t id = 0;  // from 1, in the order they were asked for
  Configuration configuration;
  // "default", "seed", "injected", "retry" or the sampler's own word.
  std::string origin;
  int attempt = 1;
};

struct BestTrial {
  Trial trial;
  double cost = 0;
  std::vector<double> samples;
};

class Optimizer {
 public:
  struct Options {
    uint64_t seed = 0;
    // Asked for first, in this order, after the default configuration. Invalid
    // or repeated ones are INVALID_ARGUMENT.
    std::vector<Configuration> seeds;
    // The default configuration is the first trial, so that the result is never
    // worse than doing nothing.
    bool start_with_default = true;
    int max_attempts = 3;
    // Ticks of the caller's clock that a trial may take; 0: any number.
    uint64_t lease = 0;
    SamplePolicy samples;
    // nullptr: by models (model_sampler.h).
    std::unique_ptr<Sampler> sampler;
  };
  struct KeyClaim {
    bool first = true;   // false: `owner` already stands for this key
    uint64_t owner = 0;  // the trial that was first
  };
  struct Counts {
    uint64_t asked = 0;
    uint64_t ok = 0;
    uint64_t failed = 0;
    uint64_t duplicates = 0;  // by key
    uint64_t infrastructure = 0;
    uint64_t expired = 0;
    uint64_t pending = 0;
    friend bool operator==(const Counts&, const Counts&) = default;
  };

  static absl::StatusOr<std::unique_ptr<Optimizer>> Create(
      std::shared_ptr<const Space> space, Options options);

  // An optimizer that goes on where the saved one was. `space` and `options`
  // as they were given to Create (seeds and start_with_default are not looked
  // at again). INVALID_ARGUMENT: bytes that Save did not give, or gave for
  // another space or kind of sampler.
  static absl::StatusOr<std::unique_ptr<Optimizer>> Restore(
      std::shared_ptr<const Space> space, Options options,
      std::string_view bytes);
  virtual ~Optimizer() = default;

  // Up to n new trials; fewer, at last none, when the space is used up. The
  // trials stay pending until told.
  virtual std::vector<Trial> Ask(int n) = 0;

  // `samples` may be empty unless kind is OK. Idempotent: telling the same
  // again is OK and changes nothing; telling otherwise is ALREADY_EXISTS and
  // changes nothing. NOT_FOUND: no such trial. INVALID_ARGUMENT: OK without
  // samples, or a sample that is not a positive finite number.
  virtual absl::Status Tell(uint64_t id, v1::OutcomeKind kind,
                            const std::vector<double>& samples) = 0;

  // `key` names the work a trial comes down to: machine-code hash and launch.
  // When another trial has claimed it, this one is a duplicate: it takes over
  // that trial's outcome, now or when it comes, and need not be told.
  // Idempotent. NOT_FOUND: no such trial.
  virtual absl::StatusOr<KeyClaim> ClaimKey(uint64_t id,
                                            std::string_view key) = 0;

  // Has `configuration` asked for next (before the sampler's own), unless it
  // was asked for before: then this is ALREADY_EXISTS. INVALID_ARGUMENT as
  // Space::Check.
  virtual absl::Status Inject(const Configuration& configuration) = 0;

  // Tells what another source variant or another device measured: more to learn
  // from, nothing to believe. The cheapest 60 of a call count; they are dropped
  // when they turn out not to rank what is measured here. Import before asking
  // where possible. INVALID_ARGUMENT, and nothing imported: as Space::Check, a
  // cost that is not positive and finite, or a weight outside (0, 1].
  virtual absl::Status Import(
      std::vector<ImportedObservation> observations) = 0;

  // The caller's clock; never goes back (an earlier time is ignored). Trials
  // whose lease has ended by then are lost.
  virtual void AdvanceTo(uint64_t now) = 0;

  // How many more timing samples the trial deserves after `samples` so far: few
  // for a clear loser, more for a contender. 0: enough; tell.
  virtual int WantedSamples(const std::vector<double>& samples) const = 0;

  // UNIMPLEMENTED: the sampler cannot be saved.
  virtual absl::StatusOr<std::string> Save() const = 0;

  // The cheapest OK trial; ties go to the lower id. nullopt: none yet.
  virtual std::optional<BestTrial> Best() const = 0;

  virtual Counts counts() const = 0;
  virtual const Space& space() const = 0;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_OPTIMIZER_H_
