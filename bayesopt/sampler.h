// Where an optimizer's next configuration comes from. The optimizer keeps the
// books (ids, repeats, retries); a sampler only looks at the history and
// proposes. Not thread-safe.
#ifndef REPRISE_BAYESOPT_SAMPLER_H_
#define REPRISE_BAYESOPT_SAMPLER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bayesopt/random.h"
#include "bayesopt/space.h"
#include "reprise/v1/types.pb.h"

namespace reprise::bayesopt {

struct Observation {
  uint64_t id = 0;
  Configuration configuration;
  v1::OutcomeKind kind = v1::OUTCOME_KIND_UNSPECIFIED;
  double cost = 0;         // median of the samples; meaningful where kind is OK
  bool duplicate = false;  // by key; cost is that of the trial it repeats
  // Of log(cost), as far as the samples tell; 0: there was one sample.
  double log_variance = 0;
  std::string origin;  // of the trial
};

// What another variant or another device measured.
struct ImportedObservation {
  Configuration configuration;
  double cost = 0;    // of an OK trial there, in whatever unit
  double weight = 1;  // in (0, 1]: trust; divides its variance
};

// Asked for and not told yet.
struct PendingTrial {
  const Configuration* configuration = nullptr;
  std::string_view origin;
};

// What a sampler may look at. `observations` are in the order they were told;
// INFRASTRUCTURE is not among them.
struct History {
  const Space* space = nullptr;
  const std::vector<Observation>* observations = nullptr;
  const std::vector<ImportedObservation>* imported = nullptr;
  // True for every configuration that was asked for or waits to be.
  std::function<bool(const Configuration&)> seen;
  std::vector<PendingTrial> pending;  // in the order they were asked for
  uint64_t next_id = 0;  // of the trial that the suggestion will become
};

struct Suggestion {
  Configuration configuration;
  std::string origin;
};

class Sampler {
 public:
  virtual ~Sampler() = default;

  // Called once, before anything else; `space` outlives the sampler. For what
  // takes long and needs no history.
  void Prepare(const Space& space) { DoPrepare(space); }

  // A valid configuration that has not been seen. nullopt: it has none, and the
  // optimizer looks through the rest of the space itself.
  std::optional<Suggestion> Suggest(const History& history, Random& random) {
    return DoSuggest(history, random);
  }

  // What a new sampler of the same kind and options, prepared and restored,
  // needs to go on as this one would with the same history. UNIMPLEMENTED: this
  // kind cannot be saved. Restore: INVALID_ARGUMENT when the bytes are damaged.
  absl::StatusOr<std::string> Save() const { return DoSave(); }
  absl::Status Restore(const History& history, std::string_view bytes) {
    return DoRestore(history, bytes);
  }

 private:
  virtual void DoPrepare(const Space& space) {}
  virtual std::optional<Suggestion> DoSuggest(const History& history,
                                              Random& random) = 0;
  virtual absl::StatusOr<std::string> DoSave() const;
  virtual absl::Status DoRestore(const History& history,
                                 std::string_view bytes);
};

// Drawn as by Space::Sample, never a repeat.
std::unique_ptr<Sampler> NewRandomSampler();

struct LocalSearchOptions {
  // Observations before climbing starts; random configurations until then.
  int initial_random = 8;
  // Told trials without a gain before the climb restarts elsewhere.
  int restart_after = 40;
  // Share of trials that are random at any time.
  double random_share = 0.1;
};

// Hill climbing around an incumbent by one- and two-step neighbours. Without a
// gain for a while it restarts: from a random configuration, or from the best
// one so far kicked by several steps.
std::unique_ptr<Sampler> NewLocalSearchSampler(LocalSearchOptions options = {});

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_SAMPLER_H_
