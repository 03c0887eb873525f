// The one implementation of Optimizer, split over optimizer.cc (asking and
// telling) and optimizer_state.cc (saving and restoring).
#ifndef REPRISE_BAYESOPT_OPTIMIZER_IMPL_H_
#define REPRISE_BAYESOPT_OPTIMIZER_IMPL_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bayesopt/optimizer.h"
#include "bayesopt/state_codec.h"

namespace reprise::bayesopt {

class OptimizerImpl : public Optimizer {
 public:
  OptimizerImpl(std::shared_ptr<const Space> space, Options options);

  // Queues the default configuration and the seeds.
  absl::Status Start(const std::vector<Configuration>& seeds,
                     bool start_with_default);
  // Instead of Start.
  absl::Status Load(std::string_view bytes);

  std::vector<Trial> Ask(int n) override;
  absl::Status Tell(uint64_t id, v1::OutcomeKind kind,
                    const std::vector<double>& samples) override;
  absl::StatusOr<KeyClaim> ClaimKey(uint64_t id, std::string_view key) override;
  absl::Status Inject(const Configuration& configuration) override;
  absl::Status Import(std::vector<ImportedObservation> observations) override;
  void AdvanceTo(uint64_t now) override;
  int WantedSamples(const std::vector<double>& samples) const override;
  absl::StatusOr<std::string> Save() const override;
  std::optional<BestTrial> Best() const override;
  Counts counts() const override { return counts_; }
  const Space& space() const override { return *space_; }

 private:
  struct Waiting {
    Configuration configuration;
    std::string origin;
    int attempt = 1;
    uint64_t retry_of = 0;  // trial; 0: none
  };
  // kExpired: its lease ended, and its outcome has not come since.
  enum class State { kPending, kTold, kDuplicate, kExpired };
  struct Record {
    Trial trial;
    State state = State::kPending;
    std::optional<std::string> key;
    v1::OutcomeKind kind = v1::OUTCOME_KIND_UNSPECIFIED;
    std::vector<double> samples;
    double cost = 0;
    uint64_t deadline = 0;    // in ticks; 0: none
    uint64_t retried_as = 0;  // trial; 0: none so far
  };
  struct Key {
    uint64_t owner = 0;  // 0: its owner was lost
    std::vector<uint64_t> duplicates;
  };
  // An observation, by the trials it comes from.
  struct Source {
    uint64_t trial = 0;
    uint64_t outcome = 0;  // the trial whose outcome it is
  };

  std::optional<Waiting> Next();
  std::optional<Configuration> SearchUnseen(Random& random);
  History MakeHistory() const;
  void Observe(const Record& record, const Record& outcome);
  void Settle(Record& record);
  void TellLate(Record& record);
  void GiveUp(Record& record);
  bool Seen(const Configuration& configuration) const {
    return seen_.count(space_->Hash(configuration)) > 0;
  }
  absl::StatusOr<Record*> Find(uint64_t id, std::string_view what);

  static void WriteRecord(const Record& record, StateWriter& writer);
  static Record ReadRecord(StateReader& reader);
  static void WriteWaiting(const std::deque<Waiting>& queue,
                           StateWriter& writer);
  static std::deque<Waiting> ReadWaiting(StateReader& reader);
  bool Read(StateReader& reader);
  bool Consistent() const;

  const std::shared_ptr<const Space> space_;
  const uint64_t seed_;
  const int max_attempts_;
  const uint64_t lease_;
  const SamplePolicy policy_;
  std::unique_ptr<Sampler> sampler_;

  std::deque<Waiting> urgent_;   // injected and retried
  std::deque<Waiting> waiting_;  // default and seeds
  std::set<ConfigurationHash> seen_;
  std::map<uint64_t, Record> records_;
  std::set<uint64_t> pending_;  // not told, and no duplicate of another
  std::map<std::string, Key, std::less<>> keys_;
  std::vector<Source> sources_;  // of the observations
  std::vector<Observation> observations_;
  std::vector<ImportedObservation> imported_;
  uint64_t now_ = 0;
  uint64_t next_id_ = 1;
  uint64_t best_ = 0;
  Counts counts_;
};

}  // namespace reprise::bayesopt

#endif  // REPRISE_BAYESOPT_OPTIMIZER_IMPL_H_
